//! `stuckproof show`.

use super::fail;
use crate::evidence;
use crate::render::{self, Style};
use clap::{Args, ValueEnum};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// The bundle's folder
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

/// Prints the bundle.
pub(super) fn main(options: &Options) -> ExitCode {
    let bundle = match evidence::load(&options.bundle) {
        Ok(bundle) => bundle,
        Err(e) => return fail(&e),
    };
    let stdout = io::stdout();
    let style = Style { color: stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none() };
    let mut out = BufWriter::new(stdout.lock());
    let shown = match options.format {
        Format::Text => render::show(&bundle, &mut out, style),
        Format::Markdown => render::markdown(&bundle, &mut out),
        Format::Annotations => render::annotations(&bundle, &mut out),
    };
    match shown.and_then(|()| out.flush()) {
        // A pager that was left early wanted no more.
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(e) => fail(&format!("cannot print: {e}")),
        Ok(()) => ExitCode::SUCCESS,
    }
}
