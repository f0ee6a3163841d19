//! The romfile: a text that selects the traced protocols and their sizes.
//!
//! ```text
//! # what is traced in this run
//! ip    trace   name=ip_trace   logsize=10000   filesize=3;
//! tcp   trace   logsize=65536   filesize=16;
//! eth   address 08:00:2b:0a:0b:0c
//! ```
//!
//! A line is an entry: a protocol, a facility, and the facility's options. Only entries of the facility `trace` are read: options in any order,
//! with an optional `name=`, and a `;` at the end. Lines of other facilities are skipped in any form, and so are blank lines, and text after a
//! `#` at the beginning of a word.

mod load;
mod parse;

pub use load::{LoadError, load_options, load_options_from};
pub use parse::parse;

use thiserror::Error;

/// Maximum size of a romfile in bytes.
pub const MAX_ROMFILE: usize = 1 << 20;

/// A line of the facility `trace`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RomEntry {
    /// The protocol.
    pub protocol: String,
    /// The name of the trace object, if it has one.
    pub name: Option<String>,
    /// Bytes of its buffer.
    pub logsize: u32,
    /// The number of buffers in its file.
    pub filesize: u32,
    /// The line, counted from 1.
    pub line: usize,
}

/// A malformed line of the facility `trace`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {reason}")]
#[non_exhaustive]
pub struct RomError {
    /// The protocol.
    pub protocol: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column, in characters, counted from 1.
    pub column: usize,
    /// The fault, and the expected input.
    pub reason: String,
}
