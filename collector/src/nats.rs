//! Takes traces from a NATS broker and shares them with other collectors: see `docs/nats.md`.
//!
//! ```text
//!   search: lists the traces of the broker and their leases ──claimed──▶ one task per trace
//!   trace:  hello, control ─▶ hub ◀─ messages, in the order of the broker
//!             │ every second, and when much was stored: progress of the storage
//!             ▼
//!           commit to the lease ─▶ acknowledge, purge
//! ```
//!
//! [`lease`] defines the entries of the bucket and who may change them, [`search`] finds traces to collect, and [`trace`] collects one, using the
//! state machine of tracepoint senders, [`StreamControl`](crate::stream_control::StreamControl). All run on the thread of the
//! [`Hub`](crate::hub::Hub).

mod account;
mod broker;
mod context;
mod lease;
mod owner;
mod preamble;
mod search;
mod stale;
mod trace;

pub(crate) use owner::Owner;
pub(crate) use search::search;
