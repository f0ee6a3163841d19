//! Publishes what senders of our own send to a NATS broker: see `docs/nats.md`.
//!
//! ```text
//!   sender ──▶ hub ──▶ files of the session ◀── follows ── session ── publish ──▶ broker
//!               └────▶ log of the session   ◀── follows ──┘   ◀── stored: the position goes on, and is written each second
//! ```
//!
//! What is published is read from the files in which the collector has stored it, so they are the queue: a broker that is away or full delays nothing
//! else, and what a killed collector had not published is published by the next one with its directory. The hub writes a [`log`] for each session
//! in which is what the files do not have; a [`spool`] reads both, and a [`session`] is the task that publishes one trace. [`publisher`] finds the
//! traces, and connects.

mod chunk;
mod link;
mod log;
mod position;
mod publisher;
mod publishing;
mod session;
mod settings;
mod spool;
mod status;

pub(crate) use log::LogWriter;
pub(crate) use position::has_published;
pub(crate) use publisher::publish;
pub use settings::DEFAULT_FLUSH;
pub(crate) use settings::Settings;
pub(crate) use status::Status;
