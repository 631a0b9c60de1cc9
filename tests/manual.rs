//! `man/` is what the command line says.

use std::fs;
use std::path::Path;

/// Set to 1, this variable makes the test write the pages instead of comparing them.
const UPDATE: &str = "STUCKPROOF_UPDATE_MANUAL";

/// The pages by file name: one for the program and one for each verb that people use.
fn pages() -> Vec<(String, String)> {
    let program = stuckproof::cli::command();
    let verbs = program.get_subcommands().filter(|verb| !verb.is_hide_set()).map(|verb| {
        // clap wants names that live for ever.
        let name: &str = Box::leak(format!("stuckproof-{}", verb.get_name()).into_boxed_str());
        verb.clone().name(name).display_name(name)
    });
    let render = |command: clap::Command| {
        let name = format!("{}.1", command.get_name());
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page).expect("a page can be rendered");
        (name, String::from_utf8(page).expect("a page is text"))
    };
    std::iter::once(program.clone()).chain(verbs).map(render).collect()
}

#[test]
fn the_manual_on_record_is_the_one_of_the_command_line() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("man");
    let pages = pages();
    if std::env::var_os(UPDATE).is_some_and(|value| value == "1") {
        fs::create_dir_all(&folder).expect("the folder can be made");
        for (name, page) in &pages {
            fs::write(folder.join(name), page).expect("a page can be written");
        }
    }
    for (name, page) in &pages {
        let recorded = fs::read_to_string(folder.join(name)).unwrap_or_default();
        assert_eq!(&recorded, page, "run this test with {UPDATE}=1 and commit man/{name}");
    }
    let kept = fs::read_dir(&folder).expect("man is in the repository").count();
    assert_eq!(kept, pages.len(), "a page in man belongs to no verb");
}

#[test]
fn every_shell_gets_completions() {
    for shell in ["bash", "zsh", "fish"] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_stuckproof"))
            .args(["completions", shell])
            .output()
            .expect("stuckproof starts");
        let text = String::from_utf8(output.stdout).expect("completions are text");
        assert!(output.status.success() && text.contains("cancel-on-stdin-close"), "{shell}: {text}");
    }
}
