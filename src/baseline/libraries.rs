//! `TensorRT` libraries that a loader may find. Two copies on one host explain many a wrong engine, so all are listed.

use super::LibraryFile;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// How the files of interest begin.
const NAMES: [&str; 3] = ["libnvinfer", "libtensorrt", "libnvonnxparser"];
/// Where packages put them; the last part may be any that begins so, where it ends in `*`.
const USUAL: [&str; 12] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
    "/usr/local/cuda/lib64",
    "/usr/local/tensorrt/lib",
    "/usr/src/tensorrt/lib",
    "/usr/local/TensorRT*/lib",
    "/usr/local/tensorrt*/lib",
    "/opt/TensorRT*/lib",
    "/opt/tensorrt*/lib",
];
/// More copies than this are not listed.
const MOST: usize = 256;

pub(super) fn find(argv: &[String], variable: &impl Fn(&str) -> Option<String>) -> Vec<LibraryFile> {
    let path = variable("LD_LIBRARY_PATH").unwrap_or_default();
    let listed = path.split([':', ';']).filter(|part| !part.is_empty()).map(PathBuf::from);
    let usual = USUAL.iter().flat_map(|pattern| expand(Path::new(pattern)));
    let python = prefixes(argv, variable).into_iter().flat_map(|prefix| packages(&prefix));
    let places = listed.map(|folder| (folder, "LD_LIBRARY_PATH"));
    let places = places.chain(usual.map(|folder| (folder, "system")));
    let places = places.chain(python.map(|folder| (folder, "python")));
    collect(places)
}

fn collect(places: impl Iterator<Item = (PathBuf, &'static str)>) -> Vec<LibraryFile> {
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    for (folder, found_by) in places {
        let mut here: Vec<LibraryFile> =
            names(&folder).iter().filter_map(|name| library(&folder.join(name), name, found_by)).collect();
        here.sort_unstable();
        found.extend(here.into_iter().filter(|file| seen.insert(file.path.clone())));
    }
    found.truncate(MOST);
    found
}

fn library(path: &Path, name: &str, found_by: &str) -> Option<LibraryFile> {
    let (stem, _) = name.split_once(".so")?;
    NAMES.iter().find(|beginning| stem.starts_with(**beginning))?;
    let path = path.canonicalize().ok()?;
    let facts = fs::metadata(&path).ok()?;
    let file = || LibraryFile {
        name: stem.to_owned(),
        path: path.to_string_lossy().into_owned(),
        bytes: facts.len(),
        found_by: found_by.to_owned(),
    };
    facts.is_file().then(file)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// The folders that a pattern stands for: its next to last part may end in `*`.
fn expand(pattern: &Path) -> Vec<PathBuf> {
    let (Some(parent), Some(last)) = (pattern.parent(), pattern.file_name()) else { return Vec::new() };
    let middle = parent.file_name().unwrap_or_default().to_string_lossy();
    match (middle.strip_suffix('*'), parent.parent()) {
        (Some(beginning), Some(top)) => {
            beginning_with(top, beginning).into_iter().map(|folder| folder.join(last)).collect()
        }
        _ => vec![pattern.to_owned()],
    }
}

fn beginning_with(folder: &Path, beginning: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = names(folder)
        .into_iter()
        .filter(|name| name.starts_with(beginning))
        .map(|name| folder.join(name))
        .collect();
    found.sort_unstable();
    found
}

/// The roots of Python environments: that of the command, and one that is active.
fn prefixes(argv: &[String], variable: &impl Fn(&str) -> Option<String>) -> BTreeSet<PathBuf> {
    let active = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(|name| variable(name)).map(PathBuf::from);
    let programs = argv.iter().filter(|word| word.rsplit('/').next().is_some_and(is_python));
    let own = programs.filter_map(|word| program(word, &variable("PATH").unwrap_or_default()));
    // A virtual environment's python is a link out of it, and its packages may lie on either side.
    let both = own.flat_map(|path| [path.canonicalize().ok(), Some(path)]).flatten();
    active.chain(both.filter_map(|path| Some(path.parent()?.parent()?.to_owned()))).collect()
}

fn is_python(name: &str) -> bool {
    name.strip_prefix("python").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

fn program(word: &str, path: &str) -> Option<PathBuf> {
    if word.contains('/') {
        return Some(PathBuf::from(word));
    }
    path.split(':').map(|folder| Path::new(folder).join(word)).find(|candidate| candidate.is_file())
}

/// The folders of a Python environment's packages that hold `TensorRT`.
fn packages(prefix: &Path) -> Vec<PathBuf> {
    let pythons = beginning_with(&prefix.join("lib"), "python3");
    let sites = pythons.iter().flat_map(|lib| [lib.join("site-packages"), lib.join("dist-packages")]);
    sites.flat_map(|site| beginning_with(&site, "tensorrt")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn two_copies_are_both_seen_and_a_link_is_no_copy() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        touch(&root.join("a/libnvinfer.so.10.3.0"), "older");
        std::os::unix::fs::symlink("libnvinfer.so.10.3.0", root.join("a/libnvinfer.so.10")).unwrap();
        touch(&root.join("a/libnvinference_server.txt"), "no library");
        touch(&root.join("venv/lib/python3.11/site-packages/tensorrt_libs/libnvinfer.so.10"), "newer one");
        touch(&root.join("venv/bin/python3"), "");
        let variable = |name: &str| {
            (name == "LD_LIBRARY_PATH")
                .then(|| format!("{}:{}/missing", root.join("a").display(), root.display()))
        };
        let argv = ["nice".to_owned(), root.join("venv/bin/python3").to_string_lossy().into_owned()];
        let found: Vec<(String, u64, String)> = find(&argv, &variable)
            .into_iter()
            .filter(|file| file.path.starts_with(&*root.to_string_lossy()))
            .map(|file| (file.name, file.bytes, file.found_by))
            .collect();
        let expected = [("libnvinfer", 5, "LD_LIBRARY_PATH"), ("libnvinfer", 9, "python")];
        assert_eq!(found, expected.map(|(name, bytes, by)| (name.to_owned(), bytes, by.to_owned())));
    }

    #[test]
    fn a_pattern_stands_for_what_is_there() {
        let root = tempfile::tempdir().unwrap();
        for name in ["TensorRT-10.3/lib", "TensorRT-10.9/lib", "other/lib"] {
            fs::create_dir_all(root.path().join(name)).unwrap();
        }
        let found = expand(&root.path().join("TensorRT*/lib"));
        assert_eq!(found, ["TensorRT-10.3/lib", "TensorRT-10.9/lib"].map(|name| root.path().join(name)));
        assert_eq!(expand(Path::new("/usr/lib")), [Path::new("/usr/lib")]);
    }
}
