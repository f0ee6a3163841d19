//! The beginning of a session, the only part that waits for answers.

use super::heartbeat::Heartbeat;
use super::{Phase, Relay, session_name};
use crate::stream::connection::{Control, connect};
use crate::stream::greeting::{ask, no_relay};
use crate::stream::options::StreamOptions;
use crate::stream::session::{ConnectionError, Identity};
use crate::stream::throttle::{FrameLayout, Throttle};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tracepoint_wire::relay::{
    Command, CreateChunk, CreateSession, DataHeader, LONGEST_HOST_NAME, LONGEST_SESSION_NAME, Reply, ReturnCode,
};

/// Maximum interval of queries for stored packets.
const CONFIRM_INTERVAL: Duration = Duration::from_millis(200);

impl Relay {
    /// Creates a session, which is number `connection` of this trace.
    pub(in crate::stream) fn open(
        mut control: Control,
        minor: u32,
        (options, identity): (&StreamOptions, &Identity),
        connection: u64,
        deadline: Instant,
    ) -> Result<Self, ConnectionError> {
        let to = &options.destination;
        let name = session_name(identity, connection);
        for (what, name, most) in
            [("session", &name, LONGEST_SESSION_NAME), ("host", &identity.host, LONGEST_HOST_NAME)]
        {
            if name.is_empty() || name.len() > most || name.starts_with('.') || name.contains('/') {
                let length = name.len();
                return Err(ConnectionError::Final(format!(
                    "a relay takes names of 1 to {most} bytes that do not begin with a dot and contain no slash; the name of the {what} is \
                     `{name}`, of {length} bytes"
                )));
            }
        }
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
        match ask(&mut control, &Command::CreateSession(create), minor, deadline)? {
            Reply::Session { code: ReturnCode::Ok, .. } => {}
            Reply::Session { code, .. } => {
                return Err(ConnectionError::Final(format!("the relay refuses the session: {code}")));
            }
            _ => return Err(no_relay("another answer than a session")),
        }
        let chunk = Command::CreateChunk(CreateChunk { id: 0, creation_time, name: None });
        match ask(&mut control, &chunk, minor, deadline)? {
            Reply::Code(ReturnCode::Ok) => {}
            Reply::Code(code) => return Err(ConnectionError::Final(format!("the relay refuses the trace: {code}"))),
            _ => return Err(no_relay("another answer than a code")),
        }
        let framing = FrameLayout { unit: None, header: DataHeader::SIZE };
        Ok(Self {
            control,
            throttle: Throttle::new(options.bandwidth.clone(), framing, options.sync_interval),
            data: connect(to, to.port_for_data(None), deadline)?,
            minor,
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
