//! Per-thread ring buffers of packed events: `tracepoint-core` records into them, and sinks drain them.
//!
//! This crate knows nothing of tracepoints, probes or markers. Programs use it through `tracepoint`.

pub mod channel;
pub mod clock;
pub mod context;
mod counter;
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
