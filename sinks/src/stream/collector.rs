//! A session with a collector of this project. Packets are kept until they are acknowledged, so that a lost connection loses no packet.
//!
//! ```text
//!   open: HELLO ─▶ WELCOME, data connection ─▶ READY; ANNOUNCE for all known streams
//!     │ all are ANNOUNCED: kept packets that are not stored are sent again
//!     ▼
//!   streaming ── packet: ANNOUNCE before a stream's first one; METADATA if there is more; the packet, while the window has room
//!     │      └── synchronisation point: SYNC, CLOCK_PROBE
//!     │      ◀── ACK: releases packets. NACK: packets are sent again, or GONE. FLOW: pauses
//!     ▼ the recording has ended, all packets are sent
//!   closing: CLOSE ─▶ CLOSED, ACCOUNT ─▶ DONE ─▶ over
//! ```
//!
//! When the time for sending the rest is over, no more packets are sent, and the streams are closed by `CLOSE` and `GIVE_UP`. Streams that wait for
//! ANNOUNCED wait for that first: only the collector knows which of their packets it has.
//!
//! [`Kept`] outlives the connection; [`handshake`] opens the session, [`outgoing`] sends packets, and [`received`] handles messages.

mod data;
mod handshake;
mod kept;
mod outgoing;
mod received;

use super::connection::Control;
use super::queue::{Queue, State};
use super::session::{ConnectionError, NextStep};
use super::streams::Streams;
use super::throttle::Throttle;
use data::{Data, OutgoingPacket};
pub(super) use kept::Kept;
#[cfg(feature = "nats")]
pub(super) use kept::SentPacket;
use rustix::event::{PollFd, PollFlags};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};
use tracepoint_ring::clock;
use tracepoint_wire::stream::{
    Announce, ClockProbe, Close, ClosedStream, LONGEST_PIECE, MAX_ENTRIES, NO_SEQ, Piece, Sync, SyncEntry, ToCollector,
};

/// Number of packets sent before messages are read.
const BATCH: usize = 64;
/// Time without a message after which the connection is considered lost.
const SILENCE: Duration = Duration::from_secs(10);
/// Maximum interval of clock probes, which keep the connection alive, and number of probes sent at first.
const PROBE_INTERVAL: Duration = Duration::from_secs(3);
const FIRST_PROBES: usize = 5;
/// Time after which a stream is announced again if the collector had no room for it.
const REFUSED_TIME: Duration = Duration::from_secs(10);

/// A session.
#[derive(Debug)]
pub(super) struct Collector {
    control: Control,
    data: Data,
    throttle: Throttle,
    /// The collector's name, for messages.
    name: String,
    names: Names,
    /// Maximum number of unacknowledged bytes; 0 if packets are not kept.
    window: u64,
    metadata_sent: u64,
    /// Handles of streams by number, and numbers by handle; `None` while the announcement is unanswered.
    handles: BTreeMap<usize, Option<u64>>,
    numbers: BTreeMap<u64, usize>,
    /// The streams for which the collector had no room, and since when.
    refused: BTreeMap<usize, Instant>,
    /// Packets to send again.
    again: VecDeque<Retransmission>,
    sending: Option<OutgoingPacket>,
    /// The packet whose rest waits while another one is sent again.
    interrupted: Option<OutgoingPacket>,
    /// Set while the collector cannot store.
    is_paused: bool,
    /// Set when the time for sending the rest is over: no more packets are sent.
    gives_up: bool,
    phase: Phase,
    /// When the collector last sent a message, and when the next probe is due.
    heard: Instant,
    probe_at: Instant,
    has_system_clock: bool,
}

/// The first three names of each announcement.
#[derive(Debug)]
struct Names {
    host: String,
    session: String,
    process: String,
}

/// A packet to send again: its stream and number, and the requested part; `None` means the whole packet.
#[derive(Debug, PartialEq, Eq)]
struct Retransmission {
    stream: usize,
    seq: u64,
    part: Option<(u32, u32)>,
}

#[derive(Debug, PartialEq, Eq)]
enum Phase {
    Streaming,
    /// CLOSE is sent; the streams that are not closed yet.
    Closing(BTreeSet<u64>),
    /// The account is sent.
    Accounting,
    Done,
}

