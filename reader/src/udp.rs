//! The client of the UDP trace server (`docs/format-udp.md`).
//!
//! A [`Connection`] receives datagrams from a socket, and [`tracepoint_wire::udp`] decodes them. The [`Client`], which has neither socket nor clock,
//! restores the order of messages and reports losses. A [`BatchDecoder`] decodes events, and a [`Directory`] writes a CTF trace.

mod client;
mod connection;
mod directory;
mod events;
mod order;
mod report;

pub use client::{Client, Options};
pub use connection::Connection;
pub use directory::{AbsentEvents, Directory, DirectoryError};
pub use events::{BatchDecoder, BatchPacket};
pub use report::{Counts, EventBatch, Layout, LegacyEvent, LossReport, Report, SessionEnd};
