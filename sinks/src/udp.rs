//! The UDP trace server: serves events to one client at a time, in the layout that the client understands.
//!
//! In the order in which an event meets them: packets wait in a `Store`; a `Desk` has commands, and a session with the client, in
//! the stock layout or in batches; an `Outbox` sends many datagrams by one system call. All of it runs in a thread of its own, which
//! is never recorded. The protocol is in `docs/format-udp.md`; its bytes are in [`tracepoint_reader::udp::wire`].

mod books;
mod cut;
mod desk;
mod events;
mod options;
mod outbox;
mod outside;
mod pace;
mod proof;
mod replay;
mod server;
mod session;
mod signals;
mod sink;
mod stats;
mod store;
mod work;

pub use options::{
    DEFAULT_ALLOWED_RATE, DEFAULT_LIMIT, DEFAULT_STOCK_RATE, DropPolicy, StockContent, UdpOptions,
    port_from_environment,
};
pub use outbox::DATAGRAMS_PER_CALL;
pub use outside::LONGEST_MESSAGE;
pub use replay::Replay;
pub use server::{Packet, TraceClock, UdpServer};
pub use sink::UdpServerSink;
pub use stats::{UdpStats, UdpWatch};
