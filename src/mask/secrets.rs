//! The values that no file of a bundle may hold, and how they are found in texts.

use super::{MASK, Rules};
use aho_corasick::{AhoCorasick, MatchKind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Shorter values, in bytes, are not looked for: they stand in too many texts by chance. It is no less than the mask's
/// own length, so that masking never makes a text longer.
pub const SHORTEST: usize = 8;

/// The secrets of a job: the values of secret-looking variables and options, and the passwords in addresses.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    values: BTreeSet<OsString>,
    finder: Option<AhoCorasick>,
    longest: usize,
}

impl Secrets {
    /// The secrets in an environment and in a command.
    pub fn collect(
        rules: &Rules,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        argv: &[OsString],
    ) -> Self {
        let mut values = Vec::new();
        for (name, value) in environment {
            if rules.is_secret(&name.to_string_lossy()) {
                values.push(value);
            } else {
                values.extend(passwords(&value));
            }
        }
        let mut secret_follows = false;
        for word in argv {
            let (name, given) = split_option(word);
            let named = rules.is_secret(&name.to_string_lossy());
            match given {
                _ if secret_follows && !word.as_bytes().starts_with(b"-") => values.push(word.clone()),
                Some(given) if named => values.push(given),
                _ => values.extend(passwords(word)),
            }
            secret_follows = given_later(word) && named;
        }
        // A name often looks secret where its value only says where the secret lies.
        values.retain(|value| !is_file(value));
        Self::new(values)
    }

    /// These values, in every form in which a program may print them.
    pub fn new(values: impl IntoIterator<Item = OsString>) -> Self {
        let values: BTreeSet<OsString> =
            values.into_iter().filter(|value| value.as_bytes().len() >= SHORTEST).collect();
        let mut forms: BTreeSet<Vec<u8>> = values.iter().flat_map(|value| forms(value)).collect();
        forms.retain(|form| form.len() >= SHORTEST);
        let longest = forms.iter().map(Vec::len).max().unwrap_or_default();
        // All matches are wanted, overlapping ones too, which this kind alone finds.
        let finder = AhoCorasick::builder().match_kind(MatchKind::Standard).build(&forms);
        // Too many of them for an automaton would be gigabytes of secrets.
        let finder = finder.ok().filter(|_| longest > 0);
        Self { values, finder, longest }
    }

    /// The values themselves.
    #[must_use]
    pub fn values(&self) -> Vec<OsString> {
        self.values.iter().cloned().collect()
    }

