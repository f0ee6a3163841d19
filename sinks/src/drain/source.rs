//! The interface between a drain and the rings that it empties.

use crate::account::Account;
use crate::description::{ChannelDescription, EventDescription};
use crate::sink::StreamInfo;
use crate::trace_info::TraceInfo;
use std::io;
use std::time::Duration;
use tracepoint_ring::channel::Packet;

/// What one round of [`Drain::drain`](super::Drain::drain) moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// Packets taken out of the rings.
    pub packets: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// How full the fullest ring was before the round, in percent; or the share of spare rings that were taken since the last round, if
    /// that is more. 0 for the rings of another process: see [`Drain::look`](super::Drain::look).
    pub fullness: u32,
    /// Why a channel could not make another spare ring, if it could not. Threads that start now get no ring.
    pub unsupplied: Option<io::ErrorKind>,
}

/// A packet that was taken out of a ring.
pub struct TakenPacket<'a> {
    pub(super) stream: StreamInfo,
    pub(super) packet: Packet<'a>,
    /// Makes the empty packet with which the stream begins.
    pub(super) first_packet: &'a dyn Fn() -> Vec<u8>,
}

/// Where a [`Drain`](super::Drain) takes packets from: [`LocalRings`](super::LocalRings),
/// [`RemoteRings`](super::RemoteRings) or [`KernelRings`](super::KernelRings).
#[doc(hidden)]
pub trait PacketSource {
    /// The longest time for which a packet that is not full stays in its ring, while this process or the other one runs as it should.
    const PACKET_DELAY: Duration;

    /// The time before which all packets with a record are closed, of those that the next [`take`](Self::take) hands out; `None` if it is not
    /// known.
    fn flushed(&self) -> Option<u64>;

    /// Has open packets closed at this age, if that is less than now, and if this process closes them.
    fn limit_flush_age(&mut self, age: Duration);

    /// The trace.
    fn trace(&self) -> &TraceInfo;

    /// Its channels.
    fn channels(&self) -> Vec<ChannelDescription>;

    /// Whether packets are closed when they have been open for [`PACKET_DELAY`](Self::PACKET_DELAY); otherwise they come when they are
    /// full.
    fn closes_old_packets(&self) -> bool;

    /// Closes the packets that are open now, if this process can. Those of flight recorders stay open.
    fn close_packets(&mut self);

    /// Hands out the packets that are closed; none if there is nobody to `deliver` to.
    fn take(&mut self, deliver: Option<&mut dyn FnMut(&TakenPacket<'_>)>) -> Drained;

    /// What was counted so far, of these events, in an account that is not complete. What became of packets behind their rings is left
    /// open.
    fn account(&self, events: &[EventDescription]) -> Account;
}
