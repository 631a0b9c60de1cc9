//! Which names stand for secrets.

/// Parts of the words in the names of variables and options whose values are nobody's business.
const PARTS: [&str; 8] =
    ["SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "COOKIE", "SIGNATURE", "PRIVATE"];

/// Whether a variable or an option of this name holds a secret, as far as a name can tell.
#[must_use]
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| {
        PARTS.iter().any(|part| word.contains(part))
            // Tokenizers, authors and keyboards are no secrets.
            || (word.contains("TOKEN") && !word.contains("TOKENI"))
            || (word.contains("AUTH") && (!word.contains("AUTHOR") || word.contains("AUTHORI")))
            || word.ends_with("KEY")
            || word.ends_with("KEYS")
    })
}

/// What the user says about names besides. A pattern is a name in which each `*` stands for any characters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Names whose values are secrets too.
    pub also: Vec<String>,
    /// Names whose values are none, whatever they look like. These win.
    pub never: Vec<String>,
}

impl Rules {
    /// Whether a variable of this name holds a secret.
    #[must_use]
    pub fn is_secret(&self, name: &str) -> bool {
        let named = |patterns: &[String]| patterns.iter().any(|pattern| fits(pattern, name));
        !named(&self.never) && (is_secret(name) || named(&self.also))
    }
}

fn fits(pattern: &str, name: &str) -> bool {
    let Some((beginning, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(beginning) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        match name.split_once(part) {
            Some((_, after)) => name = after,
            None => return false,
        }
    }
    name.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_is_secret() {
        for name in ["NVIDIA_API_KEY", "trt_token", "--auth-file", "CUDA_PASSWORD", "apiKey", "AUTHORIZATION"]
        {
            assert!(is_secret(name), "{name}");
        }
        let plain = [
            "CUDA_VISIBLE_DEVICES",
            "OMP_NUM_THREADS",
            "GIT_AUTHOR_NAME",
            "TOKENIZERS_PARALLELISM",
            "KEYBOARD",
        ];
        for name in plain {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn the_user_has_the_last_word() {
        let rules = Rules {
            also: vec!["DEPLOY_*".to_owned(), "LICENCE".to_owned()],
            never: vec!["*_CACHE_KEY".to_owned(), "DEPLOY_HOST".to_owned()],
        };
        for name in ["DEPLOY_WORD", "LICENCE", "API_KEY"] {
            assert!(rules.is_secret(name), "{name}");
        }
        for name in ["CI_CACHE_KEY", "DEPLOY_HOST", "LICENCES", "HOME"] {
            assert!(!rules.is_secret(name), "{name}");
        }
    }

    #[test]
    fn a_pattern_may_have_several_stars() {
        for (pattern, name) in [("*", ""), ("A*", "A"), ("*A*B*", "xAyBz"), ("A*B*C", "AxBBC"), ("A**", "AB")]
        {
            assert!(fits(pattern, name), "{pattern} fits {name}");
        }
        for (pattern, name) in [("A*A", "A"), ("*AB*BC", "ABC"), ("", "A"), ("a", "A")] {
            assert!(!fits(pattern, name), "{pattern} does not fit {name}");
        }
    }
}
