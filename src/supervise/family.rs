//! The command and everything that came from it.

use super::group::Group;
use super::kin::{Kin, Process};
use super::ladder::Rung;
use crate::clock::Mono;
use rustix::process::Signal;
use std::io;
use std::time::Duration;

/// How long those are run after that were made just now.
const CHASE: Duration = Duration::from_millis(10);

/// The processes of one job.
#[derive(Debug, Clone)]
pub struct Family {
    kin: Kin,
    group: Group,
    session: u32,
    gone: bool,
    /// Whether somebody will tell when nothing is left: the keeper, or whoever waits in its place.
    told: bool,
}

/// Which processes are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Members {
    /// Those of the command's own session.
    Bound,
    /// All, with those that moved to a session of their own, as daemons do on purpose.
    All,
}

impl Family {
    /// The family of a command that leads `group`, lives in `session` and is found among `kin`.
    #[must_use]
    pub fn new(kin: Kin, group: Group, session: u32) -> Self {
        Self { kin, group, session, gone: false, told: true }
    }

    /// The command's group.
    #[must_use]
    pub fn group(&self) -> Group {
        self.group
    }

    /// The command was reaped, or will be at any moment.
    pub fn leader_reaped(&mut self) {
        self.group.leader_reaped();
    }

    /// The keeper is lost: the orphans are found among `kin`, and whether somebody tells of their end is in `told`.
    pub fn lose_keeper(&mut self, kin: Kin, told: bool) {
        self.kin = kin;
        self.told = told;
    }

    /// Whoever inherits the orphans has no child any more: nothing of the family is left.
    pub fn leave(&mut self) {
        self.gone = true;
    }

    /// Whether it is known, without another look, that nothing of the family is left.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// The living members; nobody can be named without `/proc`.
    #[must_use]
    pub fn living(&self, members: Members) -> Vec<Process> {
        self.look(members).unwrap_or_default()
    }

    /// Whether none of these members is left. Where all are meant, only who inherits them knows: a process that forks
    /// from session to session is easily overlooked. Without `/proc` only the group can be asked, once its leader is
    /// reaped.
    #[must_use]
    pub fn has_none(&self, members: Members) -> bool {
        if self.gone || (self.told && members == Members::All) {
            return self.gone;
        }
        match self.look(members) {
            None => self.group.is_unknown(),
            // A keeper that ended a moment ago has given its children away: they must be looked for elsewhere first.
            Some(living) => living.is_empty() && self.kin.has_root(),
        }
    }

    /// The living members; `None` where they cannot be seen.
    fn look(&self, members: Members) -> Option<Vec<Process>> {
        if self.gone {
            return Some(Vec::new());
        }
        let mut living = self.kin.living()?;
        living.retain(|process| members == Members::All || self.binds(process));
        Some(living)
    }

    fn binds(&self, process: &Process) -> bool {
        process.session == self.session || process.group == self.group.id()
    }

    /// Climbs a rung for the command's group and for `members`.
    ///
    /// # Errors
    /// The first refusal to signal; the others are signalled all the same.
    pub fn strike(&self, rung: Rung, members: Members) -> io::Result<()> {
        match rung {
            Rung::Cooperative => Ok(()),
            // A stopped process is woken, or it would never hear of it.
            Rung::Terminate => self.send(Signal::TERM, members).and(self.send(Signal::CONT, members)),
            Rung::Kill => self.send(Signal::KILL, members),
        }
    }

    /// After SIGKILL: kills what was made at that very moment, and runs after those that fork from session to session.
    pub fn strike_again(&self, members: Members) {
        // A refusal is on record already.
        let _ = self.strike(Rung::Kill, members);
        let start = Mono::now();
        while !self.gone && Mono::now().since(start) < CHASE {
            for process in self.kin.newest() {
                if members == Members::All || self.binds(&process) {
                    let _ = process.signal(Signal::KILL);
                }
            }
        }
    }

    /// Signals the command's group and the `members` outside of it.
    ///
    /// # Errors
    /// As for [`strike`](Self::strike).
    pub fn send(&self, signal: Signal, members: Members) -> io::Result<()> {
        let group = self.group.id();
        let living = self.look(members);
        // Once the leader is reaped, a group of which nobody is left may have given its number to a stranger.
        let there = living.as_ref().is_none_or(|living| living.iter().any(|p| p.group == group));
        let mut sent = if there || !self.group.is_reaped() { self.group.send(signal) } else { Ok(()) };
        for process in living.unwrap_or_default().into_iter().filter(|p| p.group != group) {
            sent = sent.and(process.signal(signal));
        }
        sent
    }
}
