//! What can be wrong with a bundle.

use serde::Serialize;

/// What a bundle must hold to. The names are an interface; `docs/verify.md` explains each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Everything can be read.
    Readable,
    /// The archive, where there is one, is in the form in which stuckproof writes it.
    Archive,
    /// There is a manifest.
    Sealed,
    /// The manifest is one that stuckproof writes.
    Manifest,
    /// There is nothing in the folder that the manifest does not list.
    ClosedWorld,
    /// Everything that the manifest lists, and everything that a bundle needs, is there.
    Missing,
    /// Only plain files with one plain name each.
    PlainFiles,
    /// Every file has the size and the digest that the manifest says.
    Digest,
    /// Every line of the log is one that stuckproof writes for its event.
    Record,
    /// The lines are numbered 1, 2, 3 …, the header first.
    Sequence,
    /// Each line names the digest of the line before.
    Chain,
    /// Exactly one end, in the last line.
    Terminal,
    /// The end on record follows from the events.
    State,
    /// The manifest names the log's last line.
    ChainHead,
    /// All files are of one job.
    Job,
    /// The baseline is one that stuckproof writes.
    Baseline,
    /// The derived files are those that follow from the log.
    Derived,
    /// A signature is there where one is wanted.
    Signed,
    /// The signature's file is an envelope with what stuckproof signs.
    Statement,
    /// The signature is of an allowed signer.
    Signer,
    /// The addenda are of this bundle, numbered and chained.
    Addendum,
    /// The attempts at a job are all there, in their order, and the record of them follows from them.
    Attempts,
}

impl Rule {
    /// Every rule, in the order of the documentation.
    pub const ALL: [Self; 22] = [
        Self::Readable,
        Self::Archive,
        Self::Sealed,
        Self::Manifest,
        Self::ClosedWorld,
        Self::Missing,
        Self::PlainFiles,
        Self::Digest,
        Self::Record,
        Self::Sequence,
        Self::Chain,
        Self::Terminal,
        Self::State,
        Self::ChainHead,
        Self::Job,
        Self::Baseline,
        Self::Derived,
        Self::Signed,
        Self::Statement,
        Self::Signer,
        Self::Addendum,
        Self::Attempts,
    ];

    /// The stable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Readable => "readable",
            Self::Archive => "archive",
            Self::Sealed => "sealed",
            Self::Manifest => "manifest",
            Self::ClosedWorld => "closed_world",
            Self::Missing => "missing",
            Self::PlainFiles => "plain_files",
            Self::Digest => "digest",
            Self::Record => "record",
            Self::Sequence => "sequence",
            Self::Chain => "chain",
            Self::Terminal => "terminal",
            Self::State => "state",
            Self::ChainHead => "chain_head",
            Self::Job => "job",
            Self::Baseline => "baseline",
            Self::Derived => "derived",
            Self::Signed => "signed",
            Self::Statement => "statement",
            Self::Signer => "signer",
            Self::Addendum => "addendum",
            Self::Attempts => "attempts",
        }
    }
}

/// What a fault means for the bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// The bundle is not what was sealed, or was never right.
    Invalid,
    /// Nobody can tell from here.
    CannotTell,
}

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The rule that it breaks.
    pub rule: Rule,
    /// What it means.
    pub weight: Weight,
    /// The file.
    pub file: String,
    /// The field or the line in it; empty where it is the whole file.
    pub field: String,
    /// What is wrong, for a person.
    pub what: String,
}

/// The faults of a bundle, as many as a person reads.
#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) list: Vec<Fault>,
    /// The bundle was derived by another version, whose meaning this one cannot judge.
    pub(super) foreign: Option<String>,
}

/// More faults than these say nothing new.
const MOST: usize = 100;

impl Faults {
    /// A fault that no version can explain.
    pub(super) fn invalid(&mut self, rule: Rule, file: &str, field: &str, what: impl Into<String>) {
        self.put(rule, Weight::Invalid, file, field, what.into());
    }

    /// Something that nobody can tell from here.
    pub(super) fn cannot_tell(&mut self, rule: Rule, file: &str, field: &str, what: impl Into<String>) {
        self.put(rule, Weight::CannotTell, file, field, what.into());
    }

    /// A fault in the meaning of what is written, which another version may have written by other rules.
    pub(super) fn by_our_rules(&mut self, rule: Rule, file: &str, field: &str, what: impl Into<String>) {
        let what = what.into();
        match &self.foreign {
            None => self.put(rule, Weight::Invalid, file, field, what),
            Some(version) => {
                let what = format!(
                    "{what}; the bundle is of stuckproof {version}, this is {}: verify it with that version",
                    env!("CARGO_PKG_VERSION")
                );
                self.put(rule, Weight::CannotTell, file, field, what);
            }
        }
    }

    fn put(&mut self, rule: Rule, weight: Weight, file: &str, field: &str, what: String) {
        let known = |fault: &Fault| fault.rule == rule && fault.file == file && fault.field == field;
        if self.list.len() < MOST && !self.list.iter().any(known) {
            let (file, field) = (file.to_owned(), field.to_owned());
            self.list.push(Fault { rule, weight, file, field, what });
        }
    }
}
