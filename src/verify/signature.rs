//! The signature over the manifest, and the addenda.

use super::differ;
use super::fault::{Faults, Rule};
use super::files::{Sealed, read};
use super::source::Source;
use crate::digest::Hex;
use crate::evidence::{Bundle, document};
use crate::seal::addendum::{self, Addendum};
use crate::seal::{self, Listing, MANIFEST, PAYLOAD_TYPE, SIGNATURE};
use crate::sign::{Envelope, PublicKey};

/// The longest envelope and the longest addendum that are read.
const LONGEST: u64 = 4 << 20;

/// What is wanted of signatures.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// The keys that may sign. With none, a signature is compared with the bundle but nobody vouches for it.
    pub signers: Vec<PublicKey>,
    /// Whether an unsigned bundle will do all the same.
    pub unsigned_will_do: bool,
}

impl Wanted {
    fn signature(&self) -> bool {
        !self.signers.is_empty() && !self.unsigned_will_do
    }
}

/// Checks the signature over the manifest, and gives the signer's identity.
pub(super) fn check(
    source: &Source,
    listing: &Listing,
    sealed: &Sealed,
    bundle: Option<&Bundle>,
    wanted: &Wanted,
    faults: &mut Faults,
) -> Option<String> {
    if listing.files.binary_search_by(|file| file.as_str().cmp(SIGNATURE)).is_err() {
        if wanted.signature() {
            faults.cannot_tell(
                Rule::Signed,
                SIGNATURE,
                "",
                "the bundle is not signed, and a signature was asked for",
            );
        }
        return None;
    }
    let (payload, signer) = open(source, (SIGNATURE, SIGNATURE), wanted, faults)?;
    if let Some(bundle) = bundle {
        let statement = document(&seal::statement(bundle, &sealed.manifest, &sealed.digest));
        if statement != payload {
            same_subject(&payload, &sealed.digest, faults);
            let field = differ::first(&statement, &payload);
            let what = "the signed statement is not what follows from the bundle";
            faults.by_our_rules(Rule::Statement, SIGNATURE, &inside(&field), what);
        }
    }
    signer
}

/// Whatever version wrote a statement, it names the manifest.
fn same_subject(payload: &[u8], digest: &str, faults: &mut Faults) {
    let statement: serde_json::Value = serde_json::from_slice(payload).unwrap_or_default();
    let subjects = statement["subject"].as_array().map(Vec::as_slice).unwrap_or_default();
    let own = subjects.iter().find(|subject| subject["name"] == MANIFEST);
    if own.is_none_or(|subject| subject["digest"]["sha256"] != digest) {
        let what = "the signature is of another manifest";
        faults.invalid(Rule::Statement, SIGNATURE, &inside("subject"), what);
    }
}

fn inside(field: &str) -> String {
    if field.is_empty() { "payload".to_owned() } else { format!("payload.{field}") }
}

/// Opens an envelope, by its name in the folder and the name for people; the second result is the identity of the trusted key that signed it.
fn open(
    source: &Source,
    (name, shown): (&str, &str),
    wanted: &Wanted,
    faults: &mut Faults,
) -> Option<(Vec<u8>, Option<String>)> {
    let bytes = match read(source, name, LONGEST) {
        Ok(bytes) => bytes,
        Err(e) => {
            faults.cannot_tell(Rule::Readable, shown, "", e.to_string());
            return None;
        }
    };
    let envelope: Envelope = match serde_json::from_slice(&bytes) {
        Ok(envelope) => envelope,
        Err(e) => {
            faults.invalid(Rule::Statement, shown, "", format!("it is no envelope: {e}"));
            return None;
        }
    };
    if document(&envelope) != bytes {
        faults.invalid(Rule::Statement, shown, "", "it is not in the form in which stuckproof writes it");
    }
    match envelope.open(PAYLOAD_TYPE, &wanted.signers) {
        Ok(opened) => {
            if opened.signer.is_none() && !wanted.signers.is_empty() {
                let claimed: Vec<String> = opened.claimed.iter().map(|id| plain(id)).collect();
                let what =
                    format!("no allowed signer has signed this; the envelope names {}", claimed.join(", "));
                faults.invalid(Rule::Signer, shown, "signatures", what);
            }
            let signer = opened.signer.map(|key| key.id());
            if signer.as_ref().is_some_and(|id| !opened.claimed.contains(id)) {
                let what = "no signature names the key that made it";
                faults.invalid(Rule::Statement, shown, "signatures.0.keyid", what);
            }
            Some((opened.payload, signer))
        }
        Err(e) => {
            faults.invalid(Rule::Statement, shown, "", format!("it is no envelope of ours: {e}"));
            None
        }
    }
}