    /// How many values are known.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.values.len() as u64
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.finder.is_none()
    }

    /// The bytes of the longest form.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Whether a text holds one of them.
    #[must_use]
    pub fn is_in(&self, text: impl AsRef<[u8]>) -> bool {
        self.finder.as_ref().is_some_and(|finder| finder.is_match(text.as_ref()))
    }

    /// Where they stand, in order; those that overlap are one.
    pub(super) fn find(&self, bytes: &[u8]) -> Vec<(usize, usize)> {
        let Some(finder) = &self.finder else { return Vec::new() };
        let mut found: Vec<(usize, usize)> =
            finder.find_overlapping_iter(bytes).map(|found| (found.start(), found.end())).collect();
        found.sort_unstable();
        found.dedup_by(|next, before| {
            let joins = next.0 <= before.1;
            before.1 = if joins { before.1.max(next.1) } else { before.1 };
            joins
        });
        found
    }

    /// Masks them in a text.
    pub fn hide(&self, text: &mut String) {
        if !self.is_in(&*text) {
            return;
        }
        let (mut masked, mut at) = (Vec::with_capacity(text.len()), 0);
        for (start, end) in self.find(text.as_bytes()) {
            masked.extend_from_slice(&text.as_bytes()[at..start]);
            masked.extend_from_slice(MASK.as_bytes());
            at = end;
        }
        masked.extend_from_slice(&text.as_bytes()[at..]);
        // A value of any bytes may have begun in the middle of a character.
        *text = String::from_utf8_lossy(&masked).into_owned();
    }

    /// The same for a text that was cut: what is left of a secret at its end is masked too.
    pub fn hide_cut(&self, text: &mut String) {
        self.hide(text);
        let left = self.values.iter().filter_map(|value| left_of(value.as_bytes(), text.as_bytes())).max();
        if let Some(left) = left {
            text.truncate(text.floor_char_boundary(text.len() - left));
            text.push_str(MASK);
        }
    }

    /// A document of any kind with them masked in all of its texts.
    ///
    /// # Panics
    /// Where a text decides whether the document can be read back, which none of ours does.
    #[must_use]
    pub fn document<T: Serialize + DeserializeOwned>(&self, document: T) -> T {
        if self.is_empty() {
            return document;
        }
        let masked = serde_json::to_value(&document).and_then(|mut value| {
            self.hide_in(&mut value);
            serde_json::from_value(value)
        });
        masked.expect("texts that were changed are still texts")
    }

    fn hide_in(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.hide(text),
            Value::Array(list) => list.iter_mut().for_each(|inner| self.hide_in(inner)),
            Value::Object(map) => map.values_mut().for_each(|inner| self.hide_in(inner)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// How many bytes of the beginning of `value` stand at the end of `text`, where they are enough to tell.
fn left_of(value: &[u8], text: &[u8]) -> Option<usize> {
    (SHORTEST..value.len().min(text.len() + 1)).rev().find(|&length| text.ends_with(&value[..length]))
}

fn split_option(word: &OsStr) -> (OsString, Option<OsString>) {
    let bytes = word.as_bytes();
    match bytes.iter().position(|&byte| byte == b'=') {
        Some(at) => {
            let part = |bytes| OsStr::from_bytes(bytes).to_owned();
            (part(&bytes[..at]), Some(part(&bytes[at + 1..])))
        }
        None => (word.to_owned(), None),
    }
}

/// Whether the word is an option whose value is the next word.
fn given_later(word: &OsStr) -> bool {
    let bytes = word.as_bytes();
    bytes.starts_with(b"-") && !bytes.contains(&b'=')
}

fn is_file(value: &OsStr) -> bool {
    value.as_bytes().starts_with(b"/") && Path::new(value).symlink_metadata().is_ok()
}

/// The passwords of the addresses in a text; where an address names one word only, that may be a token.
fn passwords(text: &OsStr) -> Vec<OsString> {
    let text = text.to_string_lossy();
    let userinfo = text.split("://").skip(1).filter_map(|after| {
        let end = after.find(|c: char| c.is_whitespace() || "/?#\"'".contains(c)).unwrap_or(after.len());
        after[..end].rsplit_once('@').map(|(userinfo, _)| userinfo)
    });
    userinfo.map(|userinfo| userinfo.split_once(':').map_or(userinfo, |(_, word)| word).into()).collect()
}

/// A value as programs print it: as it is, line by line, in JSON, in an address.
fn forms(value: &OsStr) -> Vec<Vec<u8>> {
    let text = value.to_string_lossy();
    let mut forms = vec![value.as_bytes().to_vec()];
    for part in text.lines().map(str::trim).chain([&*text]) {
        forms.push(part.as_bytes().to_vec());
        let json = serde_json::to_string(part).expect("a text is JSON");
        let json = &json[1..json.len() - 1];
        forms.push(json.as_bytes().to_vec());
        forms.push(json.replace('/', "\\/").into_bytes());
        forms.extend([ascii_json(json, false), ascii_json(json, true)].map(String::into_bytes));
        forms.push(in_address(part).into_bytes());
    }
    forms
}

/// JSON whose writer keeps to ASCII, as Python's does.
fn ascii_json(json: &str, capitals: bool) -> String {
    let mut ascii = String::with_capacity(json.len());
    for unit in json.encode_utf16() {
        // Writing to memory cannot fail.
        let _ = match (u8::try_from(unit), capitals) {
            (Ok(byte), _) if byte.is_ascii() && byte != 0x7f => write!(ascii, "{}", char::from(byte)),
            (_, false) => write!(ascii, "\\u{unit:04x}"),
            (_, true) => write!(ascii, "\\u{unit:04X}"),
        };
    }
    ascii
}

fn in_address(text: &str) -> String {
    let mut address = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            address.push(char::from(byte));
        } else {
            // Writing to memory cannot fail.
            let _ = write!(address, "%{byte:02X}");
        }
    }
    address
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;
