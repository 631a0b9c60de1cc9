//! Builders that die by themselves, at every place where that makes a difference.

use crate::common::bundle::Bundle;
use crate::common::job::{Ended, run};
use crate::common::{model, script};

/// The SIGSEGV of a process.
const SEGV: i32 = 11;

fn crash(place: &str) -> (Ended, Bundle) {
    let folder = crate::common::job::Place::new();
    let wrapped = script("crash.py", &[&model("small"), &folder.file("engine"), place]);
    let ended = run(&[], &wrapped);
    let bundle = ended.bundle();
    (ended, bundle)
}
