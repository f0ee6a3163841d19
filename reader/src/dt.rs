//! Traces in dt files: a session's newest packets in a circular file that explains itself.
//!
//! ```text
//!   slots         one packet each, as the ring had it, in the order in which they were written
//!   postambles    `ctfm`  the metadata, CTF 1.8 as text; it has the clock too
//!                 `ctfe`  for each stream the packets without records with which it begins and ends
//!                 `ctfa`  the account
//! ```
//!
//! `docs/format-dt.md` has the bytes. This is the one definition of them: whoever writes such a file does so by [`DtTraceWriter`].

mod index;
mod packet;
mod trace;
mod window;
mod writer;

pub(crate) use index::stream_name;
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
