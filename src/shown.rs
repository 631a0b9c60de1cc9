//! Text that is safe to print, and times that people read.

use std::fmt::{self, Display, Write};

/// Text of somebody else's, safe for a terminal: control characters, escape sequences, line separators and characters
/// that turn the direction of writing are shown as their numbers, and what is too long is cut.
#[derive(Debug, Clone, Copy)]
pub struct Clean<'a> {
    text: &'a str,
    limit: usize,
}

impl<'a> Clean<'a> {
    /// For a name within a line.
    #[must_use]
    pub fn short(text: &'a str) -> Self {
        Self { text, limit: 100 }
    }

    /// For a text that has a line of its own.
    #[must_use]
    pub fn line(text: &'a str) -> Self {
        Self { text, limit: 1_000 }
    }

    /// With a limit of its own, in characters.
    #[must_use]
    pub fn within(text: &'a str, limit: usize) -> Self {
        Self { text, limit }
    }
}

impl Display for Clean<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.text.chars().take(self.limit) {
            if unprintable(c) { write!(f, "\\u{{{:x}}}", u32::from(c))? } else { f.write_char(c)? }
        }
        match self.text.chars().count().saturating_sub(self.limit) {
            0 => Ok(()),
            more => write!(f, "… ({more} more characters)"),
        }
    }
}

fn unprintable(c: char) -> bool {
    let format = matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}');
    c.is_control() || format
}

/// Milliseconds with a unit that fits.
#[derive(Debug, Clone, Copy)]
pub struct Ms(pub f64);

impl Display for Ms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0;
        let seconds = (ms / 1e3).round() as u64;
        match ms {
            0.0 => f.write_str("0 ms"),
            _ if ms < 1.0 => write!(f, "{ms:.3} ms"),
            _ if ms < 10.0 => write!(f, "{ms:.1} ms"),
            _ if ms < 999.5 => write!(f, "{ms:.0} ms"),
            _ if ms < 59_950.0 => write!(f, "{:.1} s", ms / 1e3),
            _ if seconds < 3_600 => write!(f, "{} min {:02} s", seconds / 60, seconds % 60),
            _ => write!(f, "{} h {:02} min", seconds / 3_600, seconds % 3_600 / 60),
        }
    }
}
