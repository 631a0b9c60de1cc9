//! What is done before anything runs: the paths are understood and claimed, what is there is protected, and the command
//! learns where to write. What fails here has changed nothing.

use super::place::{self, Place};
use super::work::{Claimed, Owner};
use super::{ArtifactError, cache, copy, facts, work};
use crate::event::{ArtifactDeclared, ArtifactKind, ArtifactMode, CachePolicy};
use crate::fsio;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Room that is left on the disk beyond the size of what is there already.
const ROOM: u64 = 1 << 20;

/// The artifacts that the user has named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Engines: files or folders.
    pub engines: Vec<PathBuf>,
    /// The timing cache.
    pub timing_cache: Option<PathBuf>,
    /// What the job may do with it.
    pub policy: CachePolicy,
    /// The user's own check of the first engine, a shell command.
    pub validate: Option<String>,
}

/// Artifacts in our care.
#[derive(Debug, Default)]
pub struct Prepared {
    /// What the log is to say of them.
    pub declared: Vec<ArtifactDeclared>,
    /// What holds them.
    pub claims: Vec<Claimed>,
}

/// Takes the artifacts into our care, and puts their places into the command.
///
/// # Errors
/// As [`ArtifactError`] lists; then everything is as before.
pub fn prepare(wishes: &Wishes, argv: &mut [OsString], owner: &Owner) -> Result<Prepared, ArtifactError> {
    let mut prepared = Prepared::default();
    for (path, kind, placeholders) in wishes.named() {
        let place = Place::find(path)?;
        if place.folder && kind == ArtifactKind::TimingCache {
            return Err(ArtifactError::Kind { path: path.clone(), found: "a folder", meant: "a file" });
        }
        if prepared.declared.iter().any(|other| Path::new(&other.target) == place.target) {
            return Err(ArtifactError::Twice { path: path.clone() });
        }
        let staged = placeholders.iter().any(|name| argv.iter().any(|word| contains(word, name)));
        let policy = (kind == ArtifactKind::TimingCache).then_some(wishes.policy);
        let possible = [CachePolicy::Reuse, CachePolicy::Refresh];
        if !staged && policy.is_some_and(|policy| !possible.contains(&policy)) {
            return Err(ArtifactError::Policy);
        }
        let wish = Wish { kind, staged, policy, must_validate: wishes.validate.is_some() };
        let artifact = u32::try_from(prepared.declared.len() + 1).unwrap_or(u32::MAX);
        let (claim, declared) = take(artifact, &place, wish, owner)?;
        for word in argv.iter_mut() {
            for name in &placeholders {
                replace(word, name, declared.written.as_ref());
            }
        }
        prepared.claims.push(claim);
        prepared.declared.push(declared);
    }
    if !prepared.declared.is_empty() {
        check_placeholders(argv)?;
    }
    Ok(prepared)
}

/// Puts the artifacts' own paths in the place of the placeholders, where nobody takes care of them.
pub fn name_plainly(wishes: &Wishes, argv: &mut [OsString]) {
    for (path, _, placeholders) in wishes.named() {
        for word in argv.iter_mut() {
            for name in &placeholders {
                replace(word, name, path.as_os_str());
            }
        }
    }
}

impl Wishes {
    /// Every artifact with its placeholders.
    fn named(&self) -> impl Iterator<Item = (&PathBuf, ArtifactKind, Vec<String>)> {
        let engines = self.engines.iter().zip(1..).map(|(path, number)| {
            (path, ArtifactKind::Engine, place::placeholders(ArtifactKind::Engine, number))
        });
        let cache = self
            .timing_cache
            .iter()
            .map(|path| (path, ArtifactKind::TimingCache, place::placeholders(ArtifactKind::TimingCache, 1)));
        engines.chain(cache)
    }
}

/// How an artifact is to be taken.
#[derive(Clone, Copy)]
struct Wish {
    kind: ArtifactKind,
    staged: bool,
    policy: Option<CachePolicy>,
    must_validate: bool,
}

