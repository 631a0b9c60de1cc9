//! `stuckproof show`.

use super::fail;
use crate::attempts::{self, Attempts, AttemptsError};
use crate::evidence::{self, Bundle};
use crate::render::{self, Style};
use clap::{Args, ValueEnum};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// The bundle's folder, or that of a job that was tried several times
    bundle: PathBuf,
    /// For whom: `text` for a person, `markdown` for the summary of a CI job, `annotations` for GitHub, which takes them
    /// from the output of a step
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Markdown,
    Annotations,
}

/// Prints the bundle; of a job that was tried several times all of them.
pub(super) fn main(options: &Options) -> ExitCode {
    let stdout = io::stdout();
    let style = Style { color: stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none() };
    let mut out = BufWriter::new(stdout.lock());
    match bundles(options) {
        Err(e) => fail(&e),
        Ok((record, bundles)) => match print(record.as_ref(), &bundles, options.format, style, &mut out) {
            // A pager that was left early wanted no more.
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => fail(&format!("cannot print: {e}")),
            _ => ExitCode::SUCCESS,
        },
    }
}

fn bundles(options: &Options) -> Result<(Option<Attempts>, Vec<Bundle>), String> {
    let folder = &options.bundle;
    let load = |folder: &Path| evidence::load(folder).map_err(|e| e.to_string());
    if !attempts::are_in(folder) {
        return Ok((None, vec![load(folder)?]));
    }
    let record = attempts::load(folder).map_err(|e| e.to_string())?;
    // Without a bundle only a person is told of the record; nothing at all would look like a good end.
    if record.attempts.is_empty() && !matches!(options.format, Format::Text) {
        return Err(AttemptsError::Empty(folder.clone()).to_string());
    }
    let names = (1..).zip(&record.attempts).map(|(number, _)| attempts::bundle_name(number));
    let bundles = names.map(|name| load(&folder.join(name))).collect::<Result<_, _>>()?;
    Ok((Some(record), bundles))
}

fn print(
    record: Option<&Attempts>,
    bundles: &[Bundle],
    format: Format,
    style: Style,
    out: &mut impl Write,
) -> io::Result<()> {
    if let (Some(record), Format::Text) = (record, format) {
        render::attempts(record, out)?;
    }
    for (number, bundle) in (1..).zip(bundles) {
        match format {
            Format::Text => {
                if record.is_some() {
                    writeln!(out, "\n== {} ==\n", attempts::bundle_name(number))?;
                }
                render::show(bundle, out, style)?;
            }
            Format::Markdown => render::markdown(bundle, out)?,
            Format::Annotations => render::annotations(bundle, out)?,
        }
    }
    out.flush()
}
