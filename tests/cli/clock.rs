//! The wall clock is set while a job runs.

use crate::rig::{Place, finish};
use chrono::{DateTime, TimeDelta, Utc};
use std::path::Path;

#[test]
fn a_step_of_the_wall_clock_moves_no_event_and_ends_no_job() {
    let preload = Path::new(env!("CARGO_MANIFEST_DIR")).join(".rig/programs/clock_step.so");
    assert!(preload.exists(), "{} is missing: run scripts/rig", preload.display());
    let day = TimeDelta::days(1);
    for step in [day, -day] {
        let place = Place::new();
        let before = Utc::now();
        let options =
            ["--deadline", "10m", "--max-phase", "10m", "--stall-after", "10m", "--on-stall", "cancel"];
        let mut run = place.run(&options, "touch stepped; sleep 1; date +%s");
        run.env("LD_PRELOAD", &preload);
        run.env("STEP_WHEN", place.path("stepped")).env("STEP_S", step.num_seconds().to_string());
        let done = finish(run.spawn().unwrap());
        let after = Utc::now();
        done.assert_code(0);
        let seen = DateTime::from_timestamp(done.stdout().trim().parse().unwrap(), 0).unwrap();
        assert!((seen - after - step).abs() < TimeDelta::hours(1), "the clock was set: {seen}");
        let walls = place.events();
        let walls =
            walls.iter().map(|event| event["wall"].as_str().unwrap().parse::<DateTime<Utc>>().unwrap());
        let walls: Vec<_> = walls.collect();
        assert!(walls.is_sorted() && walls[0] >= before && walls[walls.len() - 1] <= after, "{walls:?}");
        let evidence = place.json("evidence.json");
        let took = evidence["durationMs"].as_f64().unwrap();
        assert!(took >= 1_000.0 && took <= (after - before).num_milliseconds() as f64, "{took}");
        place.verb(&["verify", "bundle"]).assert_code(0);
    }
}
