//! The interface between a drain and the rings that it empties.

use crate::account::Account;
use crate::description::{ChannelDescription, EventDescription};
use crate::sink::StreamInfo;
use crate::trace_info::TraceInfo;
use std::io;
use std::time::Duration;
use tracepoint_ring::channel::Packet;

/// Results of one round of [`Drain::drain`](super::Drain::drain).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainRound {
    /// Packets taken out of the rings.
    pub packets: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Fill level of the fullest ring before the round, in percent; or the share of spare rings taken since the last round, if that is more. 0 for
    /// the rings of another process: see [`Drain::look`](super::Drain::look).
    pub fullness: u32,
    /// The error with which a channel could not create another spare ring. Threads that start now get no ring.
    pub unsupplied: Option<io::ErrorKind>,
}

/// A packet that was taken out of a ring.
pub struct TakenPacket<'a> {
    pub(super) stream: StreamInfo,
    pub(super) packet: Packet<'a>,
    /// Creates the empty packet with which the stream begins.
    pub(super) first_packet: &'a dyn Fn() -> Vec<u8>,
}

/// The source of packets for a [`Drain`](super::Drain): [`LocalRings`](super::LocalRings),
/// [`RemoteRings`](super::RemoteRings) or [`KernelRings`](super::KernelRings).
#[doc(hidden)]
pub trait PacketSource {
    /// Maximum time that a packet which is not full stays in its ring, while the recording process works normally.
    const PACKET_DELAY: Duration;

    /// Returns the time before which all packets with a record are closed and handed out by the next [`take`](Self::take); `None` if unknown.
    fn flushed(&self) -> Option<u64>;

    /// Lowers the age at which open packets are closed, if this process closes them.
    fn limit_flush_age(&mut self, age: Duration);

    /// Returns the trace.
    fn trace(&self) -> &TraceInfo;

    /// Returns its channels.
    fn channels(&self) -> Vec<ChannelDescription>;

    /// Returns whether packets are closed when they have been open for [`PACKET_DELAY`](Self::PACKET_DELAY); otherwise they arrive when they are
    /// full.
    fn closes_old_packets(&self) -> bool;

    /// Closes the packets that are open now, if this process can. Packets of flight recorders stay open.
    fn close_packets(&mut self);

    /// Hands the closed packets to `deliver`; hands out none if that is `None`.
    fn take(&mut self, deliver: Option<&mut dyn FnMut(&TakenPacket<'_>)>) -> DrainRound;

    /// Returns the counts so far for these events, in an account that is not complete. It does not cover the fate of packets after their rings.
    fn account(&self, events: &[EventDescription]) -> Account;
}
