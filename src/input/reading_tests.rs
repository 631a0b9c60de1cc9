use super::*;
use crate::digest::sha256_hex;
use crate::event::InputIdentified;
use std::ffi::OsString;
use std::fs;
use std::sync::Mutex;

/// Reads the inputs of a command to the end and gives everything that was told; `between` runs when the first digest is
/// told.
fn told(
    declared: &[PathBuf],
    argv: &[&Path],
    libraries: &[&Path],
    between: impl Fn() + Send + 'static,
) -> Vec<EventKind> {
    let argv: Vec<OsString> = argv.iter().map(|path| path.as_os_str().to_owned()).collect();
    let (inputs, mut events) = Inputs::find(declared, &argv).unwrap();
    let (tell, news) = mpsc::channel();
    let first = Mutex::new(Some(between));
    let mut reading = Reading::begin(
        inputs,
        Box::new(move |event| {
            let digested = |event: &Event| matches!(event.kind, EventKind::InputDigested(_));
            if event.as_deref().is_some_and(digested)
                && let Some(between) = first.lock().unwrap().take()
            {
                between();
            }
            tell.send(event).unwrap();
        }),
    )
    .unwrap();
    for library in libraries {
        reading.library(&library.to_string_lossy());
    }
    reading.close();
    while let Ok(Some(event)) = news.recv() {
        events.push(*event);
    }
    events.into_iter().map(|event| event.kind).collect()
}

fn identified(events: &[EventKind]) -> Vec<&InputIdentified> {
    events
        .iter()
        .filter_map(|kind| if let EventKind::InputIdentified(input) = kind { Some(input) } else { None })
        .collect()
}

fn digest_of(events: &[EventKind], number: u32) -> Option<&str> {
    events.iter().find_map(|kind| match kind {
        EventKind::InputDigested(digested) if digested.input == number => digested.sha256.as_deref(),
        _ => None,
    })
}

/// A model of one tensor whose weights lie in these files.
fn model(names: &[&str]) -> Vec<u8> {
    let field = |number: u8, content: Vec<u8>| [vec![number << 3 | 2, content.len() as u8], content].concat();
    let text = |number, text: &str| field(number, text.as_bytes().to_vec());
    let tensor = |name: &&str| {
        let pair = [text(1, "location"), text(2, name)].concat();
        field(5, [field(13, pair), vec![14 << 3, 1]].concat())
    };
    field(7, names.iter().flat_map(tensor).collect())
}

#[test]
fn a_model_and_its_weights_are_told_with_their_digests() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    fs::write(&path, model(&["weights.bin"])).unwrap();
    fs::write(folder.path().join("weights.bin"), "weights").unwrap();
    let other = folder.path().join("calibration");
    fs::write(&other, "numbers").unwrap();
    let events = told(&[other.clone(), path.clone()], &[Path::new("build"), &path], &[&other], || {});
    let kinds: Vec<_> = identified(&events).iter().map(|input| (input.input, input.kind, input.of)).collect();
    let expected =
        [(1, InputKind::Declared, None), (2, InputKind::Declared, None), (3, InputKind::External, Some(2))];
    assert_eq!(kinds, expected, "a file that is named twice is one input");
    assert_eq!(digest_of(&events, 1), Some(&*sha256_hex(b"numbers")));
    assert_eq!(digest_of(&events, 3), Some(&*sha256_hex(b"weights")));
    assert_eq!(identified(&events)[2].bytes, Some(7));
    assert_eq!(events.len(), 6, "nothing changed: {events:?}");
}

#[test]
fn names_that_lead_out_and_files_that_are_missing_are_told_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    fs::write(&path, model(&["../out.bin", "/etc/passwd", "missing.bin", "a/../../b"])).unwrap();
    let events = told(&[], &[Path::new("build"), &path], &[], || {});
    let inputs = identified(&events);
    assert_eq!(inputs.len(), 5);
    for input in &inputs[1..] {
        let why = input.reason.as_deref().unwrap();
        let expected = if input.path.ends_with("missing.bin") { "No such file" } else { "leads out" };
        assert!(why.contains(expected) && input.bytes.is_none(), "{input:?}");
    }
}

#[test]
fn a_file_that_changes_while_the_job_runs_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (path, own) = (folder.path().join("model.onnx"), folder.path().join("model.onnx"));
    fs::write(&path, model(&[])).unwrap();
    let events = told(&[], &[Path::new("build"), &path], &[], move || fs::write(&own, "another").unwrap());
    let changed = events.iter().find_map(|kind| match kind {
        EventKind::InputChanged(changed) => Some((changed.input, &*changed.what)),
        _ => None,
    });
    assert!(changed.is_some_and(|(input, what)| input == 1 && what.contains("7 bytes")), "{changed:?}");
}

#[test]
fn a_model_that_cannot_be_walked_says_what_is_not_known() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    fs::write(&path, "no model").unwrap();
    let events = told(&[], &[Path::new("build"), &path], &[], || {});
    let inputs = identified(&events);
    assert!(inputs[1].reason.as_deref().unwrap().contains("not known"), "{inputs:?}");
    assert!(digest_of(&events, 1).is_some(), "what it is made of is known all the same");
}
