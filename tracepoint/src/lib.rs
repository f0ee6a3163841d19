//! Tracepoints for Rust programs.

pub mod channel;
pub mod clock;
mod control;
mod counter;
mod error;
pub mod field;
mod fork;
mod grace;
mod key;
mod level;
mod location;
mod macros;
pub mod marker;
mod panic;
mod primitive;
#[doc(hidden)]
pub mod private;
pub mod probe;
mod published;
mod record;
mod registry;
mod thread;
mod tracepoint;
mod values;

pub use control::synchronize;
pub use error::{NotFound, RegisterError, nearest_names};
pub use key::Key;
pub use level::{Level, ParseLevelError};
pub use location::Location;
pub use marker::Marker;
pub use probe::{MAX_PROBE_DEPTH, Probe};
pub use registry::{find, markers, tracepoints};
pub use thread::{MAX_THREADS, unserved_events};
pub use tracepoint::{Argument, Tracepoint, TracepointDescriptor, TracepointParts};
