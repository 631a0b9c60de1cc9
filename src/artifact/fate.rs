//! What is to be done with an artifact: one table.

use crate::event::ArtifactMode;

/// What the command has left of an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// Nothing is there.
    Nothing,
    /// What is there is what the command was given.
    Untouched,
    /// Something else.
    New,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// What the command wrote is, or becomes, what is at the path.
    Publish,
    /// What is at the path is as it was before.
    Leave,
    /// What the command wrote goes to the quarantine.
    SetAside,
    /// The same, and what was there before comes back.
    PutBack,
}

/// The table. `accepted` says whether it passed the checks, in a job all of whose artifacts did; `previous` whether
/// something was there before.
pub(super) fn of(mode: ArtifactMode, written: Written, accepted: bool, previous: bool) -> Fate {
    match (written, mode) {
        _ if accepted => Fate::Publish,
        (Written::Untouched, _) | (Written::Nothing, ArtifactMode::Staged) => Fate::Leave,
        (_, ArtifactMode::InPlace) if previous => Fate::PutBack,
        (Written::Nothing, ArtifactMode::InPlace) => Fate::Leave,
        (Written::New, _) => Fate::SetAside,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_accepted_is_published_and_the_previous_one_is_never_given_up() {
        for mode in [ArtifactMode::Staged, ArtifactMode::InPlace] {
            for written in [Written::Nothing, Written::Untouched, Written::New] {
                for previous in [false, true] {
                    assert_eq!(of(mode, written, true, previous), Fate::Publish);
                    let refused = of(mode, written, false, previous);
                    assert_ne!(refused, Fate::Publish);
                    let changed = mode == ArtifactMode::InPlace && written != Written::Untouched;
                    assert_eq!(refused == Fate::PutBack, changed && previous);
                }
            }
        }
    }
}
