//! The command's seat and streams, set up before it starts.

use super::Plan;
use super::bundle::Bundle;
use super::job::Note;
use super::keep::Keep;
use super::prepare::{PrepareError, note, system};
use super::signals::TerminalChanged;
use super::spawn::Seat;
use super::streams::{self, Carried, Output, Pump, Target};
use super::terminal::{Carrying, HandedThrough, Terminal};
use crate::fsio::FsError;
use crate::mask::Secrets;
use std::fs::File;
use std::io::IsTerminal;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// What the command will sit on.
pub(super) struct Stage {
    pub(super) seat: Seat,
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    pub(super) terminal: Option<Terminal>,
    pub(super) backstage: Backstage,
}

/// What carries the command's output, from before its start until after its end.
#[derive(Default)]
pub(super) struct Backstage {
    pumps: Vec<Pump>,
    carrying: Option<Carrying>,
    through: Option<HandedThrough>,
}

impl Stage {
    /// Sets it up; the word says how the streams are kept: `separate`, `merged` or `terminal`.
    pub(super) fn set(
        plan: &Plan,
        bundle: &Bundle,
        secrets: &Arc<Secrets>,
        tell: &Sender<Note>,
    ) -> Result<(Self, &'static str), PrepareError> {
        let keep = Keep::new(plan.output_cap, secrets);
        let output = |name, target| Output::create(&bundle.file(name), target, plan.output_cap.is_some());
        let out = output("stdout.log", Target::Stdout)?;
        if plan.tty {
            return Ok((Self::with_terminal(out, keep, tell)?, "terminal"));
        }
        let merged = streams::are_merged();
        let err = if merged { None } else { Some(output("stderr.log", Target::Stderr)?) };
        let stdin = if plan.cancel_on_stdin_close || std::io::stdin().is_terminal() {
            File::open("/dev/null").map(OwnedFd::from)
        } else {
            std::io::stdin().as_fd().try_clone_to_owned()
        };
        let stdin = stdin.map_err(system("give the command its standard input"))?;
        let (stdout, stderr) = (out.handle()?, err.as_ref().unwrap_or(&out).handle()?);
        let mut backstage = Backstage::default();
        for output in [Some(out), err].into_iter().flatten() {
            backstage.pumps.push(output.pump(keep.for_one_more(), note(tell, Note::Carried))?);
        }
        let stage = Self { seat: Seat::without_terminal(), stdin, stdout, stderr, terminal: None, backstage };
        Ok((stage, if merged { "merged" } else { "separate" }))
    }

    fn with_terminal(out: Output, keep: Keep, tell: &Sender<Note>) -> Result<Self, PrepareError> {
        let failed = "open a terminal for the command";
        let (terminal, side) = Terminal::open().map_err(system(failed))?;
        let log = out.handle()?;
        let backstage = Backstage {
            pumps: vec![out.pump(keep, note(tell, Note::Carried))?],
            carrying: Some(terminal.carry_output(log).map_err(system(failed))?),
            through: HandedThrough::new(),
        };
        let again = || side.try_clone().map_err(system(failed));
        Ok(Self {
            seat: Seat::Terminal,
            stdin: again()?,
            stdout: again()?,
            stderr: side,
            terminal: Some(terminal),
            backstage,
        })
    }

    /// What to do when our own terminal changed.
    pub(super) fn terminal_changed(&self) -> Option<TerminalChanged> {
        let terminal = self.terminal.clone()?;
        let again = self.backstage.through.as_ref().map(HandedThrough::again);
        Some(Box::new(move || {
            terminal.resize();
            if let Some(again) = &again {
                again();
            }
        }))
    }
}

impl Backstage {
    /// How much of the output each pump has carried, now and later.
    pub(super) fn carried(&self) -> Vec<Carried> {
        self.pumps.iter().map(Pump::carried).collect()
    }

    /// Gives our own terminal back as it was, for as long as somebody else uses it.
    pub(super) fn let_go(&self) {
        if let Some(through) = &self.through {
            through.let_go();
        }
    }

    /// Nothing more will be written: brings our terminal back and lets the pumps carry the rest. The number says how
    /// many will tell that they have; the list says what could not be kept.
    pub(super) fn finish(self) -> (usize, Vec<String>) {
        let mut faults = Vec::new();
        if let Some(Err(e)) = self.carrying.map(Carrying::finish) {
            faults.push(format!("a part of the command's output could not be kept: {e}"));
        }
        drop(self.through);
        let pumps = self.pumps.len();
        let cut: Vec<FsError> = self.pumps.into_iter().filter_map(|p| p.finish().err()).collect();
        faults.extend(cut.iter().map(FsError::to_string));
        (pumps, faults)
    }
}
