//! Publishes sessions of tracepoint senders to a NATS broker: see `docs/nats.md`.
//!
//! ```text
//!   sender ──▶ hub ──▶ files of the session ◀── follows ── session ── publish ──▶ broker
//!               └────▶ log of the session   ◀── follows ──┘   ◀── stored: the position advances, and is written every second
//! ```
//!
//! Packets are read back from the files in which the collector has stored them, so the files are the queue: an unreachable or full broker delays
//! nothing else, and packets that a killed collector did not publish are published by the next one with its directory. For each session the hub
//! writes a [log](crate::spool::LogWriter) with the data that the files lack. A [`Spool`](crate::spool::Spool) reads both, and a [`session`] is
//! the task that publishes one trace. The [`publisher`] finds traces and connects to the broker.

mod context;
mod link;
mod publisher;
mod session;

pub(crate) use publisher::publish;