impl Collector {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Does everything that is possible without waiting.
    pub(super) fn advance(
        &mut self,
        queue: &Queue,
        (streams, kept): (&mut Streams, &mut Kept),
        now: Instant,
    ) -> Result<NextStep, ConnectionError> {
        self.control.receive()?;
        self.handle_messages(queue, (streams, kept), now)?;
        if self.phase == Phase::Done {
            return Ok(NextStep::Over);
        }
        self.control.check()?;
        if now.duration_since(self.heard) > SILENCE {
            return Err(io::Error::new(ErrorKind::TimedOut, "the collector is silent").into());
        }
        // Until no progress is possible, or messages are to be read.
        let mut again = Some(now);
        for _ in 0..BATCH {
            if !self.finish_packet(queue, kept)? {
                self.pass_by(queue, streams, kept);
                again =
                    self.sending.as_ref().filter(|sending| !sending.is_blocked).map(|sending| sending.ticket.time());
                break;
            }
            self.control.flush()?;
            if self.control.is_blocked() || !self.begin_item(queue, streams, kept)? {
                again = None;
                break;
            }
        }
        if now >= self.probe_at {
            self.probe(kept, now);
        }
        self.close_if_done(queue, streams, kept);
        self.control.flush()?;
        let until = self.probe_at.min(self.heard + SILENCE);
        Ok(NextStep::At([again, self.data.keep_open(now)].into_iter().flatten().chain([until]).min()))
    }

    /// Returns the packets that are being sent.
    fn present(&self) -> impl Iterator<Item = &OutgoingPacket> {
        self.sending.iter().chain(&self.interrupted)
    }

    /// Announces a stream.
    fn announce(&mut self, number: usize, streams: &mut Streams, packet_size: usize) {
        let info = &streams.get(number).info;
        let name = info.file_name();
        let Names { host, session, process } = &self.names;
        let announce = Announce {
            request: number as u32,
            class: info.id.class,
            instance: info.id.instance,
            packet_size: u32::try_from(packet_size).unwrap_or(u32::MAX),
            names: [host, session, process, &info.channel, &name],
        };
        ToCollector::Announce(announce).encode(self.control.output());
        self.refused.remove(&number);
        self.handles.insert(number, None);
    }

    fn send_metadata(&mut self, text: &str) {
        let sent = usize::try_from(self.metadata_sent).unwrap_or(usize::MAX).min(text.len());
        for bytes in text.as_bytes()[sent..].chunks(LONGEST_PIECE) {
            let piece = Piece { offset: self.metadata_sent, bytes };
            ToCollector::Metadata(piece).encode(self.control.output());
            self.metadata_sent += bytes.len() as u64;
        }
    }

    /// Promises that everything sent later begins at `time` or later. This includes a packet that is being sent, which a cap may delay for seconds.
    fn synchronise(&mut self, time: u64, streams: &mut Streams, kept: &mut Kept) {
        kept.sync += 1;
        let (offset, bound) = kept.alignment.at(time);
        let sending = self.present().find(|sending| !sending.is_again);
        let promised = streams.promise(time).filter_map(|(number, sent)| {
            let handle = self.handles.get(&number).copied().flatten()?;
            Some(match sending.filter(|sending| sending.handle() == handle) {
                Some(OutgoingPacket { packet, .. }) => {
                    SyncEntry { handle, last: packet.prev_seq, time: sent.promised.min(packet.packet.header.begin) }
                }
                None => SyncEntry { handle, last: sent.last.map_or(NO_SEQ, |last| last.sequence), time: sent.promised },
            })
        });
        let entries: Vec<_> = promised.collect();
        // Without streams, one message is still sent.
        for entries in entries.chunks(MAX_ENTRIES).chain(entries.is_empty().then_some(&entries[..])) {
            let sync = Sync { number: kept.sync, time, offset, bound, entries: entries.to_vec() };
            ToCollector::Sync(sync).encode(self.control.output());
        }
    }

