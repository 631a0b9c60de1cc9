//! The layers hold: a module uses modules of its own level or of lower ones, never of a higher one.

use std::fs;
use std::path::{Path, PathBuf};

/// Every module of the crate with its level, as the crate's documentation lists them.
const LEVELS: &[(&str, u8)] = &[
    ("exit", 0),
    ("clock", 0),
    ("fsio", 0),
    ("mask", 0),
    ("units", 0),
    ("procfs", 0),
    ("shown", 0),
    ("digest", 1),
    ("event", 1),
    ("sign", 1),
    ("junit", 1),
    ("wire", 2),
    ("cancel", 2),
    ("attach", 2),
    ("verdict", 2),
    ("baseline", 2),
    ("artifact", 2),
    ("resources", 2),
    ("stall", 2),
    ("history", 2),
    ("input", 2),
    ("combine", 2),
    ("observe", 3),
    ("supervise", 3),
    ("simulate", 3),
    ("evidence", 4),
    ("attempts", 4),
    ("seal", 4),
    ("archive", 4),
    ("resume", 4),
    ("diff", 5),
    ("render", 5),
    ("explain", 5),
    ("verify", 5),
    ("pack", 5),
    ("review", 5),
    ("cli", 7),
    ("main", 7),
];

fn level(module: &str) -> Option<u8> {
    LEVELS.iter().find(|(name, _)| *name == module).map(|(_, level)| *level)
}

fn rust_files(root: &Path) -> Vec<PathBuf> {
    let mut folders = vec![root.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the sources can be listed") {
            let path = entry.expect("the sources can be listed").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found
}

fn sources() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let named = |path: PathBuf| {
        let inside = path.strip_prefix(&root).expect("it lies inside").with_extension("");
        let module = inside.iter().next().expect("it has a name").to_string_lossy().into_owned();
        (module, path)
    };
    rust_files(&root).into_iter().map(named).collect()
}

/// The modules of this crate that a source names after `crate::`, also in a braced list.
fn uses(source: &str) -> Vec<String> {
    let code: Vec<&str> = source.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join("\n");
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut used = Vec::new();
    for after in code.split("crate::").skip(1) {
        match after.strip_prefix('{') {
            Some(list) => used.extend(heads(list).map(|head| word(head.trim_start()))),
            None => used.push(word(after)),
        }
    }
    used
}

/// The entries of a braced list at its own depth.
fn heads(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let end = list.find(|c| {
        depth += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        depth < 0
    });
    let mut inside = 0;
    list[..end.expect("the list is closed")].split(move |c| {
        inside += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        c == ',' && inside == 0
    })
}

#[test]
fn every_module_has_a_level() {
    let mut unknown: Vec<String> = sources().into_iter().map(|(module, _)| module).collect();
    unknown.retain(|module| module != "lib" && level(module).is_none());
    assert!(unknown.is_empty(), "give these modules a level in src/lib.rs and here: {unknown:?}");
}

#[test]
fn no_module_uses_a_higher_one() {
    let mut edges = 0;
    for (module, path) in sources().iter().filter(|(module, _)| module != "lib") {
        let source = fs::read_to_string(path).expect("a source can be read");
        for used in uses(&source) {
            let own = level(module).expect("the other test checks that");
            let other =
                level(&used).unwrap_or_else(|| panic!("{} uses crate::{used}, no module", path.display()));
            assert!(other <= own, "{} (level {own}) uses {used} (level {other})", path.display());
            edges += 1;
        }
    }
    assert!(edges > 20, "only {edges} uses were found: the reading of the sources is broken");
}

#[test]
fn the_documentation_lists_the_same_levels() {
    let lib =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).expect("src/lib.rs");
    for (module, level) in LEVELS.iter().filter(|(module, _)| *module != "main") {
        let row = format!("//! | {level} |");
        let listed =
            lib.lines().any(|line| line.starts_with(&row) && line.contains(&format!("[`{module}`]")));
        assert!(listed, "src/lib.rs does not list {module} at level {level}");
    }
}

/// A command that a test makes by itself has the user's home.
#[test]
fn tests_start_the_program_by_way_of_what_keeps_them_out_of_the_users_home() {
    let ways = ["tests/common/job.rs", "tests/cli/rig.rs", "tests/manual.rs"].map(PathBuf::from);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let starts = ["Command::new(env!(\"CARGO_BIN_EXE", "Command::new(STUCKPROOF"];
    let mut found = 0;
    for path in rust_files(&root.join("tests")) {
        let source = fs::read_to_string(&path).expect("a source can be read");
        let inside = path.strip_prefix(root).expect("it lies inside").to_owned();
        let by_itself = starts.iter().any(|start| source.contains(start)) && !source.contains(".furnish(");
        assert!(!by_itself || ways.contains(&inside), "{} starts the program by itself", path.display());
        found += 1;
    }
    assert!(found > 50, "only {found} sources were found");
}

#[test]
fn braced_lists_are_read() {
    let source = "use crate::{clock::{Anchor, Mono}, event, wire::Record};\n// use crate::cli;\nlet x = crate::fsio::y();";
    assert_eq!(uses(source), ["clock", "event", "wire", "fsio"]);
}
