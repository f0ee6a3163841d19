//! From one form of a trace to another: a dt file to a CTF directory, and a CTF directory to a dt file.
//!
//! Packets are CTF in both, and go as they are. What is not in the source any more is told in the account of the target, as
//! overwritten.

mod error;
mod to_ctf;
mod to_dt;

use std::path::Path;

use serde::Serialize;

use crate::merge::Trace;

pub use error::ConvertError;

/// How to make a dt file. By default it takes all packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConvertOptions {
    /// How many slots it has: the newest so many packets are kept. `None`: as many as there are packets with events.
    pub slots: Option<u32>,
    /// Bytes of a slot. `None`: what the largest packet needs.
    pub slot_size: Option<u32>,
}

/// What was converted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Converted {
    /// Streams.
    pub streams: u64,
    /// Packets that were written.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets of the source for which the dt file has no slot: the oldest ones.
    pub dropped: u64,
    /// What could not be read of the source, and is not in the target.
    pub damage: Vec<String>,
    /// Whether the source was written to meanwhile, so that packets of it may be missing.
    pub changed: bool,
}

/// How far a conversion is, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes that are done.
    pub done: u64,
    /// All that are to be done.
    pub total: u64,
}

/// Makes a CTF directory `out` of the dt file `path`, or a dt file `out` of the CTF directory `path`. `report` is told again and again
/// how far it is.
///
/// ```no_run
/// use tracepoint_reader::convert::{ConvertOptions, convert};
///
/// convert("/tmp/shop.dt".as_ref(), "/tmp/shop".as_ref(), ConvertOptions::default(), |_| {})?;
/// # Ok::<(), tracepoint_reader::convert::ConvertError>(())
/// ```
///
/// # Errors
/// [`ConvertError::Read`] if there is no trace, [`ConvertError::Several`] if there is more than one; [`ConvertError::Output`] or
/// [`ConvertError::Dt`] if `out` is there already, or cannot be written; [`ConvertError::SlotSize`] and others for a dt file that cannot
/// be. What is damaged in a part is no error.
pub fn convert(
    path: &Path,
    out: &Path,
    options: ConvertOptions,
    mut report: impl FnMut(Progress),
) -> Result<Converted, ConvertError> {
    let trace = Trace::open(path)?;
    if let Some(dt) = trace.dt() {
        if options != ConvertOptions::default() {
            return Err(ConvertError::NoSlots { path: path.to_owned() });
        }
        return to_ctf::convert(dt, out, &mut report);
    }
    let mut parts = trace.metadata();
    match (parts.next(), parts.count()) {
        (Some((directory, metadata)), 0) => to_dt::convert(directory, metadata, out, options, &mut report),
        (_, more) => Err(ConvertError::Several { path: path.to_owned(), traces: more + 1 }),
    }
}
