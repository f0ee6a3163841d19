//! The control of other processes' sessions. Internal to [`tracepoint`](https://docs.rs/tracepoint) and `tracectl`; no stable API.
//!
//! A [`Controller`] handles the processes that share a run directory ([`Application`]), and their sessions ([`NamedSession`]): it writes
//! the descriptions, wakes the processes, and waits for their acknowledgements. A [`Recorder`] drains the rings of a session's processes,
//! if these do not drain their rings themselves; a [`KernelRecorder`] drains those of the kernel. [`trigger`] sets and fires triggers,
//! listens on the notification socket, and watches for conditions that a process cannot detect itself, such as its death; [`core_dump`] is
//! the helper that the kernel starts for a core dump.
//!
//! ```text
//!   Controller::create ─▶ session.toml ─▶ bells ─▶ agents … acknowledge ─▶ NamedSession::wait ─▶ Acknowledgements
//!   Recorder ─▶ ring files of each process ─▶ sinks ─▶ RecordedProcess
//! ```
//!
//! There is no daemon: any number of controllers use the same directory, under its locks, and each may end at any time. The code shared
//! with traced processes is in `tracepoint-run-dir`, `tracepoint-session-spec` and `tracepoint-session-io`. This crate does not know how a
//! process records (`tracepoint-session`), nor how bytes are encoded.

// Allowed in the modules that query how a process ended and who the peer of a socket is, and that open the kernel's events.
#![deny(unsafe_code)]

mod controller;
pub mod core_dump;
mod described;
mod kernel;
mod recorder;
pub mod trigger;

pub use controller::{
    Acknowledgements, Application, Controller, DestroyResult, Leftover, Mismatch, MissingFeature, NamedSession,
    RunDirListing, SessionInCode, SilenceReason, UnmatchedRule, rings_behind,
};
pub use kernel::{
    KernelError, KernelEvents, KernelRecorded, KernelRecorder, KernelRecording, ThreadRecorder, ThreadRecording,
};
pub use recorder::{RecordedProcess, Recorder};
