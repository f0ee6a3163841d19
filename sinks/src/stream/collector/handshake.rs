//! The beginning of a session, the only part that waits for messages.

use super::data::{Data, Datagrams};
use super::kept::random;
use super::{Collector, FIRST_PROBES, Kept, Names, Phase, SILENCE};
use crate::stream::connection::{Control, connect, write_parts};
use crate::stream::options::StreamOptions;
use crate::stream::queue::Queue;
use crate::stream::session::{ConnectionError, Identity};
use crate::stream::throttle::Throttle;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use tracepoint_wire::stream::{
    Attach, Capabilities, FRAME_HEADER, FrameHeader, Handshake, Hello, LONGEST_NAME, Ready, Side, ToCollector,
    ToSender, VERSION, Welcome,
};

/// Interval of probes, and time after which UDP is considered blocked.
const PROBE_PAUSE: Duration = Duration::from_millis(200);
const UDP_TIMEOUT: Duration = Duration::from_secs(5);

const NO_KEY: &str = "the collector asks for a shared key, which this sender does not have: copy the file that `tracectl collect` names, and give it (`--key-file`)";
const NOT_ASKED_FOR_KEY: &str =
    "the collector does not ask for the shared key (`tracectl collect --key-file`), so it may be another one";

/// The answer to HELLO.
struct WelcomeInfo {
    version: u32,
    name: String,
    resumed: bool,
    token: [u8; 16],
    tcp_port: u16,
    udp_port: u16,
    mtu: u32,
    metadata: u64,
    window: u64,
    code: [u8; 32],
}

impl Collector {
    /// Opens or resumes the session, on a control connection whose peer uses the stream protocol.
    pub(in crate::stream) fn open(
        mut control: Control,
        capabilities: Capabilities,
        (options, identity): (&StreamOptions, &Identity),
        (kept, queue): (&mut Kept, &Queue),
        deadline: Instant,
    ) -> Result<Self, ConnectionError> {
        if options.udp && !capabilities.udp {
            return Err(ConnectionError::Final("the collector takes no data over UDP; stream over TCP".to_owned()));
        }
        if capabilities.key != options.key.is_some() {
            let why = if capabilities.key { NO_KEY } else { NOT_ASKED_FOR_KEY };
            return Err(ConnectionError::Final(why.to_owned()));
        }
        let Identity { host, session, process, .. } = identity;
        check_names([host, session, process])?;
        let buffer = options.resend_buffer as u64;
        let nonce = random()?;
        let hello = Hello {
            version: VERSION.into(),
            udp: options.udp,
            key: kept.key,
            trace: identity.uuid,
            clock: identity.clock,
            nonce,
            sync_interval: u32::try_from(options.sync_interval.as_millis()).unwrap_or(u32::MAX),
            mtu: options.mtu,
            resend_buffer: buffer,
            host,
            session,
            process,
        };
        ToCollector::Hello(hello).encode(control.output());
        let proof = match &options.key {
            None => None,
            Some(key) => {
                let challenge = |message: &ToSender<'_>| match message {
                    ToSender::Challenge(nonce) => Some(*nonce),
                    _ => None,
                };
                let collector = await_message(&mut control, deadline, challenge)?;
                let handshake = Handshake { session: kept.key, sender: nonce, collector };
                ToCollector::Auth(key.code(Side::Sender, &handshake)).encode(control.output());
                Some((key, handshake))
            }
        };
        let welcome = await_message(&mut control, deadline, |message| match message {
            ToSender::Welcome(welcome) => Some(WelcomeInfo::of(welcome)),
            _ => None,
        })?;
        if welcome.version != u32::from(VERSION) {
            let version = welcome.version;
            return Err(ConnectionError::Final(format!(
                "the collector speaks version {version}, and this sender {VERSION}"
            )));
        }
        if let Some((key, handshake)) = &proof
            && !key.verifies(Side::Collector, handshake, &welcome.code)
        {
            let why = "the collector does not have the shared key of this sender";
            return Err(ConnectionError::Final(why.to_owned()));
        }
        let to = &options.destination;
        let data = if options.udp {
            Data::Udp(open_udp(&mut control, &welcome, options, deadline)?)
        } else {
            let port = to.port_for_data(Some(welcome.tcp_port).filter(|port| *port != 0));
            let socket = connect(to, port, deadline).map_err(|error| {
                let text = format!(
                    "cannot connect to its data port {port}: {error}; where another port leads to it, give that one: HOST:PORT:DATA_PORT"
                );
                io::Error::new(error.kind(), text)
            })?;
            Data::Tcp(open_tcp(&mut control, socket, &welcome, deadline)?)
        };
        let now = Instant::now();
        let throttle = Throttle::new(options.bandwidth.clone(), data.framing(), options.sync_interval);
        let mut collector = Self {
            control,
            data,
            throttle,
            name: welcome.name,
            names: Names { host: host.clone(), session: session.clone(), process: process.clone() },
            // At least one packet is sent at a time. 0 means that none is kept; a collector cannot cause that.
            window: if buffer == 0 { 0 } else { buffer.min(welcome.window).max(1) },
            metadata_sent: if welcome.resumed { welcome.metadata } else { 0 },
            handles: BTreeMap::new(),
            numbers: BTreeMap::new(),
            refused: BTreeMap::new(),
            again: VecDeque::new(),
            sending: None,
            interrupted: None,
            is_paused: false,
            gives_up: false,
            phase: Phase::Streaming,
            heard: now,
            probe_at: now,
            has_system_clock: identity.clock != [0; 16],
        };
        collector.send_metadata(&queue.lock().metadata);
        for _ in 0..FIRST_PROBES {
            collector.probe(kept, now);
        }
        debug_assert!(collector.probe_at < now + SILENCE, "probes keep the connection alive");
        Ok(collector)
    }
}

