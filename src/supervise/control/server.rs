//! The answering side of the control socket. Each client has a thread of its own and two seconds, so that a slow or a
//! silent one delays nobody.

use super::{Caller, Cancelled, EXCHANGE, LINE_LIMIT, Question, Reply};
use crate::cancel::{Answer, Ask, Cancellation, Via};
use crate::supervise::status::Live;
use rustix::net::UCred;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Clients beyond this number are turned away at once.
const CLIENTS: usize = 16;

/// Asks the main loop for the job's status; nothing when it is too busy, or over.
pub type AskStatus = Box<dyn Fn() -> Option<Live> + Send + Sync>;

struct Server {
    job: String,
    cancellation: Arc<Cancellation>,
    status: AskStatus,
    clients: AtomicUsize,
}

/// Answers clients on threads that end with the process.
pub fn serve(listener: UnixListener, job: String, cancellation: Arc<Cancellation>, status: AskStatus) {
    let server = Arc::new(Server { job, cancellation, status, clients: AtomicUsize::new(0) });
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            match stream {
                Ok(stream) => admit(&server, stream),
                // Out of descriptors or memory: those that are being served will free some.
                Err(_) => std::thread::sleep(EXCHANGE / 20),
            }
        }
    });
}

fn admit(server: &Arc<Server>, stream: UnixStream) {
    if server.clients.fetch_add(1, Ordering::Relaxed) >= CLIENTS {
        server.clients.fetch_sub(1, Ordering::Relaxed);
        return;
    }
    let server = Arc::clone(server);
    std::thread::spawn(move || {
        // Whatever goes wrong on the way to one client is that client's loss alone.
        let _ = server.talk(stream);
        server.clients.fetch_sub(1, Ordering::Relaxed);
    });
}

impl Server {
    fn talk(&self, mut stream: UnixStream) -> io::Result<()> {
        stream.set_write_timeout(Some(EXCHANGE))?;
        let peer = rustix::net::sockopt::socket_peercred(&stream)?;
        let reply = match read_line(&mut stream) {
            Err(message) => Reply::Error { message },
            Ok(line) => self.answer(&line, peer),
        };
        let mut line = serde_json::to_vec(&reply)?;
        line.push(b'\n');
        stream.write_all(&line)
    }

    fn answer(&self, line: &[u8], peer: UCred) -> Reply {
        let owner = rustix::process::geteuid();
        if peer.uid != owner && !peer.uid.is_root() {
            return error("only the user who started the job may speak to it");
        }
        match serde_json::from_slice(line) {
            Ok(Question::Cancel { source, reason }) => self.cancel(source, reason, peer),
            Ok(Question::Status) => self.status(),
            Err(e) => error(&format!(
                "this is no question that I know ({e}); ask {{\"verb\":\"status\"}} or {{\"verb\":\"cancel\"}}"
            )),
        }
    }

    fn status(&self) -> Reply {
        if let Some(state) = self.cancellation.end() {
            return error(&format!(
                "the job has ended ({state}), and its evidence is written; see its bundle"
            ));
        }
        match (self.status)() {
            Some(job) => Reply::Status(Box::new(job)),
            None => error("the job is ending or its disk is busy; ask again"),
        }
    }

    fn cancel(&self, source: Option<Caller>, reason: Option<String>, peer: UCred) -> Reply {
        let request = self.cancellation.request(Ask {
            source: source.unwrap_or(Caller::Api).into(),
            via: Via::ControlSocket,
            reason,
            pid: u32::try_from(peer.pid.as_raw_nonzero().get()).ok(),
            uid: Some(peer.uid.as_raw()),
        });
        match request.answer {
            Answer::Over => Reply::TooLate { job: self.job.clone(), ended: self.cancellation.end() },
            Answer::Gone => error("the job has ended and its runner leaves; nothing was stopped or recorded"),
            answer => Reply::Cancel(Cancelled {
                job: self.job.clone(),
                request: request.number,
                accepted: answer == Answer::Accepted,
                late: request.late,
            }),
        }
    }
}

fn error(message: &str) -> Reply {
    Reply::Error { message: message.to_owned() }
}

/// Reads up to the end of a line within the time for a whole exchange, however slowly the bytes come.
fn read_line(stream: &mut UnixStream) -> Result<Vec<u8>, String> {
    let give_up = Instant::now() + EXCHANGE;
    let (mut line, mut chunk) = (Vec::new(), [0_u8; 4096]);
    loop {
        let left = give_up.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return Err("no whole line came in time".to_owned());
        }
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(line),
            Ok(n) => line.extend_from_slice(&chunk[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err("no whole line came in time".to_owned()),
        }
        if let Some(end) = line.iter().position(|b| *b == b'\n') {
            line.truncate(end);
            return Ok(line);
        }
        if line.len() > LINE_LIMIT {
            return Err(format!("a line may have {LINE_LIMIT} bytes"));
        }
    }
}
