//! Channels: sets of rings with one policy and one account of losses.
//!
//! A channel receives events from the marker stage, and its consumer (a drain) takes complete packets to the sinks.
//!
//! ```text
//!   site ──fired──▶ stage ──filter──▶ this thread's ring ──record──▶ open packet ──full──▶ closed packet ──drain──▶ sink
//!                                      │                                │
//!                                      └─ none: lost, no_ring           └─ no free packet, and no other ring: lost, ring_full (discard),
//!                                                                          or the oldest packet is overwritten (overwrite),
//!                                                                          or the event waits for the consumer (wait)
//! ```
//!
//! A thread takes its ring from a pool of prefaulted spares at its first event, and hands it on when it ends. The consumer, never a site,
//! refills the pool, and recycles rings of ended threads that could not be handed on. The modules:
//!
//! * [`memory`](RingMemory): the memory of a ring; this crate opens no files. `header`: its layout, so that other processes can
//!   read it (`docs/format-ring.md`).
//! * `record`: reserve, write, commit. `lose`: events known to be lost without examining the packet. `buffer`: the packets of a stream. `slots`:
//!   their positions, and the packets that wait; the two kinds of consumers. `packet_header`: the header of a packet; `packet`: its stores.
//!   `flush_handshake`: the access of owner and flusher to the open packet. `wait_policy`: the bounded wait; `consumer_presence`: whom it waits for.
//! * `ring`: the two buffers and the counters of one thread. `ownership`: its state. `pool`: the spare rings. `supplier`, `supply`: the numbers of
//!   small and large rings. `ring_table`: the ring of each thread, empty in a forked child; `ring_entry`: an entry of the table.
//! * `overflow`: continues in another ring when a thread's own is full. `wake_word`: wakes a sleeping consumer when a ring fills up; `sleep_state`:
//!   the orderings for that.
//! * `account`: counts of fired, recorded and lost events, by reason. `open`: the channel. `producer`: events on
//!   their way into it. `consumer`: the consumer's side. `finish`: the end of its recording.
//! * `failpoint`: named points at which a test kills the process; empty without the feature of that name.

#[cfg(not(feature = "failpoints"))]
#[macro_use]
mod failpoint;
#[cfg(feature = "failpoints")]
#[macro_use]
pub mod failpoint;

mod account;
mod buffer;
mod config;
mod consumer;
mod consumer_presence;
mod finish;
mod flush_handshake;
mod header;
mod lose;
mod memory;
mod open;
mod overflow;
mod ownership;
mod packet;
mod packet_header;
mod pool;
mod producer;
mod record;
mod ring;
mod ring_entry;
mod ring_table;
mod sleep_state;
mod slots;
mod supplier;
mod supply;
mod wait_policy;
mod wake_word;

pub use account::{ChannelAccount, EventAccount, Loss, StreamAccount};
pub use config::{Channel, ConfigError, Policy};
pub use consumer::{Packet, StreamId};
pub use consumer_presence::ConsumerGuard;
pub use finish::FinishError;
pub use header::offsets as ring_offsets;
pub use memory::{AnonymousMemory, MemorySource, RING_IDENTITY, RingMemory, RingRequest};

pub use open::{EventId, FilterOutcome, MAX_EVENTS, MAX_OPEN, OpenChannel, RINGLESS_INSTANCE, TooManyEvents};
pub use packet_header::{CHECKSUM, CONTENT_SIZE, HEADER_SIZE, PACKET_MAGIC, PacketHeader, StreamKey};
pub use record::SoleSubscriber;
pub use slots::{PacketSlots, sequence_of};
pub use wake_word::WakeWord;
