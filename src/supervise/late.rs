//! Requests to stop that come when the job's end is on record already. They change nothing, and whoever is still there puts
//! them on record beside the bundle.

use super::finished::in_words;
use super::job::{Core, Note};
use crate::cancel::{Answer, Request, Via};
use crate::clock::Mono;
use crate::verdict::Verdict;
use chrono::{DateTime, Utc};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// A request that came too late, for the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateRequest {
    /// When it came.
    pub at: DateTime<Utc>,
    /// Who asked, how, how long after the end, and what that end was.
    pub note: String,
}

/// Puts one on record; the error is for a person.
pub type PutBeside<'a> = &'a mut dyn FnMut(&LateRequest) -> Result<(), String>;

/// Takes the late requests out of the notes to the main loop, and counts the threads that have ended.
#[derive(Debug, Default)]
pub(super) struct Heard {
    late: Vec<Request>,
    /// How the first of them came.
    pub(super) first: Option<Via>,
    /// Threads that have ended.
    pub(super) over: usize,
}

impl Heard {
    /// Takes one note; true for a late request.
    pub(super) fn hear(&mut self, note: Note) -> bool {
        match note {
            Note::Carried | Note::Said => self.over += 1,
            Note::Request(request) if request.answer == Answer::Over => {
                self.first.get_or_insert(request.ask.via);
                self.late.push(request);
                return true;
            }
            _ => {}
        }
        false
    }

    /// Takes what has come so far.
    pub(super) fn hear_all(&mut self, notes: &Receiver<Note>) {
        while let Ok(note) = notes.try_recv() {
            self.hear(note);
        }
    }

    /// Waits until so many threads have ended. False when it was given up, for a late request or because the time was over.
    pub(super) fn wait_for(
        &mut self,
        notes: &Receiver<Note>,
        threads: usize,
        until: Option<Instant>,
    ) -> bool {
        while self.over < threads {
            let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
            match notes.recv_timeout(left) {
                Ok(note) => {
                    if self.hear(note) {
                        return false;
                    }
                }
                Err(_) => return false,
            }
        }
        true
    }

    /// Puts on record what was heard, and gives the words on each.
    pub(super) fn put_on_record(&mut self, core: &Core, verdict: &Verdict, put: PutBeside) -> Vec<String> {
        let tell = |request: Request| {
            let late = late(&request, core, verdict);
            let record = match put(&late) {
                Ok(()) => "it is on record beside the bundle".to_owned(),
                Err(e) => format!("it could not be put on record: {e}"),
            };
            let (via, state) = (request.ask.via.name(), in_words(verdict));
            format!(
                "the stop ({via}) comes too late: the job has ended ({state}), and nothing changes; {record}"
            )
        };
        std::mem::take(&mut self.late).into_iter().map(tell).collect()
    }
}

fn late(request: &Request, core: &Core, verdict: &Verdict) -> LateRequest {
    let ask = &request.ask;
    let source = serde_json::to_value(ask.source).unwrap_or_default();
    let source = source.as_str().unwrap_or_default();
    let pid = ask.pid.map(|pid| format!(", process {pid}")).unwrap_or_default();
    let uid = ask.uid.map(|uid| format!(", user {uid}")).unwrap_or_default();
    let reason = ask.reason.as_ref().map(|reason| format!("; its reason: {reason}")).unwrap_or_default();
    let after = core.ended_at.map_or(0, |ended| request.at.since(ended).as_millis());
    let mut note = format!(
        "{} (source {source}{pid}{uid}) came {after} ms after the job had ended: {}; nothing was changed{reason}",
        ask.via.name(),
        in_words(verdict)
    );
    core.secrets.hide(&mut note);
    LateRequest { at: Utc::now() - Mono::now().since(request.at), note }
}
