//! The error of a conversion.

use std::path::PathBuf;

use thiserror::Error;

use crate::error::ReadError;
use crate::recover::RecoverError;

/// A trace could not be converted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// There is no readable trace.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The directory is not empty, or cannot be written.
    #[error(transparent)]
    Output(#[from] RecoverError),
    /// The dt file cannot be created.
    #[error(transparent)]
    Dt(#[from] datatrace::Error),
    /// There are several traces below the directory, and a dt file can hold only one.
    #[error("{}: there are {traces} traces below it, and a dt file holds one; name the directory of one of them", path.display())]
    Several {
        /// The directory.
        path: PathBuf,
        /// The number of traces.
        traces: usize,
    },
    /// Slots were requested, and the target is a directory.
    #[error("{}: this is a dt file, which is converted to a directory; omit the options for slots, which apply to new dt files", .0.display())]
    NoSlots(PathBuf),
    /// The slots are too small.
    #[error(
        "a slot of {size} bytes cannot hold packets of up to {largest} bytes; use a slot size of at least {needed}"
    )]
    SlotSize {
        /// The requested size.
        size: u32,
        /// The largest packet, in bytes.
        largest: u64,
        /// The required size.
        needed: u64,
    },
    /// The trace has a packet that is too large for any slot.
    #[error("{}: byte {offset}: a packet of {size} bytes is larger than the largest slot of a dt file", path.display())]
    TooLarge {
        /// The stream file.
        path: PathBuf,
        /// The offset of the packet.
        offset: u64,
        /// Its size in bytes.
        size: u64,
    },
    /// The packets have no stream instance, and there are several streams.
    #[error(
        "{}: its packets do not say which stream they are of (`stream_instance_id`), so that one file cannot hold several \
         streams",
        .0.display()
    )]
    NoInstance(PathBuf),
}
