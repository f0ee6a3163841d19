//! Converts a dt file to a CTF directory, and a CTF directory to a dt file.
//!
//! Packets are CTF in both, and are copied unchanged. If a collector has aligned the clock of a trace with its own, the metadata of the dt file
//! contains the aligned offset. Events that are no longer in the source count as overwritten in the account of the
//! target.

mod aligned;
mod error;
mod to_ctf;
mod to_dt;

use std::fmt::Display;
use std::path::Path;

use serde::Serialize;

use crate::merge::Trace;

pub use error::ConvertError;

/// The options of a new dt file. By default it takes all packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConvertOptions {
    /// The number of slots, which is the number of newest packets that are kept. `None`: one for each packet with events.
    pub slots: Option<u32>,
    /// Size of a slot in bytes. `None`: the size that the largest packet needs.
    pub slot_size: Option<u32>,
}

/// A summary of the conversion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ConversionSummary {
    /// The number of streams.
    pub streams: u64,
    /// Number of packets with events that were written; each takes a slot in a dt file.
    pub packets: u64,
    /// Size of these packets in bytes.
    pub bytes: u64,
    /// Number of the oldest packets of the source that have no slot in the dt file.
    pub dropped: u64,
    /// Damage in the source: in the metadata, which is copied unchanged, and in parts that could not be read and are missing in the target.
    pub damage: Vec<String>,
    /// True if the source was written to during the conversion; packets may then be missing.
    pub changed: bool,
}

/// The progress of a conversion, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes converted so far.
    pub done: u64,
    /// Bytes in total.
    pub total: u64,
}

/// Converts the dt file `path` to a CTF directory `out`, or the CTF directory `path` to a dt file `out`. Calls `report` repeatedly with the
/// progress.
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
/// [`ConvertError::Dt`] if `out` exists, or cannot be written; [`ConvertError::SlotSize`] and others for invalid options. Damage in a part
/// of the trace is not an error.
pub fn convert(
    path: &Path,
    out: &Path,
    options: ConvertOptions,
    mut report: impl FnMut(Progress),
) -> Result<ConversionSummary, ConvertError> {
    let trace = Trace::open(path)?;
    let mut converted = convert_trace(&trace, path, out, options, &mut report)?;
    converted.damage.splice(0..0, trace.metadata_damage().map(|damage| format!("{damage}; it is converted as it is")));
    Ok(converted)
}

fn convert_trace(
    trace: &Trace,
    path: &Path,
    out: &Path,
    options: ConvertOptions,
    report: &mut dyn FnMut(Progress),
) -> Result<ConversionSummary, ConvertError> {
    if let Some(dt) = trace.dt() {
        if options != ConvertOptions::default() {
            return Err(ConvertError::NoSlots(path.to_owned()));
        }
        return to_ctf::convert(dt, out, report);
    }
    let mut parts = trace.metadata().zip(trace.alignments());
    match (parts.next(), parts.count()) {
        (Some(((directory, metadata), (_, alignment))), 0) => {
            let offset = alignment.map(|alignment| alignment.offset);
            to_dt::convert(directory, (metadata, offset), out, options, report)
        }
        (_, more) => Err(ConvertError::Several { path: path.to_owned(), traces: more + 1 }),
    }
}

/// The message for a part of the source that is not in the target.
fn not_converted(damage: impl Display) -> String {
    format!("{damage}; not converted")
}
