//! A session with `lttng-relayd`, or with a collector by the same protocol.
//!
//! ```text
//!   connect: VERSION, CREATE_SESSION, CREATE_TRACE_CHUNK
//!     │
//!     ▼
//!   streaming ── first packet of a stream: ADD_STREAM (and once for the metadata), STREAMS_SENT
//!     │      └── packet: SEND_METADATA if there is more, data, SEND_INDEX
//!     │      └── synchronisation point: beacons of idle streams
//!     │      └── at intervals: DATA_PENDING for sent packets
//!     ▼ the recording has ended, all packets are sent
//!   confirming ◀─▶ DATA_PENDING …, QUIESCENT_CONTROL for the metadata, until nothing is pending
//!     ▼ viewers have had the time to read the last packets
//!   closing: CLOSE_STREAM …  ─▶ over
//! ```
//!
//! Commands are pipelined; their answers arrive in order. A relay neither reorders nor acknowledges packets. So packets are sent in stream order, and
//! count as confirmed once the relay reports that nothing up to them is pending. Unconfirmed packets count as lost when the connection ends. Sessions
//! cannot be resumed: a new connection is a new session of the relay.
//!
//! **The heartbeat.** LTTng viewers abort at an event older than those they have printed. They look for new streams only when they get a packet of a
//! known stream; a beacon does not suffice. So each session has a stream without events, the [`heartbeat`]. Its beacons hold viewers back at the
//! promised time, and before a new beacon it sends an empty packet if streams were added since.

mod handshake;
mod heartbeat;
mod outgoing;
mod replies;

use super::connection::Control;
use super::delivery::Count;
use super::metadata_packets;
use super::queue::{Queue, QueuedPacket};
use super::session::{ConnectionError, Identity, NextStep};
use super::streams::Streams;
use super::throttle::{Throttle, Ticket};
use crate::stream_stats::LostPackets;
use fileguard::GuardedFd;
use heartbeat::Heartbeat;
use replies::ExpectedReply;
use rustix::event::{PollFd, PollFlags};
use std::collections::{BTreeMap, VecDeque};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use tracepoint_wire::relay::{AddStream, Command, DataHeader, Index, METADATA_CHANNEL};
use tracepoint_wire::stream::LONGEST_PIECE;

/// The directory of all streams in the session.
const PATH: &str = "tracepoint";
/// Interval of queries for pending data.
const ASK_AGAIN: Duration = Duration::from_millis(50);
/// Time that streams stay open after the last packets. LTTng viewers, which poll every 100 ms, lose unread packets of a closed stream.
const VIEWER_TIME: Duration = Duration::from_millis(300);
/// Number of packets sent before answers are read.
const BATCH: usize = 64;

/// A session.
#[derive(Debug)]
pub(super) struct Relay {
    control: Control,
    data: GuardedFd<TcpStream>,
    throttle: Throttle,
    minor: u32,
    uuid: [u8; 16],
    /// The handle of the metadata stream, and the number of text bytes sent.
    metadata: Option<u64>,
    metadata_sent: usize,
    /// The streams of this session, by number.
    streams: BTreeMap<usize, RelayStream>,
    heartbeat: Heartbeat,
    expected: VecDeque<ExpectedReply>,
    sending: Option<OutgoingPacket>,
    phase: Phase,
    /// When the next query for stored packets is due, and the interval of queries.
    confirm_at: Instant,
    confirm_interval: Duration,
}

/// A stream of the session.
#[derive(Debug, Default)]
struct RelayStream {
    /// `None` until `ADD_STREAM` is answered.
    handle: Option<u64>,
    /// The number of the last packet sent in this session.
    last: Option<u64>,
    /// Unconfirmed packets: numbers and events.
    unconfirmed: VecDeque<(u64, u64)>,
}

