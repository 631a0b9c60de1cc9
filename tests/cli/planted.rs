//! A job full of a secret, and the search for it in the bundle.

use crate::rig::Place;
use std::fs;
use std::path::Path;
use std::process::Child;

/// With characters that JSON and addresses write differently, and one that is not ASCII.
pub const SECRET: &str = "plant\"ed/sécret";

/// Says the secret as it is, inside of a line, in two writes, as JSON of two writers, and on both streams.
const SCRIPT: &str = r#"printf '%s\n' "$API_TOKEN" "$0" "before $API_TOKEN after"; printf '%s\n' "$API_TOKEN" >&2
half=${API_TOKEN%cret}; printf '%s' "$half"; sleep 0.1; printf '%s\n' "${API_TOKEN#"$half"}"
printf '%s\n' '{"token": "plant\"ed/s\u00e9cret"}'
"#;

/// Starts the job; its environment and its arguments hold the secret too.
pub fn say_secret(place: &Place, options: &[&str], rest: &str) -> Child {
    let mut command = place.stuckproof();
    command.args(["run", "--bundle", "bundle"]).args(options);
    command.args(["--", "sh", "-c", &format!("{SCRIPT}{rest}")]);
    command.arg(format!("https://me:{SECRET}@host/x")).arg("--api-key").arg(SECRET);
    command.env("API_TOKEN", SECRET).env("CUDA_CACHE_PATH", format!("/tmp/{SECRET}"));
    command.spawn().unwrap()
}

/// No file of the bundle holds the secret, in any form.
pub fn assert_clean(place: &Place) {
    let mut folders = vec![place.path("bundle")];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files += 1;
                assert_clean_file(&path);
            }
        }
    }
    assert!(files >= 6, "{files} files");
}

fn assert_clean_file(path: &Path) {
    let bytes = fs::read(path).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    for form in ["sécret", r"s\u00e9cret", r#"plant\"ed"#, "plant\"ed", "plant&quot;ed", "plant%22ed"] {
        // The script itself holds the last line in its own writing, and it is an argument.
        assert!(!text.contains(form), "{} holds {form}: {text}", path.display());
    }
}
