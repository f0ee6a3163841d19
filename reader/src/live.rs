//! Reads live sessions from a relay daemon: `lttng-relayd`, or this project's collector.
//!
//! [`LiveUrl`] names a relay, or a session of it. [`list_sessions`] lists the sessions. A [`LiveView`] attaches one and returns its events as
//! they arrive, merged by time:
//!
//! ```text
//!   CONNECT, LIST_SESSIONS, CREATE_SESSION, ATTACH_SESSION
//!   ┌▶ new streams? ──▶ new metadata? ──▶ an index of each stream that has no event left
//!   │                                       a packet      fetched, decoded
//!   │                                       inactive      no packet of it begins before this time
//!   │                                       retry         nothing is known yet
//!   │                                       hang-up       the stream has ended
//!   └── the earliest events are returned, as long as no stream can have earlier ones
//! ```
//!
//! Input from a relay is not trusted: packets, metadata, streams and memory are bounded, each reply is read no further than its length,
//! and a silent relay times out. The messages are defined in [`tracepoint_wire::live`].

mod connection;
mod error;
mod options;
mod streams;
mod trace;
mod url;
mod view;

pub use connection::list_sessions;
pub use error::LiveError;
pub use options::LiveOptions;
pub use url::LiveUrl;
pub use view::LiveView;
