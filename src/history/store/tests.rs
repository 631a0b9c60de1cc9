use super::super::entry::FORMAT;
use super::*;
use proptest::prelude::*;
use std::os::unix::fs::symlink;

fn key(sku: &str, cache: &str) -> Key {
    Key { shape: "shape".to_owned(), sku: sku.to_owned(), cache: cache.to_owned() }
}

fn entry(key: Key, job: &str, total_ms: u64) -> Entry {
    Entry {
        format: FORMAT,
        job: job.to_owned(),
        build: 1,
        key,
        outcome: Outcome::Succeeded,
        total_ms,
        longest_idle_ms: 0,
        silences: Vec::new(),
        phases: Vec::new(),
        stalled_in: Vec::new(),
    }
}

fn store() -> (tempfile::TempDir, History) {
    let folder = tempfile::tempdir().unwrap();
    let history = History::at(&folder.path().join("history"));
    (folder, history)
}

#[test]
fn what_was_kept_is_found_and_what_is_most_alike_is_used() {
    let (_folder, history) = store();
    let found = |sku, cache| {
        let found = history.find(key(sku, cache));
        (found.likeness, found.builds, found.total.map(|total| total.as_secs()))
    };
    assert_eq!(found("A", "none"), (Likeness::None, 0, None));
    history.keep(&entry(key("B", "none"), "1", 9_000)).unwrap();
    assert_eq!(found("A", "none"), (Likeness::OtherGpu, 1, Some(9)));
    history.keep(&entry(key("A", "attached"), "2", 5_000)).unwrap();
    assert_eq!(found("A", "none"), (Likeness::OtherCache, 1, Some(5)));
    history.keep(&entry(key("A", "none"), "3", 7_000)).unwrap();
    assert_eq!(found("A", "none"), (Likeness::Same, 1, Some(7)));
    let failed = Entry {
        outcome: Outcome::NotSucceeded,
        stalled_in: vec!["p".to_owned()],
        ..entry(key("B", "cold"), "4", 1)
    };
    history.keep(&failed).unwrap();
    assert_eq!(found("B", "cold"), (Likeness::OtherCache, 1, Some(9)));
    assert_eq!(history.find(key("B", "cold")).stalls_in(Some("p")), 1);
}

#[test]
fn an_entry_is_replaced_by_its_own_build_only() {
    let (_folder, history) = store();
    let stalled = Entry { outcome: Outcome::Stalled, ..entry(key("A", "none"), "1", 3_000) };
    history.keep(&stalled).unwrap();
    history.keep(&entry(key("A", "none"), "1", 4_000)).unwrap();
    history.keep(&entry(key("A", "none"), "2", 6_000)).unwrap();
    let found = history.find(key("A", "none"));
    assert_eq!((found.builds, found.total), (2, Some(Duration::from_secs(5))));
}

#[test]
fn the_newest_are_kept() {
    let (_folder, history) = store();
    for job in 0..KEPT + 10 {
        history.keep(&entry(key("A", "none"), &format!("20260101t{job:06}z"), 1)).unwrap();
    }
    let names = list(&history.shelf(&key("A", "none"))).unwrap();
    assert_eq!(names.len(), KEPT);
    assert!(!names.iter().any(|name| name.contains("t000009z")));
}

#[test]
fn damaged_foreign_and_hostile_entries_are_passed_over_with_a_note() {
    let (folder, history) = store();
    history.keep(&entry(key("A", "none"), "1", 7_000)).unwrap();
    let shelf = history.shelf(&key("A", "none"));
    let (own, good) = (label(&key("A", "none")), fs::read(shelf.join(&list(&shelf).unwrap()[0])).unwrap());
    let good = String::from_utf8(good).unwrap();
    let put = |name: &str, text: &str| fs::write(shelf.join(format!("{own}-{name}.json")), text).unwrap();
    put("2", &good[..good.len() / 2]);
    put("3", &good.replace("\"format\":1", "\"format\":2"));
    put("4", &good.replace("\"shape\":\"shape\"", "\"shape\":\"other\""));
    put("5", &good.replace("7000", "18446744073709551615"));
    symlink("/etc/passwd", shelf.join(format!("{own}-6.json"))).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        shelf.join(format!("{own}-7.json")),
        rustix::fs::FileType::Fifo,
        Mode::RWXU,
        0,
    )
    .unwrap();
    fs::create_dir(shelf.join(format!("{own}-8.json"))).unwrap();
    let found = history.find(key("A", "none"));
    assert_eq!((found.builds, found.total), (1, Some(Duration::from_secs(7))));
    assert_eq!(found.notes.len(), NOTES, "{:?}", found.notes);
    assert!(found.notes.iter().all(|note| note.contains("passed over")), "{:?}", found.notes);
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let nowhere = History::at(&file);
    assert_eq!(nowhere.find(key("A", "none")).notes.len(), 1);
    assert!(nowhere.keep(&entry(key("A", "none"), "1", 1)).unwrap_err().to_string().contains("is a file"));
}

#[test]
fn jobs_that_end_at_once_lose_nothing() {
    let (_folder, history) = store();
    std::thread::scope(|scope| {
        for job in 0..8 {
            let history = &history;
            scope.spawn(move || history.keep(&entry(key("A", "none"), &job.to_string(), 1_000)).unwrap());
        }
    });
    assert_eq!(list(&history.shelf(&key("A", "none"))).unwrap().len(), 8);
}

proptest! {
    #[test]
    fn any_bytes_are_an_entry_or_a_note(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (_folder, history) = store();
        history.keep(&entry(key("A", "none"), "1", 1_000)).unwrap();
        let name = format!("{}-2.json", label(&key("A", "none")));
        fs::write(history.shelf(&key("A", "none")).join(name), bytes).unwrap();
        let found = history.find(key("A", "none"));
        prop_assert_eq!(found.builds as usize + found.notes.len(), 2);
    }
}
