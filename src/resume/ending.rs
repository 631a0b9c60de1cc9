//! Writes the rest of a log: what the builders told, what the caller knows, and the end.

use super::Known;
use super::gather::{Page, Remains};
use super::output::Output;
use super::replay::Rest;
use super::seen::Seen;
use crate::artifact::{self, Journal, Terms};
use crate::cancel::Via;
use crate::event::{
    CancelRequested, CommandExited, Event, EventKind, EvidenceLost, JobEnded, LogError, LogWriter,
    RecordsUnfinished, SettledBy,
};
use crate::mask::Secrets;
use crate::verdict::Verdict;
use crate::wire::Requested;

/// The reason that stands with a request of which only the control page knew.
const FROM_THE_PAGE: &str =
    "taken from the control page: the runner was lost before it could put this on record";
/// Why the last line is not enough for a success.
const NOT_VOUCHED: &str =
    "the log ends with the command's exit code 0, and no later line vouches for that one";

/// What is known once the rest is written.
pub(super) struct Written {
    /// Whether there was a secret in it.
    pub(super) secret: bool,
    /// What is on record of the artifacts.
    pub(super) journal: Journal,
}

/// The writing of the rest.
pub(super) struct Ending {
    writer: LogWriter,
    seen: Seen,
    rest: Rest,
}

impl Ending {
    /// Goes on behind what was seen.
    pub(super) fn new(writer: LogWriter, seen: Seen, rest: Rest) -> Self {
        Self { writer, seen, rest }
    }

    /// Writes everything up to the end, on disk when this returns.
    pub(super) fn write(
        mut self,
        known: &Known,
        remains: Remains,
        output: Output,
    ) -> Result<Written, LogError> {
        let Remains { page, mut losses, unfinished, .. } = remains;
        let seen_by_caller = matches!(known.exited, Some((_, CommandExited { code: Some(0), .. })));
        let doubtful = self.seen.ends_with_success && !seen_by_caller;
        losses.extend(doubtful.then(|| loss(NOT_VOUCHED)));
        losses.extend(self.rest.loss.take());
        losses.extend(output.losses);
        let news = self.news(known, &page);
        self.append_rest(news)?;
        losses.extend(self.contradiction(&page));
        for event in self.seen.aborts(known.reason) {
            self.put(&event)?;
        }
        if unfinished > 0 && !self.seen.unfinished {
            let kind = EventKind::RecordsUnfinished(RecordsUnfinished { records: unfinished });
            self.put(&Event { at: self.seen.last, kind })?;
        }
        if let Some(masked) = output.masked {
            self.put(&Event { at: self.seen.last, kind: EventKind::OutputMasked(masked) })?;
        }
        for lost in losses {
            self.lose(lost, &known.secrets)?;
        }
        self.settle_artifacts(known)?;
        if let Some(host) = &known.host {
            self.put_once(EventKind::HostReported(host.clone()))?;
        }
        let ended = self.end(known.exit_code);
        self.put(&Event { at: self.seen.last, kind: EventKind::JobEnded(ended) })?;
        self.writer.sync()?;
        let secret = self.writer.has_masked() || self.rest.masked;
        Ok(Written { secret, journal: self.seen.journal })
    }

    /// Settles the artifacts that are not settled yet. Who comes with news of a job that has just been lost may not have
    /// long; who comes later has the time for every digest.
    fn settle_artifacts(&mut self, known: &Known) -> Result<(), LogError> {
        let hurry = known.exited.is_some() || !known.events.is_empty();
        let wish = self.seen.verdict().as_success().and_then(|()| self.seen.journal.may_publish());
        let journal = self.seen.journal.clone();
        let mut written = Ok(());
        artifact::settle(&journal, &Terms { wish, hurry, by: SettledBy::Successor }, &mut |kind| {
            let decides = matches!(kind, EventKind::ArtifactsAccepted(_));
            if written.is_ok() {
                written = self.put(&Event { at: self.seen.last, kind });
            }
            if decides && written.is_ok() {
                written = self.writer.sync();
            }
            written.is_ok()
        });
        written
    }