/// A packet that is being sent.
#[derive(Debug)]
struct OutgoingPacket {
    stream: usize,
    head: [u8; DataHeader::SIZE],
    packet: QueuedPacket,
    /// Number of sent bytes of head and packet, and how much of the packet may be sent by now.
    done: usize,
    ticket: Ticket,
    /// Set while the socket accepts no more bytes.
    is_blocked: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Phase {
    Streaming,
    /// Waits until this time to query pending data, or for the answers.
    Confirming(Option<Instant>),
    /// Everything is stored; waits until this time.
    Confirmed(Instant),
    Closing,
}

impl Relay {
    /// Does everything that is possible without waiting.
    pub(super) fn advance(
        &mut self,
        queue: &Queue,
        streams: &mut Streams,
        now: Instant,
    ) -> Result<NextStep, ConnectionError> {
        self.control.receive()?;
        self.handle_replies(queue, streams)?;
        if self.phase == Phase::Closing && self.expected.is_empty() {
            return Ok(NextStep::Over);
        }
        self.control.check()?;
        for _ in 0..BATCH {
            if !self.finish_packet(queue, streams)? {
                self.pass_by(queue, streams);
                break;
            }
            // Read answers before sending more queries; otherwise both sides could block.
            self.control.flush()?;
            if self.control.is_blocked() || !self.begin_item(queue, streams)? {
                break;
            }
        }
        let next = match self.end_if_done(queue, streams, now) {
            NextStep::At(None) => {
                let paced = self.sending.as_ref().filter(|sending| !sending.is_blocked);
                let ticket = paced.map(|sending| sending.ticket.time());
                NextStep::At(self.confirm(now).into_iter().chain(ticket).min())
            }
            next => next,
        };
        self.control.flush()?;
        Ok(next)
    }

    /// Queries the stored packets if that is due. Returns when the next query is due.
    fn confirm(&mut self, now: Instant) -> Option<Instant> {
        let is_unconfirmed = |stream: &RelayStream| !stream.unconfirmed.is_empty();
        if self.phase != Phase::Streaming || !self.streams.values().any(is_unconfirmed) {
            return None;
        }
        if self.confirm_at <= now {
            self.confirm_at = now + self.confirm_interval;
            self.ask_pending(is_unconfirmed);
        }
        Some(self.confirm_at)
    }

    /// Requests the stream's handle, unless that was done before.
    fn add_stream(&mut self, stream: usize, streams: &mut Streams) -> Result<(), ConnectionError> {
        if self.streams.contains_key(&stream) {
            return Ok(());
        }
        let is_first = self.streams.is_empty();
        self.streams.insert(stream, RelayStream::default());
        self.heartbeat.added(&streams.get(stream).info);
        let add =
            |channel: String| Command::AddStream(AddStream { channel, path: PATH.to_owned(), ..AddStream::default() });
        self.ask(&add(streams.get(stream).info.file_name()), ExpectedReply::Stream(stream));
        if is_first {
            self.ask(&add(METADATA_CHANNEL.to_owned()), ExpectedReply::Metadata);
        }
        self.ask(&Command::StreamsSent, ExpectedReply::Code("the streams"));
        self.control.flush()?;
        Ok(())
    }

    fn send_metadata(&mut self, text: &str) {
        let Some(handle) = self.metadata else { return };
        for piece in text.as_bytes()[self.metadata_sent..].chunks(LONGEST_PIECE) {
            let bytes = metadata_packets::packets(self.uuid, piece);
            Command::SendMetadata { handle, padding: 0, bytes: &bytes }.encode(self.minor, self.control.output());
        }
        self.metadata_sent = text.len();
    }

    /// Sends a beacon for each stream of which everything before `time` was sent.
    fn synchronise(&mut self, time: u64, streams: &mut Streams) {
        let mut beacons = Vec::new();
        for (number, sent) in streams.promise(time) {
            let (Some(here), Some(last)) = (self.streams.get(&number), sent.last) else { continue };
            // Its index has not been sent.
            if self.sending.as_ref().is_some_and(|sending| sending.stream == number) {
                continue;
            }
            // LTTng viewers warn of equal times of two streams.
            let time = time.saturating_sub(number as u64);
            // The relay ignores beacons of streams without a packet.
            if let (Some(handle), Some(sequence), true) = (here.handle, here.last, last.end < time) {
                let stream_class = last.stream.class.into();
                beacons.push(Index { handle, sequence, end: time, stream_class, ..Index::default() });
            }
        }
        for beacon in beacons {
            self.ask(&Command::SendIndex(beacon), ExpectedReply::Code("a beacon"));
        }
    }

    /// Queries the stored packets of these streams.
    fn ask_pending(&mut self, which: impl Fn(&RelayStream) -> bool) {
        let asked = self.streams.iter().filter(|(_, stream)| which(stream));
        let asked: Vec<_> =
            asked.filter_map(|(number, stream)| Some((*number, stream.handle?, stream.last?))).collect();
        for (number, handle, last) in asked {
            self.ask(&Command::DataPending { handle, last }, ExpectedReply::Pending(number, last));
        }
    }

