//! The one dependency of a program that is traced: the instrumentation core of `tracepoint-core`, and with the feature `session` what
//! records.
#[cfg(feature = "session")]
pub use tracepoint_control::{Agent, Channel, Rule, Session, filter, sinks, testing};
pub use tracepoint_core::*;