/// Takes one artifact: claims it, looks at what is there, and makes the command's place or the copy.
fn take(
    artifact: u32,
    place: &Place,
    wish: Wish,
    owner: &Owner,
) -> Result<(Claimed, ArtifactDeclared), ArtifactError> {
    let failed = |action, source| ArtifactError::Content { action, path: place.target.clone(), source };
    let shared = wish.staged && wish.policy.is_some();
    let work =
        if shared { place::shared_work(&place.target, &owner.job) } else { place::work(&place.target) };
    // Of two jobs on one cache that begin at once, one looks after the other has claimed it. Nor must another job publish
    // between the look at the cache and the copy.
    let cache = wish.policy.is_some();
    let _lock = cache.then(|| cache::lock(&place.target)).transpose().map_err(|e| failed("lock", e))?;
    if cache {
        work::admit(&place.target, shared)?;
    }
    let mut claim = Claimed::claim(&place.target, work, owner)?;
    let mut previous = facts::of(&place.target).map_err(|e| failed("examine", e))?;
    if let Some(previous) = previous.as_mut().filter(|_| wish.policy.is_some()) {
        previous.sha256 = Some(facts::digest(&place.target).map_err(|e| failed("read", e))?);
    }
    check_room(&place.target, previous.as_ref().map_or(0, |previous| previous.bytes))?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let staging = place::own_place(wish.kind, &place.target, &owner.job);
    let declared = ArtifactDeclared {
        artifact,
        kind: wish.kind,
        folder: place.folder,
        path: text(&place.path),
        target: text(&place.target),
        mode: if wish.staged { ArtifactMode::Staged } else { ArtifactMode::InPlace },
        written: text(if wish.staged { &staging } else { &place.target }),
        work: text(claim.folder()),
        policy: wish.policy,
        must_validate: wish.must_validate,
        previous,
    };
    claim.describe(&declared)?;
    let away = declared.mode == ArtifactMode::InPlace && declared.policy == Some(CachePolicy::Refresh);
    let furnished = if away && declared.previous.is_some() {
        claim.take_away(&place.target)
    } else {
        furnish(&declared, &staging, claim.folder())
    };
    furnished.map_err(|e| failed("keep a copy of", e))?;
    fsio::sync_folder(claim.folder())?;
    Ok((claim, declared))
}

/// Makes the command's place, or the copy of what is there. A timing cache is read as well as written, so its place holds
/// what was there.
fn furnish(declared: &ArtifactDeclared, staging: &Path, work: &Path) -> io::Result<()> {
    let target = Path::new(&declared.target);
    if declared.mode == ArtifactMode::InPlace {
        return if declared.previous.is_some() { copy::copy(target, &place::kept(work)) } else { Ok(()) };
    }
    fs::create_dir(place::folder_of(staging))?;
    let read = matches!(declared.policy, Some(CachePolicy::Reuse | CachePolicy::Readonly));
    if read && declared.previous.as_ref().is_some_and(|previous| previous.bytes > 0) {
        copy::copy(target, staging)
    } else if declared.folder {
        fs::create_dir(staging)
    } else {
        Ok(())
    }
}

/// The new one may be as large as the one that is there, and both are there for a while.
fn check_room(target: &Path, previous: u64) -> Result<(), ArtifactError> {
    let Ok(disk) = rustix::fs::statvfs(place::folder_of(target)) else { return Ok(()) };
    let (free, needed) = (disk.f_bavail.saturating_mul(disk.f_frsize), previous.saturating_add(ROOM));
    if free >= needed { Ok(()) } else { Err(ArtifactError::Space { path: target.to_owned(), free, needed }) }
}