/// The beginning of an identity that somebody claims.
fn plain(id: &str) -> String {
    let short: String = id.chars().filter(char::is_ascii_alphanumeric).take(16).collect();
    if short.is_empty() { "nobody".to_owned() } else { format!("{short}…") }
}

/// Reads and checks the addenda of a bundle, in their order.
pub(super) fn addenda(
    bundle: &Source,
    sealed: &Sealed,
    wanted: &Wanted,
    faults: &mut Faults,
) -> Vec<Addendum> {
    let Some((shown, opened)) = bundle.addenda() else { return Vec::new() };
    let (mut listing, source) = match opened.and_then(|source| Ok((source.list()?, source))) {
        Ok(listed) => listed,
        Err(e) => {
            faults.cannot_tell(Rule::Readable, &shown, "", e.to_string());
            return Vec::new();
        }
    };
    // Somebody may be writing the next one, or was killed while writing it. Nobody writes in an archive.
    if !bundle.is_packed() {
        let unfinished = addendum::unfinished(&listing.files);
        listing.files.retain(|file| !unfinished.contains(file));
    }
    for odd in &listing.odd {
        faults.invalid(Rule::PlainFiles, &format!("{shown}/{}", odd.name), "", odd.what.in_words());
    }
    let mut found = Vec::new();
    let mut previous = Hex::ZERO.to_string();
    let there = |name: &str| listing.files.iter().any(|file| file == name);
    for number in 1..=addendum::MOST as u32 {
        let name = addendum::name(number);
        if !there(&name) {
            break;
        }
        let place = Place { shown: &shown, source: &source, number };
        let Some((addendum, digest)) = place.check(sealed, &previous, faults) else { break };
        let signed = there(&addendum::signature_name(number));
        place.check_signature(&addendum, &digest, signed, wanted, faults);
        previous = digest;
        found.push(addendum);
    }
    let known = |file: &String| {
        (1..=found.len() as u32)
            .any(|number| *file == addendum::name(number) || *file == addendum::signature_name(number))
    };
    if let Some(extra) = listing.files.iter().find(|file| !known(file)) {
        let what = "it belongs to no addendum of this bundle that could be read";
        faults.invalid(Rule::Addendum, &format!("{shown}/{extra}"), "", what);
    }
    found
}

/// Where an addendum lies.
struct Place<'a> {
    shown: &'a str,
    source: &'a Source,
    number: u32,
}

impl Place<'_> {
    fn check(&self, sealed: &Sealed, previous: &str, faults: &mut Faults) -> Option<(Addendum, String)> {
        let name = addendum::name(self.number);
        let file = format!("{}/{name}", self.shown);
        let bytes = match read(self.source, &name, LONGEST) {
            Ok(bytes) => bytes,
            Err(e) => {
                faults.cannot_tell(Rule::Readable, &file, "", e.to_string());
                return None;
            }
        };
        let addendum: Addendum = match serde_json::from_slice(&bytes) {
            Ok(addendum) => addendum,
            Err(e) => {
                faults.invalid(Rule::Addendum, &file, "", format!("it is no addendum: {e}"));
                return None;
            }
        };
        let mut invalid = |field: &str, what: &str| faults.invalid(Rule::Addendum, &file, field, what);
        if document(&addendum) != bytes {
            invalid("", "it is not in the form in which stuckproof writes it");
        }
        if addendum.number != self.number {
            invalid("number", "it is not the number of the file");
        }
        if addendum.manifest != sealed.digest {
            invalid("manifest", "it is of another bundle");
        }
        if addendum.previous != previous {
            invalid("previous", "it does not follow the addendum before it");
        }
        Some((addendum, Hex::of(&bytes).to_string()))
    }

    fn check_signature(
        &self,
        addendum: &Addendum,
        digest: &str,
        signed: bool,
        wanted: &Wanted,
        faults: &mut Faults,
    ) {
        let name = addendum::signature_name(self.number);
        let file = format!("{}/{name}", self.shown);
        if !signed {
            if wanted.signature() {
                faults.cannot_tell(
                    Rule::Signed,
                    &file,
                    "",
                    "the addendum is not signed, and a signature was asked for",
                );
            }
            return;
        }
        let Some((payload, _)) = open(self.source, (&name, &file), wanted, faults) else { return };
        let statement = document(&addendum::statement(addendum, digest));
        if statement != payload {
            let field = inside(&differ::first(&statement, &payload));
            faults.invalid(Rule::Statement, &file, &field, "the signed statement is not about this addendum");
        }
    }
}