    /// Advances the end of the session once everything is sent.
    fn end_if_done(&mut self, queue: &Queue, streams: &mut Streams, now: Instant) -> NextStep {
        let state = queue.lock();
        // The handles of all streams are known.
        let is_sent = state.ended && state.items.is_empty() && self.sending.is_none() && self.expected.is_empty();
        drop(state);
        match self.phase {
            Phase::Streaming if is_sent => {
                // Metadata added after the last packet may describe the last events.
                self.send_metadata(&queue.lock().metadata);
                self.promise_end(streams);
                self.phase = Phase::Confirming(Some(now));
                NextStep::At(Some(now))
            }
            Phase::Confirming(Some(time)) if time <= now => {
                self.phase = Phase::Confirming(None);
                self.ask_pending(|_| true);
                // The relay answers once it has everything sent before, including metadata, which DATA_PENDING does not cover.
                if let Some(handle) = self.metadata {
                    self.ask(&Command::QuiescentControl { handle }, ExpectedReply::Quiescent);
                    NextStep::At(None)
                } else {
                    self.phase = Phase::Confirmed(now);
                    NextStep::At(Some(now))
                }
            }
            Phase::Confirming(time) => NextStep::At(time),
            Phase::Confirmed(time) if time <= now => {
                self.close();
                NextStep::At(None)
            }
            Phase::Confirmed(time) => NextStep::At(Some(time)),
            Phase::Closing if self.expected.is_empty() => NextStep::Over,
            Phase::Streaming | Phase::Closing => NextStep::At(None),
        }
    }

    /// Promises that nothing follows, so that viewers show the last events without waiting.
    fn promise_end(&mut self, streams: &mut Streams) {
        let ends = self.streams.keys().filter_map(|number| Some(streams.get(*number).last.as_ref()?.end));
        if let Some(end) = ends.max() {
            // Beacons differ by the number of their stream.
            let apart = self.streams.keys().max().map_or(0, |number| *number as u64);
            self.synchronise(end.saturating_add(apart + 1), streams);
        }
    }

    fn close(&mut self) {
        self.phase = Phase::Closing;
        // A stream may have no packet: all of them were late or exceeded the cap.
        let streams =
            self.streams.values().filter_map(|stream| Some((stream.handle?, stream.last.unwrap_or(u64::MAX))));
        let all: Vec<_> = streams.chain(self.metadata.map(|handle| (handle, u64::MAX))).collect();
        for (handle, last) in all {
            self.ask(&Command::CloseStream { handle, last }, ExpectedReply::Code("the end of a stream"));
        }
    }

    fn ask(&mut self, command: &Command<'_>, expected: ExpectedReply) {
        command.encode(self.minor, self.control.output());
        self.expected.push_back(expected);
    }

    /// Returns the sockets to poll.
    pub(super) fn sources(&self) -> Vec<PollFd<'_>> {
        let flags = |is_blocked| if is_blocked { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let control = self.control.fd().map(|fd| (fd, flags(self.control.is_blocked())));
        let is_blocked = self.sending.as_ref().is_some_and(|sending| sending.is_blocked);
        let data = self.data.get().ok().map(|data| (data.as_fd(), flags(is_blocked)));
        control.into_iter().chain(data).map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)).collect()
    }

    /// Handles the end of the connection: unconfirmed packets are lost.
    pub(super) fn abandon(self, queue: &Queue, streams: &mut Streams) {
        if let Some(sending) = &self.sending {
            queue.lost(&sending.packet, LostPackets::Network);
        }
        queue.change(|state| {
            for (number, stream) in self.streams {
                let events = stream.unconfirmed.iter().map(|(_, events)| events).sum();
                let lost = Count { packets: stream.unconfirmed.len() as u64, events };
                state.deliveries.lose(streams.get(number).info.id, lost, LostPackets::Network);
            }
        });
    }
}

/// Returns the name of a session: `SESSION-PROCESS`, and from the second connection on its number.
fn session_name(identity: &Identity, connection: u64) -> String {
    let name = format!("{}-{}", identity.session, identity.process);
    if connection > 1 { format!("{name}-{connection}") } else { name }
}
