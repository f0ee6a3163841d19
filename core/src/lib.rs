//! Typed tracepoints for programs in production: free while they are off, and switched on while the program runs.
//!
//! # The nouns, in the order in which an event meets them
//!
//! * A **tracepoint** is a typed hook with a name, declared once by [`define_trace!`]. It owns a key and a list of probes.
//! * A **site** is a place where a tracepoint is called, with [`trace!`] or the generated function.
//! * A [**key**](Key) is the on/off switch that a site asks: reference-counted, on while anybody wants the event.
//! * A [**probe**](Probe) is a function with the tracepoint's exact argument types, connected while the program runs.
//! * A [**marker**](Marker) is the export of basic types: a name, a format string, named fields. [`define_trace!`] derives one
//!   from a field block; [`trace_mark!`] makes one by hand. It has a key of its own, and *subscribers*.
//! * A **record** is one event in bytes: a header word (event id and time), then the packed [fields](field).
//! * A [**channel**](channel) is a set of rings, one for each thread, with one policy and one account of losses.
//! * A **packet** is one piece of a ring. It is a CTF 1.8 packet, so that nothing is converted on its way out.
//!
//! What comes after that (sinks, which write packets to files and sockets; sessions, which say what is recorded where) is in
//! the crates `tracepoint-sinks` and `tracepoint-control`. A library that only wants to be traceable depends on this one alone.
//!
//! # An example
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU64, Ordering};
//! use tracepoint::{define_trace, trace};
//!
//! pub struct Request {
//!     id: u64,
//!     path: String,
//! }
//!
//! define_trace! {
//!     provider = "shop";
//!
//!     /// A request was answered.
//!     #[level(Info)]
//!     pub answered(request: &Request, status: u16) {
//!         id: u64 = request.id,
//!         path: str = &request.path,
//!         status: u16 = status,
//!     }
//! }
//!
//! fn answer(request: &Request) {
//!     // Off, this is one instruction: no load, no branch, no argument is evaluated.
//!     trace!(answered(request, 200));
//! }
//!
//! // It can be listed before it is hit for the first time …
//! let tracepoint = tracepoint::find("shop:answered")?;
//! assert_eq!(tracepoint.marker().unwrap().format(), "id %lu path %s status %hu");
//!
//! // … and switched on by a probe, which sees the arguments as they are.
//! let seen = Arc::new(AtomicU64::new(0));
//! let sum = Arc::clone(&seen);
//! let probe = register_trace_answered(move |request, _status| {
//!     sum.fetch_add(request.id, Ordering::Relaxed);
//! })?;
//! answer(&Request { id: 7, path: "/".into() });
//! unregister_trace_answered(probe); // from here on the probe is not running and never will again
//! answer(&Request { id: 8, path: "/".into() });
//! assert_eq!(seen.load(Ordering::Relaxed), 7);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! To record to a trace that `babeltrace2` opens, start a `Session` of `tracepoint-control`; neither the declaration nor the
//! sites change.
//!
//! # What a site promises
//!
//! * Off: one instruction that reads and writes no memory and branches nowhere; nothing is computed. (Where sites cannot be
//!   patched: a relaxed load and a predicted branch.)
//! * On: no lock, no allocation and no system call of this crate's. Memory is bounded; what does not fit is lost, and counted
//!   by [reason](channel::Loss).
//! * A panic in a probe or in a field expression does not reach the traced code: it is caught, its message suppressed, and
//!   counted; a probe that panicked is disconnected. Under `panic = "abort"` there is nothing to catch: the program ends.
//! * Sites may be hit in signal handlers, in destructors of thread-locals, and inside probes.
//!
//! # Limits
//!
//! | what | limit | beyond it |
//! |---|---|---|
//! | threads inside tracepoints at a time | [`MAX_THREADS`] | counted by [`unserved_events`] |
//! | probes that fire tracepoints whose probes fire … | [`MAX_PROBE_DEPTH`] deep | counted by [`Tracepoint::probes_skipped`] |
//! | size of a record | [`channel::Channel::max_record_size`] | lost, `too_large` |
//! | events of a channel | 65,536 | refused when they are enabled |
//!
//! # Platforms
//!
//! | target | sites | grace periods | threads' ends, fork |
//! |---|---|---|---|
//! | x86-64 Linux | patched | `membarrier`, else fences | POSIX keys and fork handlers |
//! | other Linux | a flag | `membarrier`, else fences | the same |
//! | other Unix | a flag | fences | the same |
//! | others | a flag | fences | destructors of thread-locals; there is no fork |
//!
//! A patched site is switched by writing one byte of the program's code, by `/proc/self/mem` or, where that is refused, by making
//! the page writable for a moment. A process that is allowed neither cannot switch patched sites: registering says so
//! ([`SwitchError`]), and the feature `flag-sites` is for it. [`platform()`] tells what a process was given.
//!
//! The [clock] is the time stamp counter on x86-64 Linux, where a session finds that the kernel trusts it, and `clock_gettime`
//! elsewhere.
//!
//! Debuggers and profilers work. A breakpoint exactly on a site makes it foreign: it is left alone and counted, and switches
//! again once the breakpoint is gone. A uprobe exactly on a site keeps it off until it is detached.
//!
//! Rust `dylib`s that share the core are switched together; a `cdylib` has a core of its own. An object may be unloaded (`dlclose`) once
//! no probe and no session uses its tracepoints, and nobody holds what a listing gave of them; one that has a core of its own stays
//! loaded once something was switched on in it, because threads that fired report to it when they end. An agent (`tracepoint-control`)
//! keeps what it lists: in a program that has one, objects with tracepoints stay loaded.
//!
//! # Feature flags
//!
//! * `flag-sites` makes sites load a flag where they could be patched.
//! * `failpoints` is for tests of crash resistance: named points of the write path at which a process can be made to die.
//! * `off` compiles tracing out: declarations and sites stay in the source, with the same signatures, and leave nothing in the
//!   program; registering a probe gives a handle to nothing.

mod after_fork;
mod error;
mod key;
mod level;
mod location;
mod macros;
pub mod marker;
mod nearest;
mod platform;
#[doc(hidden)]
pub mod private;
pub mod probe;
mod registry;
mod site;
mod tracepoint;
mod values;

pub use error::{NotFound, RegisterError};
pub use key::Key;
pub use level::{Level, ParseLevelError};
pub use location::Location;
pub use marker::Marker;
pub use platform::{Platform, platform};
pub use probe::{MAX_PROBE_DEPTH, Probe};
pub use registry::{find, markers, tracepoints};
pub use site::SwitchError;
pub use tracepoint::{Argument, Tracepoint, TracepointDescriptor, TracepointParts};
pub use tracepoint_ring::thread::{MAX_THREADS, unserved_events};
pub use tracepoint_ring::update::{in_probe, synchronize};
pub use tracepoint_ring::{channel, clock, context, field};
