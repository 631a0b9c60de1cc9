//! Secrets do not belong into a bundle: what looks like one is masked, by the name that it stands under or by its place
//! in an address, and its value wherever else it turns up.

mod rules;
mod secrets;
mod stream;

pub use rules::{Rules, is_secret};
pub use secrets::{SHORTEST, Secrets};
pub use stream::copy;

/// What stands in a secret's place.
pub const MASK: &str = "(masked)";

/// Whether a text can be what masking made of another: every [`MASK`] in it stands for one character or more.
#[must_use]
pub fn covers(masked: &str, raw: &str) -> bool {
    let mut parts: Vec<&str> = masked.split(MASK).collect();
    let first = parts.remove(0);
    let Some(mut rest) = raw.strip_prefix(first) else { return false };
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(found) = skip_one(rest).and_then(|after| after.split_once(part)) else { return false };
        rest = found.1;
    }
    skip_one(rest).is_some_and(|after| after.ends_with(last))
}

fn skip_one(text: &str) -> Option<&str> {
    let mut chars = text.chars();
    chars.next().map(|_| chars.as_str())
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
    fn a_masked_text_is_known_again() {
        for (masked, raw) in [
            ("plain", "plain"),
            ("a (masked) b", "a secret b"),
            ("(masked)", "x"),
            ("(masked)-(masked)", "one-two"),
            ("(masked)", "(masked)"),
        ] {
            assert!(covers(masked, raw), "{masked} covers {raw}");
        }
        for (masked, raw) in
            [("plain", "plain "), ("a (masked) b", "a  c"), ("(masked)", ""), ("x(masked)x", "x")]
        {
            assert!(!covers(masked, raw), "{masked} does not cover {raw}");
        }
    }

    #[test]
    fn an_empty_value_is_no_secret() {
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
