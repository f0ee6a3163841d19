//! The beginning of a session: the only part in which answers are waited for.

use super::heartbeat::Heartbeat;
use super::{Phase, Relay, session_name};
use crate::stream::connection::{Control, connect, timespec};
use crate::stream::options::StreamOptions;
use crate::stream::session::{Identity, Trouble};
use rustix::event::{PollFd, PollFlags, poll};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tracepoint_reader::net::Decoded;
use tracepoint_reader::net::relay::{
    Command, CreateChunk, CreateSession, LONGEST_HOST_NAME, LONGEST_SESSION_NAME, MAJOR, MINOR, MINOR_WITH_CHUNKS,
    Reply, ReturnCode, Version,
};

/// The longest pause between two questions what is stored.
const CONFIRM_INTERVAL: Duration = Duration::from_millis(200);

impl Relay {
    /// Connects and creates a session, the `connection`-th of this trace.
    pub(in crate::stream) fn connect(
        options: &StreamOptions,
        identity: &Identity,
        connection: u64,
        deadline: Instant,
    ) -> Result<Self, Trouble> {
        let to = &options.destination;
        let name = session_name(identity, connection);
        for (what, name, most) in
            [("session", &name, LONGEST_SESSION_NAME), ("host", &identity.host, LONGEST_HOST_NAME)]
        {
            if name.is_empty() || name.len() > most || name.starts_with('.') || name.contains('/') {
                let length = name.len();
                return Err(Trouble::Final(format!(
                    "a relay takes names of 1 to {most} bytes that do not begin with a dot and contain no slash; the name of the {what} is \
                     `{name}`, of {length} bytes"
                )));
            }
        }
        let mut control = Control::new(connect(to, to.control_port, deadline)?);
        let own = Version { major: MAJOR, minor: MINOR };
        let Reply::Version(version) = ask(&mut control, &Command::Version(own), MINOR, deadline)? else {
            return Err(no_relay("another answer than a version"));
        };
        if version.major != MAJOR || version.minor < MINOR_WITH_CHUNKS {
            let Version { major, minor } = version;
            return Err(Trouble::Final(format!(
                "the relay speaks version {major}.{minor}; 2.{MINOR_WITH_CHUNKS} is needed"
            )));
        }
        let minor = version.minor.min(MINOR);
        let creation_time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let create = CreateSession {
            name,
            host: identity.host.clone(),
            live_timer: u32::try_from(options.sync_interval.as_micros()).unwrap_or(u32::MAX),
            sender: identity.uuid,
            id: identity.pid.into(),
            creation_time,
            ..CreateSession::default()
        };
        let session = match ask(&mut control, &Command::CreateSession(create), minor, deadline)? {
            Reply::Session { id, code: ReturnCode::Ok, .. } => id,
            Reply::Session { code, .. } => {
                return Err(Trouble::Final(format!("the relay refuses the session: {code}")));
            }
            _ => return Err(no_relay("another answer than a session")),
        };
        let chunk = Command::CreateChunk(CreateChunk { id: 0, creation_time, name: None });
        match ask(&mut control, &chunk, minor, deadline)? {
            Reply::Code(ReturnCode::Ok) => {}
            Reply::Code(code) => return Err(Trouble::Final(format!("the relay refuses the trace: {code}"))),
            _ => return Err(no_relay("another answer than a code")),
        }
        Ok(Self {
            control,
            data: connect(to, to.data_port, deadline)?,
            minor,
            session,
            uuid: identity.uuid,
            metadata: None,
            metadata_sent: 0,
            streams: BTreeMap::new(),
            heartbeat: Heartbeat::default(),
            expected: VecDeque::new(),
            sending: None,
            phase: Phase::Streaming,
            confirm_at: Instant::now(),
            confirm_interval: options.sync_interval.min(CONFIRM_INTERVAL),
        })
    }
}

fn no_relay(answer: &str) -> Trouble {
    Trouble::Temporary(io::Error::new(ErrorKind::InvalidData, format!("the peer is no relay: it gave {answer}")))
}

/// Sends a command and waits for its answer.
fn ask(control: &mut Control, command: &Command<'_>, minor: u32, deadline: Instant) -> Result<Reply, Trouble> {
    command.encode(minor, control.output());
    loop {
        control.flush()?;
        control.receive()?;
        match Reply::decode(command, control.input(), minor) {
            Err(error) => return Err(no_relay(&error.to_string())),
            Ok(Decoded::Whole(reply, size)) => {
                control.consume(size);
                return Ok(reply);
            }
            Ok(Decoded::Needs(_)) => {}
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(ErrorKind::TimedOut, "the relay does not answer").into());
        }
        let flags = if control.is_blocked() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        // After EINTR or ENOMEM the socket is looked at as after a timeout.
        let _ = poll(&mut [PollFd::new(&control.socket, flags)], Some(&timespec(left)));
    }
}
