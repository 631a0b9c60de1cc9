//! What stands around a job is on record, and no secret of it.

use crate::rig::{Done, Place, finish};
use std::fs;

fn run(place: &Place, variables: &[(&str, &str)]) -> Done {
    let mut command = place.stuckproof();
    command.args(["run", "--bundle", "bundle", "--", "true"]).envs(variables.iter().copied());
    finish(command.spawn().expect("it starts"))
}

#[test]
fn the_machine_and_the_gpu_or_its_absence_are_on_record() {
    let place = Place::new();
    run(&place, &[]).assert_code(0);
    let baseline = place.json("baseline.json");
    assert!(baseline["machine"]["memoryBytes"].as_u64().is_some_and(|bytes| bytes > 0), "{baseline:#}");
    let summary = place.json("summary.json");
    let in_use = &baseline["gpu"]["inUse"][0]["name"];
    if in_use.is_null() {
        let nulls = baseline["nulls"].as_object().unwrap();
        assert!(nulls.keys().any(|field| field.starts_with("gpu")), "{nulls:?}");
        assert!(summary["gpuSku"].is_null());
    } else {
        assert_eq!(&summary["gpuSku"], in_use);
    }
    assert!(baseline["ci"].is_null() && baseline["nulls"]["ci"].is_string());
    let shown = place.verb(&["show", "bundle"]);
    assert!(shown.stdout().contains("\nHost\n  machine   "), "{}", shown.stdout());
}

#[test]
fn the_ci_job_is_named_and_secrets_are_not() {
    let place = Place::new();
    let variables = [
        ("GITLAB_CI", "true"),
        ("CI_PROJECT_PATH", "group/engine"),
        ("CI_COMMIT_SHA", "c0ffee"),
        ("CI_JOB_ID", "77"),
        ("CI_JOB_TOKEN", "planted"),
        ("NVIDIA_API_KEY", "planted"),
        ("CUDA_VISIBLE_DEVICES", "-1"),
    ];
    run(&place, &variables).assert_code(0);
    let baseline = place.json("baseline.json");
    let ci = &baseline["ci"];
    assert_eq!(
        (&ci["host"], &ci["repository"], &ci["job"]),
        (&"gitlab".into(), &"group/engine".into(), &"77".into())
    );
    assert_eq!(baseline["environment"]["CUDA_VISIBLE_DEVICES"], "-1");
    assert_eq!(baseline["environment"]["NVIDIA_API_KEY"], "(masked)");
    for entry in fs::read_dir(place.path("bundle")).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("planted"), "{}", path.display());
    }
}
