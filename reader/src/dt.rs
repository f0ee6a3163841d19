//! Traces in dt files: the newest packets of a session in a circular, self-describing file.
//!
//! ```text
//!   slots         one packet each, as in the ring, in the order of writing
//!   postambles    `ctfm`  the metadata, CTF 1.8 as text
//!                 `ctfe`  the empty packets with which each stream begins and ends
//!                 `ctfa`  the account
//! ```
//!
//! `docs/format-dt.md` specifies the bytes. All such files are written by [`DtTraceWriter`].

mod index;
mod packet;
mod trace;
mod window;
mod writer;

pub(crate) use index::{DtStream, stream_name};
pub use packet::DtPacket;
pub use trace::{DtSummary, DtTrace};
pub(crate) use window::SlotsWindow;
pub use writer::DtTraceWriter;

/// The tag of the postamble that holds the metadata.
pub const METADATA_TAG: [u8; 4] = *b"ctfm";
/// The tag of the postamble that holds the first and the last packet of each stream.
pub const EDGES_TAG: [u8; 4] = *b"ctfe";
/// The tag of the postamble that holds the account.
pub const ACCOUNT_TAG: [u8; 4] = *b"ctfa";
