//! What changed between two jobs, for a terminal and for a page.

use super::text::{Clean, Painter};
use crate::diff::{Change, Difference, Section, Side};
use std::io::{self, Write};

/// What stands for a side on which there is nothing.
const NOTHING: &str = "–";

/// For a terminal.
pub fn difference(difference: &Difference, out: &mut impl Write, style: super::Style) -> io::Result<()> {
    let paint = Painter::new(style.color);
    for (name, side) in [("A", &difference.a), ("B", &difference.b)] {
        writeln!(out, "{}  {}", paint.head(name), in_words(side))?;
    }
    for doubt in &difference.doubts {
        writeln!(out, "doubt: {}", Clean::line(doubt))?;
    }
    for section in &difference.sections {
        writeln!(out, "\n{}", paint.head(&Clean::short(&section.name).to_string()))?;
        for change in &section.changes {
            writeln!(out, "  {}", Clean::line(&change.what))?;
            for (mark, value) in [("A", &change.a), ("B", &change.b)] {
                writeln!(out, "    {mark} {}", Clean::line(value.as_deref().unwrap_or(NOTHING)))?;
            }
        }
        more(section, out, "  ")?;
    }
    writeln!(out, "\n{}", conclusion(difference))
}

/// As Markdown.
pub fn difference_page(difference: &Difference, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "# What changed\n")?;
    for (name, side) in [("A", &difference.a), ("B", &difference.b)] {
        writeln!(out, "- {name}: {}", escaped(&in_words(side)))?;
    }
    for doubt in &difference.doubts {
        writeln!(out, "- doubt: {}", escaped(doubt))?;
    }
    for section in &difference.sections {
        writeln!(out, "\n## {}\n\n| | A | B |\n|---|---|---|", escaped(&section.name))?;
        for Change { what, a, b } in &section.changes {
            let [a, b] = [a, b].map(|side| escaped(side.as_deref().unwrap_or(NOTHING)));
            writeln!(out, "| {} | {a} | {b} |", escaped(what))?;
        }
        if section.more > 0 {
            writeln!(out)?;
        }
        more(section, out, "")?;
    }
    writeln!(out, "\n{}", conclusion(difference))
}

fn more(section: &Section, out: &mut impl Write, before: &str) -> io::Result<()> {
    match section.more {
        0 => Ok(()),
        more => writeln!(out, "{before}and {more} smaller ones"),
    }
}

fn conclusion(difference: &Difference) -> &'static str {
    match (difference.same, difference.sections.is_empty()) {
        (true, true) => "Nothing differs.",
        (true, false) => "Nothing differs but times.",
        (false, _) => "They differ.",
    }
}

fn in_words(side: &Side) -> String {
    format!(
        "{} (job {}, {})",
        Clean::line(&side.path),
        Clean::short(&side.job),
        Clean::short(&side.started_at)
    )
}

/// A text in which nothing is mark-up, and which calls nobody.
fn escaped(text: &str) -> String {
    let mut page = String::with_capacity(text.len());
    for c in Clean::line(text).to_string().chars() {
        match c {
            '<' => page.push_str("&lt;"),
            '>' => page.push_str("&gt;"),
            '&' => page.push_str("&amp;"),
            '@' => page.push_str("&#64;"),
            '#' => page.push_str("&#35;"),
            c if "\\`*_[]!|~$".contains(c) => page.extend(['\\', c]),
            c => page.push(c),
        }
    }
    page
}