    /// What is not on record yet and comes from no builder, in the order of time.
    fn news(&self, known: &Known, page: &Page) -> Vec<Event> {
        let masked =
            |event: &Event| Event { at: event.at, kind: event.kind.masked(&known.secrets).into_owned() };
        let mut news: Vec<Event> = known.events.iter().map(masked).collect();
        news.retain(|event| !self.seen.own.contains(event));
        let exited = known.exited.clone().filter(|_| self.seen.exited.is_none());
        news.extend(exited.map(|(at, exited)| Event { at, kind: EventKind::CommandExited(exited) }));
        let asked = self.seen.accepted.is_some() || news.iter().any(is_accepted_request);
        if let Page::Request(requested) = page
            && !asked
        {
            news.push(Event { at: requested.at, kind: from_the_page(requested) });
        }
        news.sort_by_key(|event| event.at);
        news
    }

    /// Appends the records that are left and the news, as they happened.
    fn append_rest(&mut self, news: Vec<Event>) -> Result<(), LogError> {
        for event in std::mem::take(&mut self.rest.due) {
            self.put(&event)?;
        }
        let mut news = news.into_iter().peekable();
        let mut made = Vec::new();
        for record in std::mem::take(&mut self.rest.records) {
            while let Some(event) = news.next_if(|event| event.at < record.at) {
                self.put_news(event)?;
            }
            self.rest.tracker.ingest(&record, &mut made);
            for event in made.drain(..) {
                self.put(&event)?;
            }
        }
        news.try_for_each(|event| self.put_news(event))
    }

    fn put_news(&mut self, mut event: Event) -> Result<(), LogError> {
        let mut answers = Vec::new();
        if let EventKind::CancelRequested(request) = &mut event.kind {
            if request.open_branch.is_empty() {
                request.open_branch = self.rest.tracker.open_branch(event.at);
            }
            if request.accepted {
                self.rest.tracker.request_accepted(request.request, event.at, &mut answers);
            }
        }
        self.put(&event)?;
        answers.iter().try_for_each(|answer| self.put(answer))
    }

    /// The runner writes the page and the log; where they tell of different requests, one of them was damaged.
    fn contradiction(&self, page: &Page) -> Option<EvidenceLost> {
        let log = self.seen.accepted.as_ref().map(|(at, request)| (request.request, *at, request.source));
        let agree = match page {
            Page::Unreadable => true,
            Page::NoRequest => log.is_none(),
            Page::Request(page) => log == Some((page.request, page.at, page.source)),
        };
        (!agree).then(|| loss("the log and the control page tell of different requests to stop"))
    }

    fn lose(&mut self, mut lost: EvidenceLost, secrets: &Secrets) -> Result<(), LogError> {
        secrets.hide(&mut lost.reason);
        if self.seen.losses.contains(&lost) {
            return Ok(());
        }
        self.put(&Event { at: self.seen.last, kind: EventKind::EvidenceLost(lost) })
    }

    /// An earlier attempt to finish may have come as far.
    fn put_once(&mut self, kind: EventKind) -> Result<(), LogError> {
        if self.seen.own.iter().any(|event| event.kind.covers(&kind)) {
            return Ok(());
        }
        self.put(&Event { at: self.seen.last, kind })
    }

    fn put(&mut self, event: &Event) -> Result<(), LogError> {
        self.seen.see(event);
        self.writer.append(event)
    }

    fn end(&self, unknown: u8) -> JobEnded {
        let verdict = self.seen.verdict();
        let via = self.seen.accepted.as_ref().and_then(|(_, request)| Via::beginning_with(&request.via));
        let limit = via.is_some_and(Via::is_limit);
        let own_fault = !self.seen.losses.is_empty();
        let exit_code = verdict.exit_code(self.seen.exited.as_ref(), unknown, limit, own_fault);
        let Verdict { state, cause, observed, .. } = verdict;
        JobEnded { state, cause, observed, exit_code }
    }
}

fn loss(reason: &str) -> EvidenceLost {
    EvidenceLost { records: 0, reason: reason.to_owned() }
}

fn is_accepted_request(event: &Event) -> bool {
    matches!(&event.kind, EventKind::CancelRequested(request) if request.accepted)
}

fn from_the_page(requested: &Requested) -> EventKind {
    EventKind::CancelRequested(CancelRequested {
        request: requested.request,
        source: requested.source,
        via: Via::beginning_with(&requested.via)
            .map_or_else(|| requested.via.clone(), |via| via.name().to_owned()),
        reason: Some(FROM_THE_PAGE.to_owned()),
        accepted: true,
        kill: false,
        pid: requested.pid,
        uid: requested.uid,
        open_branch: Vec::new(),
    })
}
