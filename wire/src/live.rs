//! The protocol of live viewers such as `babeltrace2 -i lttng-live`: requests to a relay daemon, and its replies.
//!
//! ```text
//!   viewer ── Request ──▶ relay     16 bytes of header, then the payload
//!   viewer ◀── reply ──── relay     a bare structure whose type depends on the request
//! ```
//!
//! A viewer sends one request and waits for its reply. All integers are big-endian, and structures are packed; packets and metadata are
//! passed through. The type of the reply to each [`Request`]:
//!
//! | request | reply |
//! |---|---|
//! | [`Connect`](Request::Connect) | [`Connect`] |
//! | [`ListSessions`](Request::ListSessions) | [`Sessions`] |
//! | [`CreateSession`](Request::CreateSession) | [`SessionCreated`] |
//! | [`Attach`](Request::Attach) | [`Streams<AttachStatus>`](Streams) |
//! | [`NewStreams`](Request::NewStreams) | [`Streams<NewStreamsStatus>`](Streams) |
//! | [`NextIndex`](Request::NextIndex) | [`Index`] |
//! | [`Packet`](Request::Packet) | [`PacketBytes`] |
//! | [`Metadata`](Request::Metadata) | [`MetadataBytes`] |
//! | [`Detach`](Request::Detach) | [`SessionDetached`] |
//! | [`Clock`](Request::Clock) | [`ClockOffset`] |
//! | [`Challenge`](Request::Challenge) | [`Secret`]: a random number |
//! | [`Prove`](Request::Prove) | [`Secret`]: the authentication code of the collector; zeros if refused |
//!
//! Each type decodes from the start of the bytes received so far (`Decoded`), and reports how many more bytes it needs, so that a
//! reader never waits for more than the message has, and never allocates more than was sent.

mod reply;
mod request;
mod status;
mod streams;

pub use reply::{ClockOffset, Secret};
pub use reply::{Index, MetadataBytes, PacketBytes, SessionCreated, SessionDetached};
pub use request::{Connect, Request, Seek};
pub use status::{AttachStatus, IndexStatus, MetadataStatus, NewStreamsStatus, PacketStatus, Status};
pub use streams::{SessionRecord, Sessions, StreamRecord, Streams};

/// The default port of a relay daemon for viewers.
pub const LIVE_PORT: u16 = 5344;
/// The major version of the protocol; other versions are refused.
pub const MAJOR: u32 = 2;
/// The minor version that this implementation announces.
pub const MINOR: u32 = 13;
/// Bit 0 of flags: metadata has not been fetched yet.
pub const NEW_METADATA: u32 = 1;
/// Bit 1 of flags: streams have not been announced yet.
pub const NEW_STREAM: u32 = 2;
