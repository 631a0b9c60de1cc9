//! What a client says to the control socket, and what one is told.

use stuckproof::supervise::control::{Question, Reply};

/// The question and the reply that these bytes may be: what is understood is written as it was understood.
pub fn run(bytes: &[u8]) {
    if let Ok(question) = serde_json::from_slice::<Question>(bytes) {
        let again = serde_json::to_vec(&question).expect("a question is JSON");
        assert_eq!(serde_json::from_slice::<Question>(&again).expect("our own words"), question);
    }
    if let Ok(reply) = serde_json::from_slice::<Reply>(bytes) {
        let again = serde_json::to_vec(&reply).expect("a reply is JSON");
        serde_json::from_slice::<Reply>(&again).expect("our own words");
    }
}
