//! `stuckproof diff`.

use super::say;
use crate::attempts;
use crate::diff::{self, Difference, Threshold};
use crate::event::plain;
use crate::evidence::{self, Bundle};
use crate::render::{self, Style};
use clap::{Args, ValueEnum};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Something differs.
const DIFFERS: u8 = 1;
/// It cannot be told whether anything does.
const CANNOT_TELL: u8 = 2;
/// Changes of durations below this are noise, milliseconds.
const NOISE: f64 = 50.0;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// The first bundle's folder; of a job that was tried several times the last attempt is compared
    a: PathBuf,
    /// The second bundle's folder
    b: PathBuf,
    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// From which change of a duration on it is told, per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 20.0, value_parser = percent)]
    threshold: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For a person at a terminal
    Text,
    /// For a page
    Markdown,
    /// For a program
    Json,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        _ => Err("give a number of per cent that is not negative, for example 20".to_owned()),
    }
}

/// Tells what changed between two bundles.
pub(super) fn main(options: &Options) -> ExitCode {
    let (a, b) = match (load(&options.a), load(&options.b)) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(why), _) | (_, Err(why)) => return cannot_tell(&why),
    };
    let difference = diff::compare(&a, &b, Threshold { percent: options.threshold, ms: NOISE });
    match print(&difference, options.format) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => cannot_tell(&format!("cannot print: {e}")),
        _ if !difference.doubts.is_empty() => ExitCode::from(CANNOT_TELL),
        _ if difference.same => ExitCode::SUCCESS,
        _ => ExitCode::from(DIFFERS),
    }
}

/// The bundle in a folder; of a job that was tried several times the last attempt, which is said.
fn load(path: &Path) -> Result<Bundle, String> {
    let last = attempts::last_of(path).map_err(|e| e.to_string())?;
    if last != path {
        say(&format!("{} holds several attempts; the last, {}, is compared", path.display(), last.display()));
    }
    evidence::load(&last).map_err(|e| e.to_string())
}

fn print(difference: &Difference, format: Format) -> io::Result<()> {
    let stdout = io::stdout();
    let style = Style { color: stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none() };
    let mut out = BufWriter::new(stdout.lock());
    match format {
        Format::Text => render::difference(difference, &mut out, style)?,
        Format::Markdown => render::difference_page(difference, &mut out)?,
        Format::Json => {
            out.write_all(&plain(serde_json::to_vec_pretty(difference)?))?;
            out.write_all(b"\n")?;
        }
    }
    out.flush()
}

fn cannot_tell(why: &str) -> ExitCode {
    say(why);
    ExitCode::from(CANNOT_TELL)
}
