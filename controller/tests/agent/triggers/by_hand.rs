//! A client and the bytes of the notification socket, written only from the tables of their format; and a listener to test them with.

#![expect(clippy::host_endian_bytes, reason = "messages have the byte order of the host")]

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;
use tracepoint_controller::trigger::Listener;
use tracepoint_run_dir::RunDir;

/// Header and payload: `cmd`, `msg_size`, and as many bytes.
pub(super) fn message(command: u32, payload: &[u8]) -> Vec<u8> {
    let size = u32::try_from(payload.len()).expect("a short payload");
    [&command.to_ne_bytes()[..], &size.to_ne_bytes(), payload].concat()
}

/// The payload of ONANYCOREDUMP, without padding.
pub(super) fn core_dump(pid: u32, uid: u32, gid: u32, executable: &[u8], host: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 522];
    bytes[0..4].copy_from_slice(&pid.to_ne_bytes());
    bytes[4..8].copy_from_slice(&uid.to_ne_bytes());
    bytes[8..12].copy_from_slice(&gid.to_ne_bytes());
    bytes[12..12 + executable.len()].copy_from_slice(executable);
    bytes[267..267 + host.len()].copy_from_slice(host);
    bytes
}

pub(super) struct Client(UnixStream);

impl Client {
    pub(super) fn connect(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self(stream))
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    /// Returns the next answer; `None` if the connection was closed.
    pub(super) fn answer(&mut self) -> io::Result<Option<i32>> {
        let mut bytes = [0; 4];
        match self.0.read_exact(&mut bytes) {
            Ok(()) => Ok(Some(i32::from_ne_bytes(bytes))),
            Err(error) if matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the next `count` bytes.
    pub(super) fn bytes(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Signals the end of the input.
    pub(super) fn shut(&self) {
        self.0.shutdown(Shutdown::Write).expect("it is connected");
    }
}

/// A listener on a separate thread; ends on drop.
pub(super) struct Listening {
    end: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Listening {
    pub(super) fn start(run_dir: &Path) -> Self {
        let run_dir = RunDir::at(run_dir).expect("a run directory");
        let mut listener = Listener::bind(run_dir).expect("nobody listens");
        let (end, ended) = UnixStream::pair().expect("a pair");
        let thread = std::thread::spawn(move || {
            listener.serve(ended.as_fd(), |report| eprintln!("{report:?}")).expect("it can wait");
        });
        Self { end: Some(end), thread: Some(thread) }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        drop(self.end.take());
        self.thread.take().map(JoinHandle::join);
    }
}
