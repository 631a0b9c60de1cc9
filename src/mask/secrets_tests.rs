use super::*;
use std::os::unix::ffi::OsStringExt;

fn secrets(values: &[&str]) -> Secrets {
    Secrets::new(values.iter().map(OsString::from))
}

fn hidden(secrets: &Secrets, text: &str) -> String {
    let mut text = text.to_owned();
    secrets.hide(&mut text);
    text
}

#[test]
fn variables_options_and_addresses_are_collected() {
    let environment = [
        ("API_KEY", "key-in-environment"),
        ("PIP_INDEX_URL", "https://me:password-in-address@host/simple"),
        ("HOME", "/home/nobody-secret"),
        ("SSH_AUTH_SOCK", "/proc/self/status"),
        ("SHORT_TOKEN", "1234567"),
        ("DEPLOY", "asked-for-by-name"),
        ("PUBLIC_KEY", "not-to-be-masked"),
    ];
    let argv = [
        "tool",
        "--token",
        "token-in-argument",
        "--password=password-in-argument",
        "--key",
        "-v",
        "https://token-as-user@host/",
        "https://ssh:443/plain-address",
    ];
    let rules = Rules { also: vec!["DEPLOY".to_owned()], never: vec!["PUBLIC_KEY".to_owned()] };
    let found = Secrets::collect(
        &rules,
        environment.map(|(name, value)| (name.into(), value.into())),
        &argv.map(OsString::from),
    );
    let expected = [
        "asked-for-by-name",
        "key-in-environment",
        "password-in-address",
        "password-in-argument",
        "token-as-user",
        "token-in-argument",
    ];
    assert_eq!(found.values(), expected.map(OsString::from));
}

#[test]
fn secrets_inside_of_others_and_over_each_other_leave_nothing() {
    let secrets = secrets(&["abcdefgh", "abcdefghijkl", "efghijklmnop"]);
    assert_eq!(hidden(&secrets, "-abcdefgh-"), "-(masked)-");
    assert_eq!(hidden(&secrets, "-abcdefghijkl-"), "-(masked)-");
    assert_eq!(hidden(&secrets, "-abcdefghijklmnop-"), "-(masked)-");
    assert_eq!(hidden(&secrets, "abcdefgabcdefgh"), "abcdefg(masked)");
}

#[test]
fn forms_of_other_writers_are_known() {
    let secrets = secrets(&["pass\"w\\ord/é\u{1f511}", "line one of it\nline two of it\n"]);
    for text in [
        "pass\"w\\ord/é\u{1f511}",
        r#"pass\"w\\ord/é🔑"#,
        r#"pass\"w\\ord\/é🔑"#,
        r#"pass\"w\\ord/\u00e9\ud83d\udd11"#,
        r#"pass\"w\\ord/\u00E9\uD83D\uDD11"#,
        "pass%22w%5Cord%2F%C3%A9%F0%9F%94%91",
        "line one of it",
        "line two of it",
    ] {
        assert_eq!(hidden(&secrets, text), MASK, "{text}");
    }
}

#[test]
fn a_value_of_any_bytes_is_found_as_it_is_shown() {
    let value = OsString::from_vec(b"secret \xff value".to_vec());
    let secrets = Secrets::new([value.clone()]);
    assert_eq!(hidden(&secrets, &format!("a {} b", value.to_string_lossy())), "a (masked) b");
    assert!(secrets.is_in(b"..secret \xff value.."));
}

#[test]
fn what_a_cut_leaves_of_a_secret_goes_as_well() {
    let secrets = secrets(&["0123456789abcdef"]);
    let cut = |text: &str| {
        let mut text = text.to_owned();
        secrets.hide_cut(&mut text);
        text
    };
    assert_eq!(cut("x 0123456789abcde"), "x (masked)");
    assert_eq!(cut("x 01234567"), "x (masked)");
    assert_eq!(cut("x 0123456"), "x 0123456");
    assert_eq!(cut("0123456789abcdef 012345678"), "(masked) (masked)");
}

#[test]
fn a_document_is_masked_in_its_texts_only() {
    let document = std::collections::BTreeMap::from([
        ("planted-name".to_owned(), vec!["planted-name here".to_owned()]),
        ("other".to_owned(), Vec::new()),
    ]);
    let masked = secrets(&["planted-name"]).document(document);
    assert_eq!(masked["planted-name"], ["(masked) here"]);
}

#[test]
fn without_secrets_nothing_changes() {
    let none = secrets(&["short"]);
    assert!(none.is_empty() && none.count() == 0);
    assert_eq!(hidden(&none, "short"), "short");
}
