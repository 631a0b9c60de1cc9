//! `stuckproof simulate`.

use super::fail;
use crate::simulate;
use clap::Args;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// The script to play
    #[arg(required_unless_present = "from")]
    script: Option<PathBuf>,
    /// Where the engine goes, for every file of the script that has no path
    #[arg(long, value_name = "PATH")]
    engine: Option<PathBuf>,
    /// The timing cache, for every one of the script that has no path
    #[arg(long, value_name = "PATH")]
    timing_cache: Option<PathBuf>,
    /// Print a script made from the events.jsonl of a bundle, and play nothing
    #[arg(long, value_name = "EVENTS", conflicts_with_all = ["script", "engine", "timing_cache"])]
    from: Option<PathBuf>,
    /// How many times as fast the printed script is
    #[arg(long, value_name = "FACTOR", requires = "from", default_value = "1", value_parser = factor)]
    speed: f64,
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor: &f64| factor.is_finite() && *factor > 0.0);
    factor.ok_or_else(|| format!("{text:?} is no factor; write for example 10 or 0.5"))
}

/// Plays a script, or makes one.
pub(super) fn main(options: Options) -> ExitCode {
    match (options.from, options.script) {
        (Some(log), _) => print(simulate::script_of(&log, options.speed)),
        (None, script) => {
            let given = simulate::Options { engine: options.engine, timing_cache: options.timing_cache };
            fail(&simulate::play(&script.unwrap_or_default(), &given))
        }
    }
}

fn print(script: Result<String, simulate::SimulateError>) -> ExitCode {
    match script {
        Ok(script) => match io::stdout().write_all(script.as_bytes()) {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => fail(&format!("cannot print: {e}")),
            _ => ExitCode::SUCCESS,
        },
        Err(e) => fail(&e),
    }
}
