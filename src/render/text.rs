//! Text that is safe to print, and numbers that people read.

pub(super) use crate::shown::{Clean, Ms};

/// The command as one would type it, near enough to be recognised.
pub(super) fn command_line(argv: &[String]) -> String {
    let words: Vec<String> = argv
        .iter()
        .map(|word| {
            let plain = |c: char| c.is_alphanumeric() || "-_=./:,+@%".contains(c);
            if !word.is_empty() && word.chars().all(plain) { word.clone() } else { format!("'{word}'") }
        })
        .collect();
    Clean::within(&words.join(" "), 500).to_string()
}

/// A number with its noun.
pub(super) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// What a state looks like.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shade {
    Good,
    Warn,
    Bad,
}

/// Paints, where the reader can see it.
pub(super) struct Painter {
    color: bool,
}

impl Painter {
    pub(super) fn new(color: bool) -> Self {
        Self { color }
    }

    /// A heading.
    pub(super) fn head(&self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// A state.
    pub(super) fn shade(&self, shade: Shade, text: &str) -> String {
        let code = match shade {
            Shade::Good => "1;32",
            Shade::Warn => "1;33",
            Shade::Bad => "1;31",
        };
        self.wrap(code, text)
    }

    fn wrap(&self, code: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}
