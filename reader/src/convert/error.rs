//! What stops a conversion.

use std::path::PathBuf;

use thiserror::Error;

use crate::error::ReadError;
use crate::recover::RecoverError;

/// A trace could not be converted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// There is no trace that could be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The directory is not empty, or cannot be written.
    #[error(transparent)]
    Output(#[from] RecoverError),
    /// The dt file cannot be made.
    #[error(transparent)]
    Dt(#[from] datatrace::Error),
    /// There are several traces below the directory, and a dt file holds one.
    #[error("{}: there are {traces} traces below it, and a dt file holds one; name the directory of one of them", path.display())]
    Several {
        /// The directory.
        path: PathBuf,
        /// How many there are.
        traces: usize,
    },
    /// Slots were asked for, and the target is a directory.
    #[error("{}: this is a dt file, of which a directory is made; slots are chosen for dt files only", path.display())]
    NoSlots {
        /// The dt file.
        path: PathBuf,
    },
    /// The slots are too small.
    #[error("a slot of {size} bytes does not take packets of up to {largest} bytes; it needs {needed}")]
    SlotSize {
        /// What was asked for.
        size: u32,
        /// The largest packet, in bytes.
        largest: u64,
        /// What slots need.
        needed: u64,
    },
    /// The trace has a packet that no slot takes.
    #[error("{}: byte {offset}: a packet of {size} bytes, more than a slot of a dt file takes", path.display())]
    TooLarge {
        /// The stream file.
        path: PathBuf,
        /// Where the packet begins.
        offset: u64,
        /// Its size in bytes.
        size: u64,
    },
    /// Packets do not say which stream they are of, and there are several.
    #[error(
        "{}: its packets do not say which stream they are of (`stream_instance_id`), so that one file cannot hold several \
         streams",
        path.display()
    )]
    NoInstance {
        /// The directory.
        path: PathBuf,
    },
}
