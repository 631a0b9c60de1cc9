//! The asking side of the control socket.

use super::{ControlError, EXCHANGE, Entry, LINE_LIMIT, Question, Reply, live_jobs};
use crate::fsio;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// The one running job that is meant: by its name, the beginning of its name or its bundle; without any of them the
/// only one there is.
pub fn find(name: Option<&str>) -> Result<Entry, ControlError> {
    choose(name, live_jobs()?)
}

fn choose(name: Option<&str>, jobs: Vec<Entry>) -> Result<Entry, ControlError> {
    if jobs.is_empty() && name.is_none() {
        return Err(ControlError::NoJob);
    }
    let all: Vec<String> = jobs.iter().map(|j| j.job.clone()).collect();
    let mut fitting = match name {
        None => jobs,
        Some(name) => fitting(name, jobs),
    };
    match (fitting.len(), name) {
        (1, _) => Ok(fitting.remove(0)),
        (0, Some(name)) => Err(ControlError::UnknownJob { name: name.to_owned(), others: all }),
        _ => Err(ControlError::SeveralJobs(fitting.into_iter().map(|j| j.job).collect())),
    }
}

fn fitting(name: &str, jobs: Vec<Entry>) -> Vec<Entry> {
    if let Some(exact) = jobs.iter().find(|j| j.job == name) {
        return vec![exact.clone()];
    }
    // A job that is tried several times has its bundle in the folder that the user knows.
    // One that was moved meanwhile is still known by the path that it had.
    let folder = std::fs::canonicalize(Path::new(name)).or_else(|_| std::path::absolute(Path::new(name)));
    if let Ok(folder) = folder {
        let within: Vec<Entry> = jobs.iter().filter(|j| j.bundle.starts_with(&folder)).cloned().collect();
        if !within.is_empty() {
            return within;
        }
    }
    jobs.into_iter().filter(|j| !name.is_empty() && j.job.starts_with(name)).collect()
}

/// Asks a running job one question.
pub fn ask(entry: &Entry, question: &Question) -> Result<Reply, ControlError> {
    let path = entry.socket(&fsio::runtime_folder()?);
    let failed = |action| move |source| ControlError::Socket { action, job: entry.job.clone(), source };
    let stream = connect(&path).map_err(failed("reach"))?;
    let reply = exchange(stream, question).map_err(failed("talk through"))?;
    match reply {
        Reply::Error { message } => Err(ControlError::Refused(message)),
        other => Ok(other),
    }
}

/// Connects; a job that has only just made itself known opens its socket a moment later.
fn connect(path: &Path) -> io::Result<UnixStream> {
    let give_up = Instant::now() + Duration::from_secs(1);
    loop {
        match UnixStream::connect(path) {
            Err(e) if not_yet(&e) && Instant::now() < give_up => {
                std::thread::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
    }
}

fn not_yet(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

fn exchange(mut stream: UnixStream, question: &Question) -> io::Result<Reply> {
    // The runner's own limit, and a little for the way.
    stream.set_read_timeout(Some(EXCHANGE * 2))?;
    stream.set_write_timeout(Some(EXCHANGE))?;
    let mut line = serde_json::to_vec(question)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = Vec::new();
    // A reply may hold a deep branch: it is larger than any question.
    BufReader::new(stream).take(64 * LINE_LIMIT as u64).read_until(b'\n', &mut answer)?;
    if answer.is_empty() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the job ended before it answered"));
    }
    Ok(serde_json::from_slice(&answer)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(job: &str) -> Entry {
        Entry { job: job.to_owned(), pid: 1, bundle: "/nowhere".into(), started: String::new() }
    }

    #[test]
    fn a_job_is_found_by_its_name_or_a_unique_beginning() {
        let jobs = || vec![entry("20250101t000000z-7-aa11"), entry("20250101t000000z-77-bb22")];
        let found = |name| choose(Some(name), jobs());
        assert_eq!(found("20250101t000000z-7-aa11").unwrap().pid, 1);
        assert_eq!(found("20250101t000000z-77").unwrap().job, "20250101t000000z-77-bb22");
        assert!(matches!(found("2025"), Err(ControlError::SeveralJobs(all)) if all.len() == 2));
        assert!(matches!(found("x"), Err(ControlError::UnknownJob { others, .. }) if others.len() == 2));
        assert!(matches!(found(""), Err(ControlError::UnknownJob { .. })));
    }

    #[test]
    fn without_a_name_there_must_be_exactly_one() {
        assert!(matches!(choose(None, vec![]), Err(ControlError::NoJob)));
        assert_eq!(choose(None, vec![entry("a")]).unwrap().job, "a");
        assert!(matches!(choose(None, vec![entry("a"), entry("b")]), Err(ControlError::SeveralJobs(_))));
    }
}
