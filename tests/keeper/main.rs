//! What becomes of a job when one of its guards dies, when it is paused, and where it runs in an odd place. Ordinary
//! commands only: no `TensorRT` anywhere.

mod crash;
mod durability;
mod job_control;
mod keeper_lost;
mod leftovers;
mod odd_places;
#[path = "../cli/planted.rs"]
mod planted;
#[allow(dead_code, reason = "the tests of the command line need more of it")]
#[path = "../cli/rig.rs"]
mod rig;
mod runner_lost;
mod secrets;
mod watch;
#[path = "../common/without.rs"]
mod without;
