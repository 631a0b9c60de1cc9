//! The command line: one file a verb.

mod addendum;
mod cancel;
mod completions;
mod diff;
mod explain;
mod finalize;
mod history;
mod hosts;
mod keep;
mod masking;
mod pack;
mod quarantine;
mod review;
mod run;
mod show;
mod simulate;
mod status;
mod verify;

use crate::archive::is_packed;
use crate::exit;
use crate::sign::{KEY_VARIABLE, KeyError, SigningKey};
use crate::supervise::{self, EXEC_VERB, KEEPER_VERB, Seat};
use crate::units::{duration, size};
use clap::{Args, CommandFactory, Parser, Subcommand};
use serde::Serialize;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Watches a `TensorRT` build, stops it honestly and keeps the evidence.
#[derive(Debug, Parser)]
#[command(name = "stuckproof", version, about, max_term_width = 110, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run a command, watch the builds in it, and keep the evidence.
    Run(Box<run::Options>),
    /// Ask a running job to stop.
    Cancel(cancel::Options),
    /// Tell how a running job is, or what became of a finished one.
    Status(status::Options),
    /// Answer the four questions about a job: continue, cancel, timing cache, roll back.
    Explain(explain::Options),
    /// Print a bundle for a person.
    Show(show::Options),
    /// Tell what changed between two bundles.
    Diff(diff::Options),
    /// Finish bundles whose runner was lost.
    Finalize(finalize::Options),
    /// Tell which CI host is assumed here, and how long each gives a job to end.
    Hosts(hosts::Options),
    /// Look after what jobs without success have written.
    Quarantine(quarantine::Options),
    /// Play a script with a simulated builder, to test a CI without a GPU.
    Simulate(simulate::Options),
    /// Tell whether bundles are what was sealed, and what they say.
    Verify(verify::Options),
    /// Tell whether bundles are what a release asks for.
    Review(review::Options),
    /// Write a sealed bundle as one file.
    Pack(pack::Options),
    /// Add a fact to a sealed bundle, beside it.
    Addendum(addendum::Options),
    /// Print completions for a shell.
    Completions(completions::Options),
    /// Take a seat and become the command.
    #[command(name = EXEC_VERB, hide = true)]
    Exec(Exec),
    /// Watch over the command and its runner.
    #[command(name = KEEPER_VERB, hide = true)]
    Keep(keep::Options),
}

/// The names of these options are [`supervise`]'s.
#[derive(Debug, Args)]
struct Exec {
    /// Lead a new session.
    #[arg(long)]
    session: bool,
    /// Lead a new session with the terminal on standard input.
    #[arg(long)]
    terminal: bool,
    /// Be killed when this process ends, which is the parent.
    #[arg(long, value_name = "PID")]
    bound: Option<u32>,
    /// The command.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

impl Exec {
    fn seat(&self) -> Seat {
        match (self.terminal, self.session) {
            (true, _) => Seat::Terminal,
            (false, true) => Seat::Session,
            (false, false) => Seat::Group,
        }
    }
}

/// The command line as clap knows it, for completions and manual pages.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the command line.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => return usage(&e),
    };
    match cli.verb {
        Verb::Run(options) => run::main(*options),
        Verb::Cancel(options) => cancel::main(&options),
        Verb::Status(options) => status::main(&options),
        Verb::Explain(options) => explain::main(&options),
        Verb::Show(options) => show::main(&options),
        Verb::Diff(options) => diff::main(&options),
        Verb::Finalize(options) => finalize::main(options),
        Verb::Hosts(options) => hosts::main(&options),
        Verb::Quarantine(options) => quarantine::main(&options),
        Verb::Simulate(options) => simulate::main(options),
        Verb::Verify(options) => verify::main(&options),
        Verb::Review(options) => review::main(&options),
        Verb::Pack(options) => pack::main(&options),
        Verb::Addendum(options) => addendum::main(&options),
        Verb::Completions(options) => completions::main(&options, command()),
        Verb::Exec(exec) => refuse(&supervise::become_command(&exec.command, exec.seat(), exec.bound)),
        Verb::Keep(options) => keep::main(&options),
    }
}

/// Help and version are answers; anything else is a fault of usage.
fn usage(error: &clap::Error) -> ExitCode {
    // Nobody is left to tell when the stream is closed.
    let _ = error.print();
    if error.use_stderr() { ExitCode::from(exit::OWN_FAULT) } else { ExitCode::SUCCESS }
}

/// Says why a command could not be run, and gives the exit code of env(1) for it.
fn refuse(error: &supervise::SpawnError) -> ExitCode {
    say(&error.to_string());
    ExitCode::from(error.exit_code())
}

/// Says why nothing was done.
fn fail(error: &impl std::fmt::Display) -> ExitCode {
    say(&error.to_string());
    ExitCode::from(exit::OWN_FAULT)
}

/// Prints a value as JSON.
fn json(value: &impl Serialize) -> ExitCode {
    print(|out| {
        serde_json::to_writer_pretty(&mut *out, value)?;
        writeln!(out)
    })
}

/// Prints to standard output; a reader that left early wanted no more.
fn print(what: impl FnOnce(&mut io::StdoutLock<'static>) -> io::Result<()>) -> ExitCode {
    let mut out = io::stdout().lock();
    match what(&mut out).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => fail(&format!("cannot print: {e}")),
        _ => ExitCode::SUCCESS,
    }
}

/// What would be changed must be a folder.
fn refuse_packed(path: &Path) -> Result<(), String> {
    if !is_packed(path) {
        return Ok(());
    }
    let path = path.display();
    Err(format!(
        "{path} is packed, and what is packed is never changed; unpack it first (`tar --zstd -xf {path}`)"
    ))
}

/// The key to sign with: the one that the user named, or the one that the environment names.
fn signing_key(named: Option<&Path>) -> Result<Option<SigningKey>, KeyError> {
    let variable = std::env::var_os(KEY_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    let path = named.map(Path::to_owned).or(variable);
    path.as_deref().map(SigningKey::load).transpose()
}

/// One line on standard error; without a reader it is lost.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "stuckproof: {line}");
}
