//! Where events go: takes whole packets from channels and hands them to sinks.
//!
//! In the order in which a packet meets them: a [`Drain`] takes packets out of [`tracepoint_core::channel::OpenChannel`]s and
//! gives each to every [`Sink`]; a [`CtfSink`] appends it to a file of a CTF 1.8 directory, a [`DtSink`] puts it into the
//! place of the oldest one in a circular file, a [`TextSink`] writes its events as lines, a [`udp::UdpServerSink`] serves them
//! to a client of the network. What a sink is told beforehand is a [`TraceInfo`], a [`ChannelDescription`] for each channel and an
//! [`EventDescription`] for each event; at the end it gets the [`account`] of what was fired, recorded and lost.
//!
//! An [`OutsideDrain`] does what a [`Drain`] does for the rings of another process, over its ring files.
//!
//! Loss is data: a packet that a sink could not take is counted by its records, and the error is kept for whoever asks.
//!
//! This crate knows neither sessions nor the command line. To write a sink of your own, implement [`Sink`].

#![forbid(unsafe_code)]

pub mod ctf;
mod description;
mod drain;
mod dt;
mod error;
mod outside;
mod sink;
mod text;
mod trace_info;
pub mod udp;

pub use ctf::{CtfError, CtfSink};
pub use datatrace::Error as DtError;
pub use description::{ChannelDescription, EventDescription};
pub use drain::{Drain, Drained, SinkId, SinkReport};
pub use dt::DtSink;
pub use error::SinkError;
pub use outside::OutsideDrain;
pub use sink::{Output, Sink, StreamInfo};
pub use text::TextSink;
pub use trace_info::{ClockInfo, ProcessInfo, TraceInfo};
/// What happened to every event, in the form in which it is written beside a trace.
pub use tracepoint_reader::account;
/// Takes the packets of another process out of its ring files, for an [`OutsideDrain`].
pub use tracepoint_reader::consume::Consumer;
