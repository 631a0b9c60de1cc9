//! `stuckproof completions`: what a shell needs to complete our command line.

use clap::{Args, Command};
use clap_complete::Shell;
use std::io;
use std::process::ExitCode;

/// What `completions` takes.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The shell to print them for.
    shell: Shell,
}

/// Prints the completions on standard output.
pub(super) fn main(options: &Options, mut command: Command) -> ExitCode {
    let mut text = Vec::new();
    clap_complete::generate(options.shell, &mut command, "stuckproof", &mut text);
    // Nobody is left to tell when the stream is closed.
    let _ = io::Write::write_all(&mut io::stdout(), &text);
    ExitCode::SUCCESS
}
