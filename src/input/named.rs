//! The ONNX files that a command names.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What stands around a path in an option, a list or a line for a shell.
const AROUND: &[char] = &[' ', '\t', '\n', '"', '\'', '=', ',', ';', ':', '(', ')'];

/// Every file among the arguments whose name ends in `.onnx`: as an argument of its own, after an equals sign, or inside
/// of a line for a shell. What is not there yet is no input.
pub(super) fn onnx_files(argv: &[OsString]) -> Vec<PathBuf> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for word in argv.iter().skip(1) {
        let whole = PathBuf::from(word);
        let after =
            word.to_str().and_then(|word| word.split_once('=')).map(|(_, after)| PathBuf::from(after));
        let named: Vec<PathBuf> =
            [Some(whole), after].into_iter().flatten().filter(|path| is_onnx(path)).collect();
        let parts = if named.is_empty() { word.to_str().unwrap_or_default() } else { "" };
        let parts = parts.split(AROUND).map(PathBuf::from).filter(|path| is_onnx(path));
        found.extend(named.into_iter().chain(parts).filter(|path| seen.insert(path.clone())));
    }
    found
}

fn is_onnx(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("onnx")) && path.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_in_every_form_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, "").unwrap();
            path.into_os_string().into_string().unwrap()
        };
        let [one, two, three, list, end] =
            ["one.onnx", "t=w o.onnx", "three.ONNX", "list.onnx", "end.onnx"].map(file);
        let argv = [
            file("program.onnx"),
            one.clone(),
            format!("--onnx={two}"),
            format!("cd . && trtexec --onnx='{three}' --saveEngine=x; build {list},{end}"),
            "missing.onnx".to_owned(),
            folder.path().to_string_lossy().into_owned(),
            one.clone(),
            "model.onnx.data".to_owned(),
        ];
        let found = onnx_files(&argv.map(OsString::from));
        assert_eq!(found, [one, two, three, list, end].map(PathBuf::from));
    }
}
