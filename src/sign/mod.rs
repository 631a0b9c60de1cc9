//! Ed25519 keys in PEM files, and the envelope in which a signature travels.

mod dsse;

pub use dsse::{Envelope, EnvelopeError, Opened};

use crate::digest::Hex;
use ed25519_dalek::pkcs8::{DecodePrivateKey, DecodePublicKey, EncodePublicKey};
use ed25519_dalek::{Signature, Signer, VerifyingKey};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The variable that may name the key's file. The wrapped command does not get it.
pub const KEY_VARIABLE: &str = "STUCKPROOF_SIGN_KEY";

/// More than any key's file has.
const LONGEST: u64 = 64 << 10;

/// Why a key cannot be used.
#[derive(Debug, Error)]
pub enum KeyError {
    /// The file cannot be read.
    #[error("the key {path} cannot be read: {source}; name a file that you can read", path = .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// The file holds no private key of the kind.
    #[error("{path} holds no Ed25519 private key in PKCS#8 PEM; make one with `openssl genpkey -algorithm ed25519 -out {path}`", path = .0.display())]
    NotPrivate(PathBuf),
    /// The file holds no public key of the kind.
    #[error("{path} holds no Ed25519 public key in PEM; make it with `openssl pkey -in KEY -pubout -out {path}`", path = .0.display())]
    NotPublic(PathBuf),
}

/// A private key. It is wiped from memory when this goes, and never printed.
pub struct SigningKey(ed25519_dalek::SigningKey);

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl SigningKey {
    /// Reads a key.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        let key = ed25519_dalek::SigningKey::from_pkcs8_pem(&read(path)?);
        key.map(Self).map_err(|_| KeyError::NotPrivate(path.to_owned()))
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SigningKey({})", self.public().id())
    }
}

impl PublicKey {
    /// Reads a key.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        let key = VerifyingKey::from_public_key_pem(&read(path)?);
        key.map(Self).map_err(|_| KeyError::NotPublic(path.to_owned()))
    }

    /// SHA-256 of the key's DER form, 64 hexadecimal digits: what `openssl pkey -pubout -outform DER | sha256sum` prints.
    ///
    /// # Panics
    /// Never: a key always has a DER form.
    #[must_use]
    pub fn id(&self) -> String {
        let der = self.0.to_public_key_der().expect("32 bytes fit into DER");
        Hex::of(der.as_bytes()).to_string()
    }

    /// Whether the signature is this key's. Keys and signatures that several messages or keys would fit are refused.
    fn accepts(&self, message: &[u8], signature: &[u8]) -> bool {
        let signature = Signature::from_slice(signature);
        signature.is_ok_and(|signature| self.0.verify_strict(message, &signature).is_ok())
    }
}

fn read(path: &Path) -> Result<String, KeyError> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST).read_to_string(&mut text));
    read.map(|_| text).map_err(|source| KeyError::Read { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key of RFC 8410, section 10.3, and its public half.
    const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
    const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";

    #[test]
    fn a_key_of_the_standard_is_read_and_its_halves_belong_together() {
        let folder = tempfile::tempdir().unwrap();
        let (private, public) = (folder.path().join("key.pem"), folder.path().join("key.pub.pem"));
        std::fs::write(&private, PRIVATE).unwrap();
        std::fs::write(&public, PUBLIC).unwrap();
        let key = SigningKey::load(&private).unwrap();
        assert_eq!(key.public(), PublicKey::load(&public).unwrap());
        assert!(key.public().accepts(b"text", &key.sign(b"text")));
        assert!(!key.public().accepts(b"Text", &key.sign(b"text")));
        assert!(!format!("{key:?}").contains("1O5y"), "a key is not printed");
    }

    #[test]
    fn what_is_no_key_says_how_to_make_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.pem");
        assert!(matches!(SigningKey::load(&path), Err(KeyError::Read { .. })));
        std::fs::write(&path, PUBLIC).unwrap();
        assert!(SigningKey::load(&path).unwrap_err().to_string().contains("openssl genpkey"));
        std::fs::write(&path, PRIVATE).unwrap();
        assert!(PublicKey::load(&path).unwrap_err().to_string().contains("openssl pkey"));
    }
}