/// Checks the names of host, session and process.
fn check_names(names: [&String; 3]) -> Result<(), ConnectionError> {
    for (what, name) in ["host", "session", "process"].into_iter().zip(names) {
        if name.is_empty() || name.len() > LONGEST_NAME || name.contains('\0') {
            let length = name.len();
            return Err(ConnectionError::Final(format!(
                "a collector takes names of 1 to {LONGEST_NAME} bytes; that of the {what} has {length}"
            )));
        }
    }
    Ok(())
}

impl WelcomeInfo {
    fn of(welcome: &Welcome<'_>) -> Self {
        let Welcome { version, resumed, token, tcp_port, udp_port, mtu, metadata, window, name, code, .. } = *welcome;
        // Terminals must not interpret text from the network.
        let name = name.chars().filter(|c| !c.is_control()).take(LONGEST_NAME).collect();
        Self { version, name, resumed, token, tcp_port, udp_port, mtu, metadata, window, code }
    }
}

/// Attaches a data connection.
fn open_tcp(
    control: &mut Control,
    data: fileguard::GuardedFd<TcpStream>,
    welcome: &WelcomeInfo,
    deadline: Instant,
) -> Result<fileguard::GuardedFd<TcpStream>, ConnectionError> {
    let mut done = 0;
    // 32 bytes fit into the buffer of a new socket.
    if !write_parts(&data, [&Attach { token: welcome.token }.encode(), &[]], &mut done, usize::MAX)? {
        return Err(io::Error::new(ErrorKind::TimedOut, "the data connection takes nothing").into());
    }
    await_message(control, deadline, |message| matches!(message, ToSender::Ready(Ready::Tcp)).then_some(()))?;
    Ok(data)
}

/// Sends probes until one has arrived.
fn open_udp(
    control: &mut Control,
    welcome: &WelcomeInfo,
    options: &StreamOptions,
    deadline: Instant,
) -> Result<Datagrams, ConnectionError> {
    let port = options.destination.port_for_data(Some(welcome.udp_port));
    let to = SocketAddr::new(control.socket.get()?.peer_addr()?.ip(), port);
    let mut datagrams = Datagrams::open(to, welcome.token, options.mtu.min(welcome.mtu))?;
    let give_up = deadline.min(Instant::now() + UDP_TIMEOUT);
    loop {
        datagrams.probe();
        let again = give_up.min(Instant::now() + PROBE_PAUSE);
        let ready = |message: &ToSender<'_>| matches!(message, ToSender::Ready(Ready::Udp)).then_some(());
        match await_message(control, again, ready) {
            Ok(()) => return Ok(datagrams),
            Err(ConnectionError::Temporary(error)) if error.kind() == ErrorKind::TimedOut && again < give_up => {}
            Err(ConnectionError::Temporary(error)) if error.kind() == ErrorKind::TimedOut => {
                let text = format!(
                    "no datagram has reached the collector at {to}; open the port for UDP, give another one (HOST:PORT:DATA_PORT), or stream over TCP"
                );
                return Err(ConnectionError::Temporary(io::Error::new(ErrorKind::TimedOut, text)));
            }
            Err(error) => return Err(error),
        }
    }
}

/// Waits for a message that `find` accepts; ignores other messages.
fn await_message<T>(
    control: &mut Control,
    deadline: Instant,
    find: impl Fn(&ToSender<'_>) -> Option<T>,
) -> Result<T, ConnectionError> {
    loop {
        while let Some(header) = FrameHeader::decode(control.input()) {
            let header = header.map_err(super::received::malformed)?;
            let Some(payload) = control.input().get(FRAME_HEADER..FRAME_HEADER + header.size) else { break };
            let message = ToSender::decode(header.kind, payload).map_err(super::received::malformed)?;
            if let ToSender::Error(code, text) = message {
                return Err(super::received::refused(code, text));
            }
            let found = find(&message);
            control.consume(FRAME_HEADER + header.size);
            if let Some(found) = found {
                return Ok(found);
            }
        }
        control.exchange(deadline)?;
    }
}
