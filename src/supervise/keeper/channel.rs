//! The line between the runner and the keeper: one JSON document a line, in both directions.

use super::super::spawn::Seat;
use crate::event::CommandExited;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// The most descriptors that are handed over: the command's three streams and the log.
const HANDED: usize = 4;

/// What the keeper is to do. The command's streams and the log's file come with it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Orders {
    /// The command and its arguments; never empty.
    pub argv: Vec<OsString>,
    /// Variables to set for it.
    pub environment: Vec<(OsString, OsString)>,
    /// Where it sits.
    pub seat: Seat,
    /// The bundle's folder.
    pub bundle: OsString,
    /// The wire's folder.
    pub wire: OsString,
    /// How long a builder may take to answer, milliseconds; none is without limit.
    pub grace_ms: Option<u64>,
    /// From SIGTERM to SIGKILL, milliseconds.
    pub kill_after_ms: u64,
    /// Bytes of each output stream that the bundle keeps, where it keeps any.
    pub output_cap: Option<u64>,
    /// What no file of the bundle may hold.
    pub secrets: Vec<OsString>,
    /// The folder that remembers builds, as an absolute path, where there is one.
    pub history: Option<OsString>,
}

/// What the keeper tells the runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Report {
    /// The command runs as this process.
    Started(u32),
    /// It could not be started, for this reason.
    NotStarted(String),
    /// The command ended at this time, in nanoseconds of the monotonic clock. It is not reaped yet, so that its number
    /// and its group's stay its own.
    Exited(u64, CommandExited),
    /// Nothing of the job is left.
    Alone,
}

/// What the runner tells the keeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Word {
    /// The command's number is not used any more: reap it.
    Reap,
    /// The job is finished.
    Finished,
}

/// One end of the line.
#[derive(Debug)]
pub struct Channel {
    stream: UnixStream,
    /// What has come and was not read yet.
    pending: Vec<u8>,
}

impl Channel {
    /// An end of a connected pair.
    #[must_use]
    pub fn new(stream: UnixStream) -> Self {
        Self { stream, pending: Vec::new() }
    }

    /// The same end for another thread that only sends.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn sender(&self) -> io::Result<Self> {
        Ok(Self::new(self.stream.try_clone()?))
    }

    /// Sends one document.
    ///
    /// # Errors
    /// When the other end is gone.
    pub fn send(&mut self, document: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(document)?;
        line.push(b'\n');
        self.stream.write_all(&line)
    }

    /// Waits for one document; none when the other end is gone.
    ///
    /// # Errors
    /// When what came is no such document.
    pub fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let mut chunk = [0; 4096];
        loop {
            if let Some(end) = self.pending.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            match self.stream.read(&mut chunk) {
                Ok(0) => return Ok(None),
                Ok(n) => self.pending.extend_from_slice(&chunk[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
                Err(e) => return Err(e),
            }
        }
    }

    /// Whether a whole document has come already.
    #[must_use]
    pub fn has_pending(&self) -> bool {
        self.pending.contains(&b'\n')
    }

    /// Sends descriptors.
    ///
    /// # Errors
    /// When the other end is gone, or too many descriptors are under way.
    pub fn hand_over(&mut self, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(HANDED))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(descriptors));
        rustix::net::sendmsg(&self.stream, &[IoSlice::new(b"\n")], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Waits for descriptors; an empty list when the other end is gone.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn take_over(&mut self) -> io::Result<Vec<OwnedFd>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(HANDED))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let into = &mut [IoSliceMut::new(&mut byte)];
        rustix::io::retry_on_intr(|| {
            rustix::net::recvmsg(&self.stream, into, &mut control, RecvFlags::CMSG_CLOEXEC)
        })?;
        let messages = control.drain();
        Ok(messages
            .filter_map(|m| if let RecvAncillaryMessage::ScmRights(fds) = m { Some(fds) } else { None })
            .flatten()
            .collect())
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn documents_arrive_in_order_and_the_end_is_told() {
        let (a, b) = UnixStream::pair().unwrap();
        let (mut runner, mut keeper) = (Channel::new(a), Channel::new(b));
        keeper.send(&Report::Started(7)).unwrap();
        keeper.send(&Report::Alone).unwrap();
        assert_eq!(runner.receive::<Report>().unwrap(), Some(Report::Started(7)));
        assert!(runner.has_pending());
        assert_eq!(runner.receive::<Report>().unwrap(), Some(Report::Alone));
        drop(keeper);
        assert_eq!(runner.receive::<Report>().unwrap(), None);
        assert!(runner.send(&Word::Reap).is_err());
    }

    #[test]
    fn descriptors_and_orders_with_any_bytes_arrive() {
        let (a, b) = UnixStream::pair().unwrap();
        let (mut runner, mut keeper) = (Channel::new(a), Channel::new(b));
        let mut file = tempfile::tempfile().unwrap();
        let odd = OsString::from_vec(vec![b'a', 0xFF, b'\n']);
        let orders = Orders {
            argv: vec![odd.clone()],
            environment: vec![(odd.clone(), odd.clone())],
            seat: Seat::Session,
            bundle: odd.clone(),
            wire: odd.clone(),
            grace_ms: None,
            kill_after_ms: 5,
            output_cap: Some(6),
            secrets: vec![odd.clone()],
            history: Some(odd.clone()),
        };
        runner.hand_over(&[file.as_fd()]).unwrap();
        runner.send(&orders).unwrap();
        let mut taken = keeper.take_over().unwrap();
        assert_eq!(taken.len(), 1);
        std::io::Write::write_all(&mut File::from(taken.remove(0)), b"through").unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
        let received: Orders = keeper.receive().unwrap().unwrap();
        assert_eq!((&received.argv[0], &received.bundle, &received.secrets[0]), (&odd, &odd, &odd));
        drop(runner);
        assert!(keeper.take_over().unwrap().is_empty());
    }
}
