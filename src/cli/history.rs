//! Where earlier builds are remembered.

use super::say;
use crate::evidence;
use crate::history::History;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

/// What stands for no history.
const NONE: &str = "none";
/// How long the end of a job waits for the folder.
const PATIENCE: Duration = Duration::from_secs(5);

/// The store that the user wants: by option, by environment, else in the user's cache folder.
pub(super) fn store(option: Option<PathBuf>) -> Option<History> {
    choose(option, |name| std::env::var_os(name).map(PathBuf::from)).map(|folder| History::at(&folder))
}

fn choose(option: Option<PathBuf>, variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.as_os_str().is_empty());
    match option.or_else(|| set("STUCKPROOF_HISTORY")) {
        Some(none) if none == Path::new(NONE) => None,
        Some(folder) => Some(folder),
        None => {
            let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
            // The XDG rules leave a relative folder aside.
            Some(cache.filter(|cache| cache.is_absolute())?.join("stuckproof/history"))
        }
    }
}

/// Remembers the builds of a finished bundle. What cannot be remembered is said; the job is none the worse for it.
pub(super) fn learn(history: History, bundle: &Path) {
    let (bundle, folder) = (bundle.to_owned(), history.folder().to_owned());
    let (tell, told) = mpsc::channel();
    // The folder may lie on a disk that does not answer, and everything else is done by now.
    std::thread::spawn(move || tell.send(remember(&history, &bundle)));
    match told.recv_timeout(PATIENCE) {
        Ok(None) => {}
        Ok(Some(why)) => {
            say(&format!("this build is not remembered: {why}; give another --history, or none"));
        }
        Err(_) => say(&format!("this build may not be remembered: {} does not answer", folder.display())),
    }
}

fn remember(history: &History, bundle: &Path) -> Option<String> {
    // A bundle that cannot be read has been complained of already.
    let bundle = evidence::load(bundle).ok()?;
    evidence::lessons(&bundle).iter().find_map(|entry| history.keep(entry).err()).map(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_comes_before_the_environment_and_that_before_the_cache_folder() {
        let chosen = |option: Option<&str>, variables: &[(&str, &str)]| {
            let variable = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| PathBuf::from(value))
            };
            choose(option.map(PathBuf::from), variable).map(|path| path.to_string_lossy().into_owned())
        };
        let home = [("HOME", "/h"), ("STUCKPROOF_HISTORY", "")];
        assert_eq!(chosen(None, &home).as_deref(), Some("/h/.cache/stuckproof/history"));
        let cache = [("HOME", "/h"), ("XDG_CACHE_HOME", "/c")];
        assert_eq!(chosen(None, &cache).as_deref(), Some("/c/stuckproof/history"));
        let set = [("HOME", "/h"), ("STUCKPROOF_HISTORY", "/s")];
        assert_eq!(chosen(None, &set).as_deref(), Some("/s"));
        assert_eq!(chosen(Some("o"), &set).as_deref(), Some("o"));
        assert_eq!(chosen(Some("none"), &set), None);
        assert_eq!(chosen(None, &[("HOME", "/h"), ("STUCKPROOF_HISTORY", "none")]), None);
        assert_eq!(chosen(None, &[]), None);
    }
}
