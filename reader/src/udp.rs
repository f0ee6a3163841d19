//! The UDP trace server's protocol (`docs/format-udp.md`), and the client that reads from such a server.
//!
//! In the order in which datagrams meet them: a [`Connection`] takes them from a socket; [`wire`] decodes them; the [`Client`], which
//! knows neither socket nor clock, puts messages into their order and tells what is missing; a [`BatchDecoder`] makes events of
//! them, a [`Directory`] a CTF trace.

mod client;
mod connection;
mod directory;
mod events;
mod order;
mod report;
pub mod wire;

pub use client::{Client, Options};
pub use connection::Connection;
pub use directory::{AbsentEvents, Directory, DirectoryError};
pub use events::{BatchDecoder, BatchPacket};
pub use report::{Counts, Ending, EventBatch, Layout, LegacyEvent, Lost, Report};
