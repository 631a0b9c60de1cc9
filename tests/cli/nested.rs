//! A job inside a job joins it.

use crate::rig::{Place, STUCKPROOF, names};

#[test]
fn the_inner_command_runs_in_the_outer_job() {
    let place = Place::new();
    let inner = format!("{STUCKPROOF} run --bundle inner -- sh -c 'echo inside; exit 3'");
    let done = place.ran(&[], &inner);
    done.assert_code(3);
    assert_eq!(done.stdout(), "inside\n");
    let job = place.job();
    assert!(
        done.stderr.contains(&format!("inside job {job}, which records this command as well")),
        "{}",
        done.stderr
    );
    assert!(!place.path("inner").exists(), "one job, one bundle");
    assert_eq!(names(&place.path("")), ["bundle", "runtime"]);
}

#[test]
fn an_inner_command_that_is_not_there_is_said_so() {
    let place = Place::new();
    let done = place.ran(&[], &format!("{STUCKPROOF} run -- no-such-command-anywhere"));
    done.assert_code(127);
    assert!(done.stderr.contains("no-such-command-anywhere: not found"), "{}", done.stderr);
}

#[test]
fn a_variable_of_a_job_that_is_over_joins_nothing() {
    let place = Place::new();
    let mut command = place.run(&[], "echo own");
    command.env("STUCKPROOF_JOB", "20200101t000000z-1-aaaa").env("STUCKPROOF_WIRE", place.path("gone"));
    crate::rig::finish(command.spawn().unwrap()).assert_code(0);
    assert_eq!(place.event("jobEnded")["state"], "succeeded");
}

#[test]
fn an_inner_engine_is_written_where_it_belongs() {
    let place = Place::new();
    let inner = format!("{STUCKPROOF} run --engine own.engine -- sh -c 'echo new > {{engine}}'");
    place.ran(&[], &inner).assert_code(0);
    assert_eq!(std::fs::read_to_string(place.path("own.engine")).unwrap(), "new\n");
}
