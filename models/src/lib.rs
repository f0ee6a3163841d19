//! Loom models of the small concurrent structures of `tracepoint`.
//!
//! Loom runs a model with every interleaving of its threads, and with every value that the memory orderings allow a load to return. Its atomics
//! cannot be in statics, so the crates as a whole cannot be built on them: this crate includes the source files of the structures, which take
//! their atomics from `primitive`, and the models combine them as the crates do.
//!
//! Run them with `RUSTFLAGS="--cfg loom" cargo test -p tracepoint-models --release`; without `--cfg loom` the crate is empty.
#![cfg(all(loom, test))]
#![allow(unreachable_pub, reason = "the included files are public in their crate")]
#![allow(unexpected_cfgs, reason = "the included files know features of their crate, which are off here")]

#[path = "../../sinks/src/bucket/words.rs"]
mod bucket_words;
#[path = "../../reader/src/ring/call_order.rs"]
mod call_order;
#[path = "../../ring/src/channel/failpoint.rs"]
#[macro_use]
mod failpoint;
#[path = "../../probes/src/flights.rs"]
mod flights;
#[path = "../../ring/src/channel/flush_handshake.rs"]
mod flush_handshake;
#[path = "../../ring/src/grace.rs"]
#[expect(dead_code, reason = "the models do not use the nesting depth")]
mod grace;
#[path = "../../ring/src/channel/ownership.rs"]
#[expect(dead_code, reason = "the models end the ownership, and do not ask for it")]
mod ownership;
#[path = "../../ring/src/channel/packet.rs"]
#[expect(dead_code, reason = "the models do what the owner of a packet does, and not what its consumer does")]
mod packet;
#[path = "../../ring/src/channel/packet_header.rs"]
#[expect(dead_code, reason = "the models do not parse headers")]
mod packet_header;
#[path = "../../ring/src/channel/pool.rs"]
#[expect(dead_code, reason = "the models do not use its capacity, and lose no memory")]
mod pool;
#[path = "../../ring/src/primitive.rs"]
mod primitive;
#[path = "../../ring/src/rcu_pointer.rs"]
mod rcu_pointer;
#[path = "../../ring/src/clock/rcu_slots.rs"]
mod rcu_slots;
#[path = "../../ring/src/clock/seqcount_latch.rs"]
mod seqcount_latch;
#[path = "../../ring/src/channel/sleep_state.rs"]
mod sleep_state;

mod bucket_models;
mod buffer_models;
mod clock_models;
mod flight_models;
mod grace_models;
mod packet_models;
mod ring_models;
mod sleep_models;

/// The path under which `pool.rs` finds its rings.
mod ring {
    pub(crate) use crate::ring_models::Ring;
}

/// The path under which `flights.rs` finds its sizes: one set, with two ways.
mod layout {
    pub(crate) const WAYS: usize = 2;
    pub(crate) const SETS: usize = 1;
    pub(crate) const FLIGHTS: usize = SETS * 2 * WAYS;
}