/// Whether every placeholder that is left means something else.
fn check_placeholders(argv: &[OsString]) -> Result<(), ArtifactError> {
    for word in argv {
        let text = word.to_string_lossy();
        for start in ["{engine", "{timing_cache"] {
            let Some(found) = text.find(start).map(|at| &text[at..]) else { continue };
            if let Some(end) = found.find('}')
                && found[start.len()..end].chars().all(|c| c == ':' || c.is_ascii_digit())
            {
                return Err(ArtifactError::Placeholder { placeholder: found[..=end].to_owned() });
            }
        }
    }
    Ok(())
}

fn contains(word: &OsStr, name: &str) -> bool {
    word.as_bytes().windows(name.len()).any(|part| part == name.as_bytes())
}

/// Puts a path in the place of every placeholder of this name.
fn replace(word: &mut OsString, name: &str, path: &OsStr) {
    let mut rest = word.as_bytes();
    let mut whole = Vec::new();
    while let Some(at) = rest.windows(name.len()).position(|part| part == name.as_bytes()) {
        whole.extend_from_slice(&rest[..at]);
        whole.extend_from_slice(path.as_bytes());
        rest = &rest[at + name.len()..];
    }
    whole.extend_from_slice(rest);
    *word = OsString::from_vec(whole);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> Owner {
        Owner { job: "j".to_owned(), pid: 1, bundle: "/b".into() }
    }

    fn wishes(engines: &[&Path]) -> Wishes {
        Wishes { engines: engines.iter().map(|path| path.to_path_buf()).collect(), ..Wishes::default() }
    }

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn placeholders_become_places_of_the_job_on_the_same_disk() {
        let folder = tempfile::tempdir().unwrap();
        let real = fs::canonicalize(folder.path()).unwrap();
        let (a, b) = (real.join("a.engine"), real.join("b.engine"));
        let mut argv = words(&["build", "--save={engine}", "{engine:2}", "{other}"]);
        let prepared = prepare(&wishes(&[&a, &b]), &mut argv, &owner()).unwrap();
        let a = real.join("a.engine.stuckproof/j/a.engine");
        assert_eq!(argv[1].to_str().unwrap(), format!("--save={}", a.display()));
        assert_eq!(argv[2], real.join("b.engine.stuckproof/j/b.engine").into_os_string());
        assert_eq!(argv[3], "{other}");
        assert!(a.parent().unwrap().is_dir() && !a.exists());
        drop(prepared);
        assert_eq!(fs::read_dir(&real).unwrap().count(), 0, "nothing was run, nothing is left");
    }

    #[test]
    fn what_is_there_is_copied_only_where_the_command_writes_to_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine");
        fs::write(&path, "old").unwrap();
        let prepared = prepare(&wishes(&[&path]), &mut words(&["build"]), &owner()).unwrap();
        let kept = folder.path().join("engine.stuckproof/kept");
        assert_eq!(fs::read(kept).unwrap(), b"old");
        assert_eq!(prepared.declared[0].previous.as_ref().unwrap().bytes, 3);
        drop(prepared);
        let prepared = prepare(&wishes(&[&path]), &mut words(&["build", "{engine}"]), &owner()).unwrap();
        assert!(!folder.path().join("engine.stuckproof/kept").exists());
        assert_eq!(prepared.declared[0].mode, ArtifactMode::Staged);
    }

    #[test]
    fn faults_are_told_before_anything_runs_and_leave_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine");
        let refused = |wishes: &Wishes, argv: &[&str]| {
            let error = prepare(wishes, &mut words(argv), &owner()).unwrap_err().to_string();
            assert!(fs::read_dir(folder.path()).unwrap().count() <= 1, "{error}");
            error
        };
        assert!(refused(&wishes(&[&path]), &["{engine:2}"]).contains("{engine:2}"));
        assert!(refused(&wishes(&[&path]), &["{timing_cache}"]).contains("{timing_cache}"));
        assert!(refused(&wishes(&[&path, &path]), &[]).contains("twice"));
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
            .unwrap();
        assert!(refused(&wishes(&[&path]), &[]).contains("meant to be a file"));
    }
}
