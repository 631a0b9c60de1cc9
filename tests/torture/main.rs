//! Whatever dies, and whenever: the bundle is true, nothing that a callback wrote is lost, and nothing of the job lives on.
//!
//! A kill by the kernel's OOM killer is not among these: it needs a memory cgroup of the test's own, which neither CI
//! hosts nor containers give away as a rule. What is made of it is tested on recorded counters, next to the code that
//! reads them.

mod children;
#[path = "../common/mod.rs"]
mod common;
mod crashes;
mod disk;
mod kills;
mod scene;
