//! Per-thread ring buffers of packed events. `tracepoint-core` records into them, and sinks drain them. Programs use this crate through `tracepoint`.
//!
//! A *ring* is a block of memory that one thread writes without locks. It has a main buffer, a small nested buffer for signal handlers that interrupt
//! a write, and a row of counters. A buffer is divided into *packets*, which are complete CTF packets in memory: sinks write them without conversion.
//! A *channel* is a set of rings with one configuration (sizes, policy for full rings, contexts) and one account of losses. Its *consumer*, the
//! drain, takes closed packets, and supplies rings.
//!
//! # The life of a record
//!
//! 1. A subscriber of a marker passes an event to its channel. The thread has claimed a slot ([`thread`]), and is inside a read-side section
//!    (`grace`), so that the lists in use are not freed.
//! 2. At its first event, the thread takes a ring from the pool of spare rings (`channel/pool`). Without a ring, the event is lost as `no_ring`.
//! 3. *Reserve*: the thread marks the buffer as being written, reads the [`clock`], and checks that the record fits into the open packet.
//! 4. *Write*: it stores the header word (event id and time), the [`context`] values, and the [`field`] values.
//! 5. *Commit*: one Release store of the packet's `content_size` makes the record visible to readers (C1 in `docs/ordering.md`).
//! 6. If a record does not fit, the thread closes the packet and opens the next one. If no packet is free, the policy decides: the event is lost,
//!    the oldest packet is overwritten, or the event waits; under discard, the thread may also continue in another ring (`channel/overflow`).
//! 7. The consumer takes closed packets ([`OpenChannel::drain`](channel::OpenChannel::drain)), and releases their slots. It closes the packets of
//!    idle threads ([`flush`](channel::OpenChannel::flush)), and at the end all packets ([`finish`](channel::OpenChannel::finish)). A consumer in
//!    another process does the same by the layout in `docs/format-ring.md`.
//!
//! # The modules
//!
//! * [`channel`]: configuration, rings, recording, supply of rings, the consumer's side, accounts.
//! * [`field`], [`context`], [`clock`]: the contents of a record. [`Level`]: the importance of an event.
//! * [`thread`]: slots of threads, thread exits, scheduling of the library's own threads. `counter`: counters of one thread.
//! * `grace`, [`rcu_pointer`], [`update`], [`membarrier`]: RCU, with the lock of all writers. `fork`: hooks around a fork. [`mod@panic`]: panics of
//!   user code. `errno`: its value for the program.
//! * [`primitive`]: atomics and locks that models replace. [`hint`]: hints to the compiler.
//!
//! # Not in this crate
//!
//! Tracepoints, markers, probes, sessions, sinks, files and sockets. The memory of rings comes from a [`MemorySource`](channel::MemorySource), and no
//! thread is started, except one that frees memory when the consumer must not wait for it.

pub mod channel;
pub mod clock;
pub mod context;
mod counter;
mod errno;
pub mod field;
mod fork;
mod grace;
pub mod hint;
mod level;
pub mod membarrier;
pub mod panic;
pub mod primitive;
pub mod rcu_pointer;
pub mod thread;
pub mod update;

pub use level::{Level, ParseLevelError};
