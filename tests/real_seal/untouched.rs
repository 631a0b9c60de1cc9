//! What nobody has touched verifies: wherever it lies and whoever has finished it.

use crate::common::chance::{Chance, setting};
use crate::common::text;
use crate::scene::{Keys, cancelled, copy, finalize, judge, succeeded};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use stuckproof::pack::pack;
use stuckproof::verify::Wanted;

#[test]
fn bundles_of_every_ending_verify_wherever_they_lie() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    let keys = Keys::make(folder.path(), "ours");
    let (anybody, ours) = (Wanted::default(), keys.wanted());

    let ended = succeeded(&keys);
    copy(&ended.place.bundle(), &at("moved"));
    for wanted in [&anybody, &ours] {
        assert_eq!(judge(&ended.place.bundle(), wanted), (0, Vec::new()));
        assert_eq!(judge(&at("moved"), wanted), (0, Vec::new()));
    }
    let packed = |bundle: &Path, name: &str| pack(bundle, Some(&at(name))).expect("what verifies is packed");
    for wanted in [&anybody, &ours] {
        assert_eq!(judge(&packed(&at("moved"), "signed.tar.zst"), wanted), (0, Vec::new()));
    }
    std::os::unix::fs::symlink(at("moved"), at("link")).expect("a link");
    assert_eq!(judge(&at("link"), &ours), (0, Vec::new()), "a link to the bundle is the user's own");
    fs::set_permissions(at("moved"), fs::Permissions::from_mode(0o555)).expect("read only");
    finalize(&at("moved"));
    assert_eq!(judge(&at("moved"), &ours), (0, Vec::new()));

    let ended = cancelled(&at("middle"));
    assert_eq!(judge(&ended.place.bundle(), &anybody), (1, Vec::new()));
    let unsigned = packed(&ended.place.bundle(), "unsigned.tar.zst");
    assert_eq!(judge(&unsigned, &anybody), (1, Vec::new()));
    for bundle in [ended.place.bundle(), unsigned] {
        let (code, faults) = judge(&bundle, &ours);
        assert_eq!((code, faults), (3, vec!["signed manifest.sig.json ".to_owned()]));
    }

    let (code, faults) = judge(&at("middle"), &anybody);
    assert_eq!((code, faults), (3, vec!["sealed manifest.json ".to_owned()]), "it is not finished");
    finalize(&at("middle"));
    assert_eq!(judge(&at("middle"), &anybody), (1, Vec::new()));
    let (code, faults) = judge(&at("nowhere"), &anybody);
    assert_eq!((code, faults), (3, vec!["readable . ".to_owned()]));
    fs::set_permissions(at("moved"), fs::Permissions::from_mode(0o755)).expect("it can be removed");
    any_change_is_seen(&ended.place.bundle(), &at("changed"), &anybody);
    any_change_is_seen(&at("moved"), &at("changed"), &ours);
}

/// Changes a few bytes somewhere in the bundle, again and again: no such bundle is ever called valid.
fn any_change_is_seen(bundle: &Path, scratch: &Path, wanted: &Wanted) {
    let seed = setting("STUCKPROOF_SEED", 1);
    let mut chance = Chance(seed);
    let runs = setting("STUCKPROOF_RUNS", 60);
    copy(bundle, scratch);
    let mut names: Vec<_> =
        fs::read_dir(scratch).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    names.sort();
    for _ in 0..runs {
        let path = &names[chance.below(names.len() as u64) as usize];
        let before = fs::read(path).expect("a file");
        let after = changed(&before, &mut chance);
        if after == before {
            continue;
        }
        fs::write(path, &after).expect("a file");
        let (code, faults) = judge(scratch, wanted);
        assert!(code >= 2 && !faults.is_empty(), "a change of {} was not seen, seed {seed}", text(path));
        fs::write(path, &before).expect("a file");
    }
    assert!(judge(scratch, wanted).0 < 2);
    fs::remove_dir_all(scratch).expect("gone");
}

fn changed(before: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut after = before.to_vec();
    let at = chance.below(before.len().max(1) as u64) as usize;
    match chance.below(4) {
        _ if before.is_empty() => after.push(b'x'),
        0 => after[at] = chance.below(256) as u8,
        1 => after.truncate(at),
        2 => after.insert(at, b" 0\"\n\\{}"[chance.below(7) as usize]),
        _ => drop(after.drain(at..(at + 1 + chance.below(40) as usize).min(before.len()))),
    }
    after
}
