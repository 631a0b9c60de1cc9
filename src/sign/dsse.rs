//! The DSSE envelope: a payload, its type, and signatures over both.

use super::{PublicKey, SigningKey};
use base64ct::{Base64, Encoding};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A payload with its signatures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "envelope")]
pub struct Envelope {
    /// The payload in base64.
    payload: String,
    /// Its type, which is signed with it.
    payload_type: String,
    /// The signatures.
    signatures: Vec<Mark>,
}

/// One signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Mark {
    /// SHA-256 of the public key's DER form; a hint only.
    keyid: String,
    /// The Ed25519 signature over DSSE's pre-authentication encoding, in base64.
    sig: String,
}

/// What is wrong with an envelope.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum EnvelopeError {
    /// The payload is of another type.
    #[error("payloadType is {0:?}")]
    Type(String),
    /// Something is not base64.
    #[error("{0} is not base64")]
    Base64(&'static str),
    /// No signature at all.
    #[error("signatures is empty")]
    Empty,
}

/// An envelope that was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The payload.
    pub payload: Vec<u8>,
    /// The first trusted key that signed it.
    pub signer: Option<PublicKey>,
    /// The identities that the signatures claim; nothing vouches for them.
    pub claimed: Vec<String>,
}

impl Envelope {
    /// Signs a payload.
    #[must_use]
    pub fn sign(payload_type: &str, payload: &[u8], key: &SigningKey) -> Self {
        let sig = Base64::encode_string(&key.sign(&signed_bytes(payload_type, payload)));
        Self {
            payload: Base64::encode_string(payload),
            payload_type: payload_type.to_owned(),
            signatures: vec![Mark { keyid: key.public().id(), sig }],
        }
    }

    /// Takes the payload out and looks for a trusted key's signature over it.
    pub fn open(&self, payload_type: &str, trusted: &[PublicKey]) -> Result<Opened, EnvelopeError> {
        if self.payload_type != payload_type {
            return Err(EnvelopeError::Type(self.payload_type.chars().take(80).collect()));
        }
        if self.signatures.is_empty() {
            return Err(EnvelopeError::Empty);
        }
        let payload = decode(&self.payload, "payload")?;
        let message = signed_bytes(payload_type, &payload);
        let mut signer = None;
        for mark in &self.signatures {
            let signature = decode(&mark.sig, "sig")?;
            let found = || trusted.iter().find(|key| key.accepts(&message, &signature)).cloned();
            signer = signer.or_else(found);
        }
        let claimed = self.signatures.iter().map(|mark| mark.keyid.clone()).collect();
        Ok(Opened { payload, signer, claimed })
    }
}

fn decode(text: &str, what: &'static str) -> Result<Vec<u8>, EnvelopeError> {
    Base64::decode_vec(text).map_err(|_| EnvelopeError::Base64(what))
}

/// What is signed: the pre-authentication encoding of DSSE v1.
fn signed_bytes(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len()).into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> SigningKey {
        SigningKey(ed25519_dalek::SigningKey::from_bytes(&[seed; 32]))
    }

    #[test]
    fn the_encoding_is_that_of_the_specification() {
        let bytes = signed_bytes("http://example.com/HelloWorld", b"hello world");
        assert_eq!(bytes, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
    }

    #[test]
    fn only_a_trusted_key_counts_and_only_for_what_it_signed() {
        let envelope = Envelope::sign("text/x", b"payload", &key(1));
        let trusted = [key(2).public(), key(1).public()];
        let opened = envelope.open("text/x", &trusted).unwrap();
        assert_eq!(
            (opened.payload.as_slice(), opened.signer),
            (b"payload".as_slice(), Some(key(1).public()))
        );
        assert_eq!(envelope.open("text/x", &trusted[..1]).unwrap().signer, None);
        assert_eq!(envelope.open("text/y", &trusted), Err(EnvelopeError::Type("text/x".to_owned())));
        let other = Envelope { payload: Base64::encode_string(b"Payload"), ..envelope.clone() };
        assert_eq!(other.open("text/x", &trusted).unwrap().signer, None);
        let renamed = Envelope { payload_type: "text/y".to_owned(), ..envelope.clone() };
        assert_eq!(renamed.open("text/y", &trusted).unwrap().signer, None, "the type is signed too");
        let none = Envelope { signatures: Vec::new(), ..envelope.clone() };
        assert_eq!(none.open("text/x", &trusted), Err(EnvelopeError::Empty));
        let broken = Envelope { payload: "?".to_owned(), ..envelope };
        assert_eq!(broken.open("text/x", &trusted), Err(EnvelopeError::Base64("payload")));
    }
}
