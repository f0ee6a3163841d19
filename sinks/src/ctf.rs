//! CTF 1.8 directories, as babeltrace2 and Trace Compass read them.
//!
//! ```text
//!   DIR/metadata               one append-only text: layout, environment, clock, channels, events
//!   DIR/<channel>_<instance>   the packets of one ring, one after the other
//!   DIR/.account/account.json   counts of fired, recorded and lost events; viewers do not look for streams there
//!
//!   DIR/chunk-NUMBER/          the same for each chunk of a trace that is rotated by size, by time, or on request
//! ```
//!
//! Packets are CTF already and are appended as they arrive. A file always ends with a complete packet: a partial write is truncated, and
//! space for the last packet of a stream, which has the final counts, is reserved from the start.
//!
//! `rotation` decides when a chunk ends and which chunks are kept; `accounting` makes the account of each chunk.

mod accounting;
mod directory;
mod error;
mod existing;
mod rotation;
mod sink;
mod streams;

pub use crate::metadata::{MetadataText, metadata};
pub use error::CtfError;
pub use existing::{dated_directory, remove_traces};
pub use sink::CtfSink;
