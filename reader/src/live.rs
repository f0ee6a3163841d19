//! Reads live sessions from a relay daemon: stock `lttng-relayd`, or our collector.
//!
//! [`LiveUrl`] names a relay, or a session of it. [`list_sessions`] lists the sessions. A [`LiveView`] attaches one and yields its events as
//! they arrive, merged by time:
//!
//! ```text
//!   CONNECT, LIST_SESSIONS, CREATE_SESSION, ATTACH_SESSION
//!   ┌▶ new streams? ──▶ new metadata? ──▶ an index of each stream that has no event left
//!   │                                       a packet      fetched, decoded
//!   │                                       inactive      nothing of it comes before this time
//!   │                                       retry         nothing is known yet
//!   │                                       hang-up       the stream has ended
//!   └── the earliest events leave, as far as no stream can have earlier ones
//! ```
//!
//! Nothing that a relay sends is trusted: packets, metadata, streams and memory are bounded, each reply is read no further than its length,
//! and a relay that sends nothing at all is given up. The messages are in [`tracepoint_wire::live`].

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
