//! `stuckproof hosts`.

use super::{duration, json, print};
use crate::event::HostProfile;
use crate::supervise::{self, Host, HostRow};
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Serialize;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// The host around the job, as for `run` [default: the one that the environment tells of]
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(supervise::host_names()))]
    host: Option<String>,
    /// How long the host waits between its first signal and its end of the job, as for `run`
    #[arg(long, value_name = "DURATION", env = "STUCKPROOF_HOST_ALLOWS", value_parser = duration::parse)]
    host_allows: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is printed: `picked` is `header.hostProfile` of a job that would be started here.
#[derive(Debug, Serialize)]
struct Hosts {
    picked: HostProfile,
    hosts: Vec<HostRow>,
}

/// Prints the host that a job here would assume, and all that there are.
pub(super) fn main(options: &Options) -> ExitCode {
    let host = Host::find(options.host.as_deref(), options.host_allows);
    let patience = host.hurried().unwrap_or_else(|| host.unhurried());
    let hosts = Hosts { picked: host.facts(patience), hosts: supervise::host_rows() };
    if options.json { json(&hosts) } else { print(|out| hosts.show(host.title(), out)) }
}

impl Hosts {
    fn show(&self, title: &str, out: &mut impl Write) -> io::Result<()> {
        let Self { picked, hosts } = self;
        let killed = picked.grace_ms.map(|grace| grace.saturating_add(picked.kill_after_ms));
        writeln!(out, "Here a job assumes {title} ({}), chosen by {}.", picked.name, picked.chosen_by)?;
        writeln!(out, "  to end a job         {}", picked.ladder)?;
        writeln!(out, "  it allows            {}", seconds(picked.allows_ms))?;
        writeln!(out, "  evidence so far      {}", seconds(Some(picked.provisional_ms)))?;
        writeln!(out, "  SIGTERM              {}", seconds(picked.grace_ms))?;
        writeln!(out, "  SIGKILL              {}", seconds(killed))?;
        writeln!(out, "  evidence complete    {}", seconds(picked.complete_ms))?;
        writeln!(out, "Times count from the host's first signal; --host and --host-allows say otherwise.")?;
        writeln!(out)?;
        writeln!(out, "  {:<18} {:>8} {:>8} {:>8}  known by", "--host", "allows", "SIGTERM", "SIGKILL")?;
        for row in hosts {
            let mark = if row.name == picked.name { '*' } else { ' ' };
            let [allows, grace, kill] = [row.allows_ms, row.grace_ms, row.kill_ms].map(seconds);
            let known_by = row.known_by.replace('`', "");
            writeln!(out, "{mark} {:<18} {allows:>8} {grace:>8} {kill:>8}  {known_by}", row.name)?;
        }
        Ok(())
    }
}

fn seconds(ms: Option<u64>) -> String {
    ms.map_or_else(|| "-".to_owned(), |ms| format!("{} s", ms as f64 / 1e3))
}
