//! `stuckproof show`.

use super::fail;
use crate::render::{self, Style};
use crate::{attempts, evidence};
use clap::Args;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// The bundle's folder, or that of a job that was tried several times
    bundle: PathBuf,
}

/// Prints the bundle; of a job that was tried several times all of them.
pub(super) fn main(options: &Options) -> ExitCode {
    let stdout = io::stdout();
    let style = Style { color: stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none() };
    let mut out = BufWriter::new(stdout.lock());
    let shown = if attempts::are_in(&options.bundle) {
        attempts(&options.bundle, &mut out, style)
    } else {
        bundle(&options.bundle, &mut out, style)
    };
    match shown {
        Err(e) => fail(&e),
        Ok(printed) => match printed.and_then(|()| out.flush()) {
            // A pager that was left early wanted no more.
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => fail(&format!("cannot print: {e}")),
            _ => ExitCode::SUCCESS,
        },
    }
}

fn bundle(folder: &Path, out: &mut impl Write, style: Style) -> Result<io::Result<()>, String> {
    let bundle = evidence::load(folder).map_err(|e| e.to_string())?;
    Ok(render::show(&bundle, out, style))
}

fn attempts(folder: &Path, out: &mut impl Write, style: Style) -> Result<io::Result<()>, String> {
    let record = attempts::load(folder).map_err(|e| e.to_string())?;
    if let Err(e) = render::attempts(&record, out) {
        return Ok(Err(e));
    }
    for number in (1..).zip(&record.attempts).map(|(number, _)| number) {
        let name = attempts::bundle_name(number);
        if let Err(e) = writeln!(out, "\n== {name} ==\n") {
            return Ok(Err(e));
        }
        if let Err(e) = bundle(&folder.join(name), out, style)? {
            return Ok(Err(e));
        }
    }
    Ok(Ok(()))
}
