//! Secrets do not belong into a bundle: what looks like one is masked, by the name that it stands under or by its place
//! in an address.

/// What stands in a secret's place.
pub const MASK: &str = "(masked)";

/// Parts of the names of variables and options whose values are nobody's business.
const SECRET: [&str; 11] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "KEY",
    "CREDENTIAL",
    "AUTH",
    "COOKIE",
    "SIGNATURE",
    "PRIVATE",
];

/// Whether a variable or an option of this name holds a secret, as far as a name can tell.
#[must_use]
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET.iter().any(|part| name.contains(part))
}

/// The value of a variable or an option, masked where its name or an address in it calls for that.
#[must_use]
pub fn value(name: &str, value: &str) -> String {
    if is_secret(name) && !value.is_empty() { MASK.to_owned() } else { addresses(value) }
}

/// The words of a command, with the values of secret-looking options and the credentials in addresses masked.
#[must_use]
pub fn words(words: &[String]) -> Vec<String> {
    let mut masked = Vec::with_capacity(words.len());
    let mut secret_follows = false;
    for word in words {
        let (name, given) = word.split_once('=').map_or((word.as_str(), None), |(name, v)| (name, Some(v)));
        masked.push(match given {
            _ if secret_follows && !word.starts_with('-') => MASK.to_owned(),
            Some(given) => format!("{name}={}", value(name, given)),
            None => addresses(word),
        });
        secret_follows = given.is_none() && word.starts_with('-') && is_secret(name);
    }
    masked
}

/// A text in which no address names a user or a password: `https://(masked)@host/path`.
#[must_use]
pub fn addresses(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        masked.push_str(before);
        masked.push_str("://");
        let end = after.find(|c: char| c.is_whitespace() || "/?#\"'".contains(c)).unwrap_or(after.len());
        rest = match after[..end].rfind('@') {
            Some(at) => {
                masked.push_str(MASK);
                &after[at..]
            }
            None => after,
        };
    }
    masked + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_is_secret() {
        for name in ["NVIDIA_API_KEY", "trt_token", "--auth-file", "CUDA_PASSWORD"] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "OMP_NUM_THREADS"] {
            assert!(!is_secret(name), "{name}");
        }
        assert_eq!(value("NVIDIA_API_KEY", "nvapi-1"), MASK);
        assert_eq!(value("NVIDIA_API_KEY", ""), "", "that it is empty is a fact and no secret");
    }

    #[test]
    fn an_address_loses_its_credentials_and_nothing_else() {
        let address = "https://user:p%40ss@git.example/a@b?x=1 and ssh://git@host:22/x, http://plain/";
        let masked = "https://(masked)@git.example/a@b?x=1 and ssh://(masked)@host:22/x, http://plain/";
        assert_eq!(addresses(address), masked);
        assert_eq!(addresses("https://a:b@c"), "https://(masked)@c");
        assert_eq!(addresses("://"), "://");
    }

    #[test]
    fn a_command_keeps_its_shape() {
        let command =
            ["build", "--api-key", "abc", "--token=def", "--onnx=m.onnx", "HF_TOKEN=x", "--key", "-v"];
        let masked = words(&command.map(str::to_owned));
        let expected = [
            "build",
            "--api-key",
            MASK,
            "--token=(masked)",
            "--onnx=m.onnx",
            "HF_TOKEN=(masked)",
            "--key",
            "-v",
        ];
        assert_eq!(masked, expected);
    }
}
