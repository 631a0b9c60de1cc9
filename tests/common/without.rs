//! What a machine may lack.

/// Whether a test goes without something that this machine lacks: only where its user said so by name, in the list
/// `STUCKPROOF_WITHOUT` (`strace,bindfs,namespaces,root`). Otherwise the test fails.
pub fn goes_without(what: &str) -> bool {
    let named =
        std::env::var("STUCKPROOF_WITHOUT").is_ok_and(|list| list.split(',').any(|name| name == what));
    assert!(named, "{what} cannot be had here; to test without it, name it: STUCKPROOF_WITHOUT={what}");
    eprintln!("not run: without {what}, as asked");
    true
}
