//! `stuckproof run --retry`: one attempt after the other, each with a bundle of its own.
//!
//! All of them run in this process, so that whoever signals the job reaches the attempt that runs, and reaches it once.

use super::super::{fail, say};
use crate::attempts::{self, Attempts, AttemptsError};
use crate::event::{CachePolicy, NthAttempt};
use crate::evidence::{self, RetryPolicy};
use crate::exit;
use crate::seal;
use crate::sign::SigningKey;
use crate::supervise::{self, DEFAULT_FOLDER, Deadline, Left, Plan, Signalled};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

/// A job and its attempts.
struct Retries {
    plan: Plan,
    folder: PathBuf,
    limit: u32,
    key: Option<Arc<SigningKey>>,
    began: Instant,
    signalled: Option<Signalled>,
}

/// Tries the job, and tries it again as long as that is recommended.
pub(super) fn main(plan: Plan, retries: u32, key: Option<Arc<SigningKey>>) -> ExitCode {
    let folder = plan
        .bundle
        .clone()
        .unwrap_or_else(|| Path::new(DEFAULT_FOLDER).join(supervise::new_job(chrono::Utc::now())));
    if let Err(e) = supervise::create_empty(&folder) {
        return fail(&e);
    }
    let _held = match attempts::hold(&folder) {
        Ok(held) => held,
        Err(e) => return fail(&e),
    };
    // Another job was given the same folder at the same moment, and has come and gone.
    if let Err(e) = supervise::create_empty(&folder) {
        return fail(&e);
    }
    // From here on the folder tells what it is, whenever this process is killed.
    if let Err(e) = attempts::write(&folder, retries, None) {
        return fail(&e);
    }
    let mut all = Retries { plan, folder, limit: retries, key, began: Instant::now(), signalled: None };
    let code = all.run();
    say(&format!("evidence: {}", all.folder.display()));
    ExitCode::from(code)
}

impl Retries {
    fn run(&mut self) -> u8 {
        let mut plan = self.plan.clone();
        plan.attempt = Some(NthAttempt { number: 1, previous: None });
        for number in 1.. {
            plan.bundle = Some(self.folder.join(attempts::bundle_name(number)));
            let left = match self.attempt(plan) {
                Ok(left) => left,
                Err(why) => return self.broken(number, &why),
            };
            let next = match self.next(number, left) {
                Ok(next) => next,
                Err(why) => return self.end(left.exit_code, why),
            };
            if let Err(e) = self.write(None) {
                return self.end(exit::OWN_FAULT, e.to_string());
            }
            plan = next;
        }
        unreachable!("attempts end")
    }

    /// One attempt, to its end.
    fn attempt(&mut self, plan: Plan) -> Result<Left, String> {
        let job = super::prepare(&plan)?;
        match &self.signalled {
            // A signal that came between two attempts is given to this one.
            Some(signalled) if !job.is_asked_to_stop() => signalled.pass_on().map_err(|e| e.to_string())?,
            Some(_) => {}
            // From here on none is lost, whether an attempt hears it or not.
            None => {
                self.signalled = Some(Signalled::listen().map_err(|e| format!("cannot take signals: {e}"))?);
            }
        }
        let begun = super::begin(job, plan.history, self.key.clone())?;
        // What cannot be written now is written after the attempt, or is an error there.
        drop(self.write(None));
        Ok(begun.run())
    }

    /// The plan of the attempt after this one, or why there is none.
    fn next(&self, number: u32, left: Left) -> Result<Plan, String> {
        if left.exit_code == exit::OWN_FAULT {
            return Err("the evidence of the last attempt is not complete".to_owned());
        }
        let bundle = self.folder.join(attempts::bundle_name(number));
        let evidence = evidence::load(&bundle).map_err(|e| e.to_string())?.evidence;
        let policy = attempts::again(&evidence)?;
        if let Some(via) = left.asked {
            return Err(format!("a stop was asked for ({}) after the last attempt had ended", via.name()));
        }
        if self.signalled.as_ref().is_some_and(|signalled| signalled.signal().is_some()) {
            return Err("a signal asked for a stop after the last attempt".to_owned());
        }
        if self.plan.cancel_file.as_ref().is_some_and(|file| file.exists()) {
            return Err("the cancel file is there".to_owned());
        }
        if number > self.limit {
            return Err(attempts::limit_reached(self.limit));
        }
        let previous = seal::digest(&bundle).map_err(|e| format!("the last attempt is not sealed: {e}"))?;
        let attempt = NthAttempt { number: number + 1, previous: Some(previous.to_string()) };
        let plan = within(by_policy(self.plan.clone(), policy), self.began)?;
        let plan = Plan { attempt: Some(attempt), ..plan };
        say(&format!(
            "attempt {number} of at most {} ended; the next one follows ({}: {})",
            self.limit + 1,
            policy.name(),
            evidence.retry.reasons.join(", and ")
        ));
        Ok(plan)
    }

    fn write(&self, ended: Option<String>) -> Result<Attempts, AttemptsError> {
        attempts::write(&self.folder, self.limit, ended)
    }

    /// Puts on record why there is no further attempt, and says it.
    fn end(&self, code: u8, why: String) -> u8 {
        say(&format!("no further attempt: {why}"));
        match self.write(Some(why)) {
            Ok(_) => code,
            Err(e) => {
                say(&format!("the record of the attempts is not complete: {e}"));
                exit::OWN_FAULT
            }
        }
    }

    /// An attempt that could not begin.
    fn broken(&self, number: u32, why: &str) -> u8 {
        say(why);
        self.end(exit::OWN_FAULT, format!("attempt {number} could not begin: {why}"))
    }
}

/// A cold attempt finds no timing cache. What it writes to a declared one is treated as the user has said: it takes the place
/// of the one that may be at fault, or is thrown away.
fn by_policy(mut plan: Plan, policy: RetryPolicy) -> Plan {
    if policy == RetryPolicy::RetryCold {
        plan.artifacts.policy = match plan.artifacts.policy {
            CachePolicy::Reuse | CachePolicy::Refresh => CachePolicy::Refresh,
            CachePolicy::Readonly | CachePolicy::Off => CachePolicy::Off,
        };
    }
    plan
}

/// One deadline covers all attempts together.
fn within(mut plan: Plan, began: Instant) -> Result<Plan, String> {
    if let Deadline::After(span) = plan.deadline {
        let left = span.checked_sub(began.elapsed()).filter(|left| !left.is_zero());
        plan.deadline = Deadline::After(left.ok_or("the deadline leaves no time")?);
    }
    Ok(plan)
}
