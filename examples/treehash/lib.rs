//! Hashes every regular file of a directory tree, with tracepoints in all relevant places.
//!
//! This is the program as a library, so that its tests can run it in their own process as well. In the order of a run:
//! [`options`] from the command line; a [`recording`] of the tracepoints in [`trace`]; the [`walk`], whose files several
//! threads [`hash`] while a bar shows the [`progress`]; and the [`report`], with an [`excerpt`] of the trace.
//!
//! The code for tracing is in three places: tracepoints are declared in `trace.rs`, fired by `trace!` in
//! `walk.rs` and `hash.rs`, and recorded by the session in `recording.rs`.

#![forbid(unsafe_code)]

pub mod excerpt;
pub mod hash;
pub mod options;
pub mod problem;
pub mod progress;
pub mod recording;
pub mod report;
pub mod run;
pub mod trace;
pub mod walk;
