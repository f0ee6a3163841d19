//! The romfile: which protocols are traced, and through which sizes, without a word of code.
//!
//! ```text
//! # what is traced in this run
//! ip    trace   name=ip_trace   logsize=10000   filesize=3;
//! tcp   trace   logsize=65536   filesize=16;
//! eth   address 08:00:2b:0a:0b:0c
//! ```
//!
//! A line is an entry: a protocol, a facility, and what the facility wants. Those of the facility `trace` are ours: options in any
//! order, `name=` may be left out, and a `;` at the end. Lines of other facilities are skipped, whatever they look like; so are blank
//! lines, and whatever stands behind a `#` that begins a word.

mod load;
mod parse;

pub use load::{LoadError, load_options, load_options_from};
pub use parse::parse;

use thiserror::Error;

/// The most bytes that a romfile may have.
pub const MAX_ROMFILE: usize = 1 << 20;

/// A line of the facility `trace`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RomEntry {
    /// The protocol that it is for.
    pub protocol: String,
    /// The name of the trace object, if it is to have one.
    pub name: Option<String>,
    /// Bytes of its buffer.
    pub logsize: u32,
    /// Buffers in its file.
    pub filesize: u32,
    /// The line, from 1.
    pub line: usize,
}

/// A line of the facility `trace` that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {reason}")]
pub struct RomError {
    /// The protocol that it is for.
    pub protocol: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, in characters from 1.
    pub column: usize,
    /// What is wrong, and what was expected.
    pub reason: String,
}
