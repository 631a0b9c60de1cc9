//! Where earlier builds are remembered.

use crate::evidence;
use crate::history::History;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

/// What stands for no history.
const NONE: &str = "none";
/// Says where the history is.
const VARIABLE: &str = "STUCKPROOF_HISTORY";
/// How long the end of a job waits for the folder.
const PATIENCE: Duration = Duration::from_secs(5);

/// The store that the user wants: by option, by environment, else in the user's cache folder.
pub(super) fn store(option: Option<PathBuf>) -> Option<History> {
    choose(option, variable).map(|folder| History::at(&folder))
}

/// The store that the user names, by option or by environment. A bundle may come from another machine, whose times are no
/// measure for this one, so that nothing is learned from it unasked.
pub(super) fn named(option: Option<PathBuf>) -> Option<History> {
    let named = option.or_else(|| set(variable, VARIABLE)).filter(|named| named != Path::new(NONE))?;
    Some(History::at(&named))
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}

/// A variable that is empty is none.
fn set(variable: impl Fn(&str) -> Option<PathBuf>, name: &str) -> Option<PathBuf> {
    variable(name).filter(|value| !value.as_os_str().is_empty())
}

fn choose(option: Option<PathBuf>, variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let set = |name| set(&variable, name);
    match option.or_else(|| set(VARIABLE)) {
        Some(none) if none == Path::new(NONE) => None,
        Some(folder) => Some(folder),
        None => {
            let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
            // The XDG rules leave a relative folder aside.
            Some(cache.filter(|cache| cache.is_absolute())?.join("stuckproof/history"))
        }
    }
}

/// Remembers the builds of a finished bundle, and gives what is to be said where that fails: the job is none the worse for it.
pub(super) fn learn(history: History, bundle: &Path) -> Option<String> {
    let (bundle, folder) = (bundle.to_owned(), history.folder().to_owned());
    let (tell, told) = mpsc::channel();
    // The folder may lie on a disk that does not answer, and everything else is done by now.
    std::thread::spawn(move || tell.send(remember(&history, &bundle)));
    match told.recv_timeout(PATIENCE) {
        Ok(why) => Some(format!("this build is not remembered: {}; give another --history, or none", why?)),
        Err(_) => Some(format!("this build may not be remembered: {} does not answer", folder.display())),
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
