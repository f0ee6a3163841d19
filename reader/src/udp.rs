//! The UDP trace server's protocol (`docs/format-udp.md`), and the client that reads from such a server.
//!
//! In the order in which datagrams meet them: [`wire`] decodes them, [`Client`] puts messages into their order and tells what is
//! missing.

mod client;
mod order;
mod report;
pub mod wire;

pub use client::{Client, Options};
pub use report::{Counts, Ending, EventBatch, Layout, Lost, Report, StockEvent};