    fn probe(&mut self, kept: &mut Kept, now: Instant) {
        self.probe_at = now + PROBE_INTERVAL;
        kept.probe += 1;
        // Without a common clock the answer only shows that the collector is alive.
        let sent = if self.has_system_clock { clock::now() } else { 0 };
        ToCollector::ClockProbe(ClockProbe { number: kept.probe, sent }).encode(self.control.output());
    }

    /// Closes the streams once everything is sent.
    fn close_if_done(&mut self, queue: &Queue, streams: &mut Streams, kept: &mut Kept) {
        if self.gives_up {
            return self.close_given_up(queue, streams);
        }
        let state = queue.lock();
        let is_sent = state.ended && state.items.is_empty() && self.sending.is_none() && self.again.is_empty();
        if self.phase != Phase::Streaming || !is_sent || self.is_attaching() {
            return;
        }
        self.send_metadata(&state.metadata);
        drop(state);
        if self.has_system_clock {
            // Nothing more follows. In a short session, this is the first message with the clock's alignment.
            self.synchronise(clock::now(), streams, kept);
        }
        self.close(queue, streams);
    }

    /// Ends sending because the time is over: closes the streams with the packets that have arrived. The collector reports those, and gets the
    /// account. Returns whether to wait for its answer.
    pub(super) fn give_up(&mut self, queue: &Queue, streams: &mut Streams) -> bool {
        queue.change(State::give_up);
        (self.sending, self.interrupted) = (None, None);
        self.again.clear();
        self.gives_up = true;
        match self.phase {
            Phase::Streaming => {
                self.announce_known(queue, streams);
                self.close_given_up(queue, streams);
            }
            Phase::Closing(_) => ToCollector::GiveUp.encode(self.control.output()),
            Phase::Accounting | Phase::Done => return false,
        }
        true
    }

    /// Closes the streams with the packets that have arrived, once all are announced. Without streams, the account follows CLOSE at once.
    fn close_given_up(&mut self, queue: &Queue, streams: &mut Streams) {
        if self.phase != Phase::Streaming || self.is_attaching() {
            return;
        }
        self.close(queue, streams);
        if matches!(self.phase, Phase::Closing(_)) {
            ToCollector::GiveUp.encode(self.control.output());
        }
    }

    fn close(&mut self, queue: &Queue, streams: &mut Streams) {
        let closed = self.handles.iter().filter_map(|(number, handle)| {
            let (handle, sent) = ((*handle)?, streams.get(*number));
            let (packets, events_after) = (sent.packets, sent.events_after);
            Some(ClosedStream { handle, last: sent.last.map_or(NO_SEQ, |last| last.sequence), packets, events_after })
        });
        let entries: Vec<_> = closed.collect();
        self.phase = Phase::Closing(entries.iter().map(|entry| entry.handle).collect());
        let parts = entries.chunks(MAX_ENTRIES).count().max(1);
        for part in 0..parts {
            let entries = entries.chunks(MAX_ENTRIES).nth(part).unwrap_or_default().to_vec();
            ToCollector::Close(Close { whole: part + 1 == parts, entries }).encode(self.control.output());
        }
        if entries.is_empty() {
            self.send_account(queue);
        }
    }

    /// Sends the account, which ends the session.
    fn send_account(&mut self, queue: &Queue) {
        self.phase = Phase::Accounting;
        let account = queue.change(|state| {
            state.deliveries.lose_underway();
            state.whole_account()
        });
        let account = account.as_ref().map(crate::account::Account::to_json).unwrap_or_default();
        let whole = account.len() as u64;
        let mut offset = 0;
        for bytes in account.chunks(LONGEST_PIECE) {
            ToCollector::Account(Piece { offset, bytes }, whole).encode(self.control.output());
            offset += bytes.len() as u64;
        }
    }

    /// Returns the sockets to poll.
    pub(super) fn sources(&self) -> Vec<PollFd<'_>> {
        let flags = |is_blocked| if is_blocked { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let control = self.control.fd().map(|fd| (fd, flags(self.control.is_blocked())));
        let is_blocked = self.sending.as_ref().is_some_and(|sending| sending.is_blocked);
        let data = self.data.fd().map(|fd| (fd, flags(is_blocked)));
        control.into_iter().chain(data).map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)).collect()
    }
}
