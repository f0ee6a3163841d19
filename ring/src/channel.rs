//! Channels: sets of rings with one policy and one account of losses.
//!
//! The step before is the marker stage; the step after is a drain, which takes whole packets to the sinks.
//!
//! ```text
//!   site ──fired──▶ stage ──filter──▶ this thread's ring ──record──▶ open packet ──full──▶ closed packet ──drain──▶ sink
//!                                      │                                │
//!                                      └─ none: lost, no_ring           └─ no free packet: lost, ring_full (discard),
//!                                                                          or the oldest packet is overwritten (overwrite),
//!                                                                          or it waits for the drain first (wait)
//! ```
//!
//! A thread takes its ring from a pool of prefaulted spares at its first event and gives it back when it ends. The pool is
//! refilled, and rings of ended threads made ready again, by whoever drains: never by a site. The parts:
//!
//! * [`memory`](RingMemory): the memory that a ring is given; this crate opens no files. `header`: how it is laid out, so that other
//!   processes can read it (`docs/format-ring.md`).
//! * `wait_policy`: the bounded wait. `buffer`: reserve, write, commit; `packet`: the layout of a packet's header; `flush_handshake`: who may touch
//!   the open packet.
//! * `ring`: the two buffers and the counters of one thread; `ownership`: whose it is; `pool`: the spares; `attachment`: which thread
//!   has which, empty in a forked child.
//! * `account`: what was fired, recorded and lost, by reason. `open`: the channel itself. `consumer`: its consumer.
//! * `failpoint`: named points at which a test has the process die; nothing without the feature of that name.

#[cfg(not(feature = "failpoints"))]
#[macro_use]
mod failpoint;
#[cfg(feature = "failpoints")]
#[macro_use]
pub mod failpoint;

mod account;
mod attachment;
mod buffer;
mod config;
mod consumer;
mod fast_path;
mod flush_handshake;
mod header;
mod memory;
mod open;
mod ownership;
mod packet;
mod pool;
mod ring;
mod wait_policy;

pub use account::{ChannelAccount, EventAccount, Loss, StreamAccount};
pub use config::{Channel, ConfigError, Policy};
pub use consumer::{FinishError, Packet, StreamId};
pub use fast_path::SoleSubscriber;
pub use memory::{AnonymousMemory, MemorySource, RING_IDENTITY, RingMemory, RingRequest};
pub use open::FilterOutcome;
pub use open::{EventId, OpenChannel, TooManyEvents};
pub use packet::{HEADER_SIZE, PACKET_MAGIC};
pub use wait_policy::ConsumerGuard;
