//! Typed tracepoints for programs in production: free while they are off, and switched on while the program runs.
//!
//! A program that records depends on this crate with the feature `session`, and has declarations, probes, sessions, sinks and the agent. A
//! library depends on it without features, and links only the small core.
//!
//! # The nouns, in the order of an event's path
//!
//! * A **tracepoint** is a typed hook with a name, declared once by [`define_trace!`]. It owns a key and a list of probes.
//! * A **site** is a place where a tracepoint is called, with [`trace!`] or the generated function.
//! * A **key** is the on/off switch of a tracepoint's sites: reference-counted, and on while a probe or a session uses the tracepoint.
//! * A [**probe**](Probe) is a function with the tracepoint's exact argument types, connected while the program runs.
//! * A [**marker**](Marker) exports basic types: a name, a format string, named fields. [`define_trace!`] derives one from a field block;
//!   [`trace_mark!`] declares one directly. A marker has its own key, and *subscribers*.
//! * A **record** is one event in bytes: a header word (event id and time), then the packed [fields](field).
//! * A **channel** is a set of rings, one for each thread, with one policy and one account of losses.
//! * A **packet** is one sub-buffer of a ring. It is a CTF 1.8 packet, so no conversion is needed to write a trace.
#![cfg_attr(
    feature = "session",
    doc = "* A **sink** takes whole packets: [`sinks`] has CTF directories and text, and with further features circular files, streams and a UDP server.
* A [**session**](Session) is a named set of rules: which events, which filter, which channel, which sinks."
)]
//!
//! # Where things are
//!
//! | you | use |
//! |---|---|
//! | declare events | the macros at the root; [`field`] for the types of fields, [`mod@span`], [`context`] |
//! | connect functions | [`probe`], [`marker`]; [`runtime`] lists the declarations |
//! | record in a program | `session`, `sinks`, `filter`, `probes`, [`clock`]; `testing` in its tests (feature `session`) |
//! | write a controller | `control`, `trigger` (feature `control`) |
//!
//! # Declare, call, probe
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
//! // The tracepoint can be listed before it is hit for the first time …
//! let tracepoint = tracepoint::find("shop:answered")?;
//! assert_eq!(tracepoint.marker().unwrap().format(), "id %lu path %s status %hu");
//!
//! // … and switched on by a probe, which gets the arguments as they are.
//! let seen = Arc::new(AtomicU64::new(0));
//! let sum = Arc::clone(&seen);
//! let probe = register_trace_answered(move |request, _status| {
//!     sum.fetch_add(request.id, Ordering::Relaxed);
//! })?;
//! answer(&Request { id: 7, path: "/".into() });
//! unregister_trace_answered(probe); // after it returns, the probe is not running and never will again
//! answer(&Request { id: 8, path: "/".into() });
//! assert_eq!(seen.load(Ordering::Relaxed), 7);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(
    feature = "session",
    doc = r#"
# Record

```
use tracepoint::{Channel, Rule, Session, sinks::CtfSink};

tracepoint::define_trace! { provider = "shop"; paid(cents: u64) { cents: u64 = cents } }

# let directory = std::env::temp_dir().join(format!("tracepoint-doc-{}", std::process::id()));
let session = Session::builder("mysession")
    .events(Rule::new("shop:*").filter("cents > 100"))
    .channel(Channel::discard(1 << 20))
    .sink(CtfSink::create(&directory)?)
    .start()?;
tracepoint::trace!(paid(1250));
let summary = session.stop()?;
let paid = summary.events().iter().find(|event| event.name == "shop:paid").ok_or("not recorded")?;
assert_eq!((paid.fired, paid.recorded), (1, 1));
# std::fs::remove_dir_all(&directory)?;
# Ok::<(), Box<dyn std::error::Error>>(())
```

`let _agent = tracepoint::Agent::start();` in `main` makes the process controllable from outside by `tracectl`."#
)]
//!
//! # What a site promises
//!
//! * Off: one instruction that reads and writes no memory and does not branch; nothing is computed. Where sites cannot be patched: a
//!   relaxed load and a predicted branch.
//! * On: no lock, no allocation, and at most one system call of this library: a thread whose ring gets half full wakes a sleeping drain
//!   (`Channel::no_wake` disables this). Memory is bounded; an event that does not fit is lost, and counted by reason.
//! * A panic in a probe or in a field expression does not reach the traced code: it is caught and counted; a probe that panicked is
//!   disconnected. The program's panic hook runs, unless [`probe::silence_panics`] was called. Under `panic = "abort"` the program ends.
//! * Sites may be reached in signal handlers, in destructors of thread-locals, and inside probes.
//!
//! # Limits
//!
//! | what | limit | beyond it |
//! |---|---|---|
//! | threads inside tracepoints at the same time | [`runtime::MAX_THREADS`] | counted by [`runtime::unserved_events`] |
//! | probes that fire tracepoints whose probes fire … | [`probe::MAX_PROBE_DEPTH`] deep | counted by [`Tracepoint::probes_skipped`] |
//! | size of a record | a packet of the channel without its header | lost, `too_large` |
//! | events of a channel | 65,536 | refused when they are enabled |
//!
//! # Platforms
//!
//! | target | sites | grace periods | thread exit and fork |
//! |---|---|---|---|
//! | x86-64 and aarch64 Linux | patched | `membarrier`, else fences | POSIX keys and fork handlers |
//! | other Linux | a flag | `membarrier`, else fences | the same |
//! | other Unix | a flag | fences | the same |
//! | others | a flag | fences | destructors of thread-locals; no fork |
//!
//! Sessions in code run on Linux, macOS and Windows; on the latter two their rings are in memory, and their sinks are CTF directories, text and
//! those of the program. The agent, and the features `control`, `dt`, `nats`, `stream` and `udp`, are for Linux.
//!
//! A patched site is switched by overwriting one instruction of the program's code, through `/proc/self/mem` or, if that is not permitted, by making
//! the page writable for a short time. A process that may do neither cannot switch patched sites: registering fails with a [`SiteSwitchError`](probe::SiteSwitchError),
//! and the feature `flag-sites` is for such processes. [`runtime::platform`] returns the mechanisms that a process uses.
//!
//! The [clock] is the processor's counter on x86-64 and aarch64 Linux, if a session finds that the kernel trusts it, and `clock_gettime` otherwise.
//!
//! Debuggers and profilers work. A site with a breakpoint exactly on it is not switched, but counted; the next switch after the breakpoint
//! was removed also switches this site. A uprobe exactly on a site keeps the site off until it is detached.
//!
//! Rust `dylib`s that share the core are switched together; a `cdylib` has its own core. An object may be unloaded (`dlclose`) once no
//! probe and no session uses its tracepoints, and no listing of them is held. An agent keeps the objects that it lists loaded.
//!
//! # Feature flags
//!
//! * `session`: sessions, the agent, filters, test sessions, and the sinks for CTF directories and text.
//! * `dt`, `stream`, `udp`, `nats`: sinks for circular files, for a collector or `lttng-relayd`, for a client of the UDP trace server, and
//!   for a NATS broker, each with `session`. A program recorded by `tracectl record` needs none of them.
//! * `control`: a program that controls the sessions of other processes, as `tracectl` does. A traced program does not need it.
//! * `flag-sites`: sites load a flag where they could be patched.
//! * `usdt`: bpftrace, perf, gdb and SystemTap also find the tracepoints; see [`runtime::usdt`].
//! * `off` removes tracing at compile time: declarations and sites stay in the source, with the same signatures, and generate no code;
//!   registering a probe returns an inert handle.
//! * `failpoints` is for tests of crash resistance: a test can make a process die at named points of the write path.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[doc(hidden)]
pub use tracepoint_core::__macro_support;
pub use tracepoint_core::{
    Level, Marker, Probe, TraceEnum, Tracepoint, context, define_trace, find, span, trace, trace_mark, traced,
};
#[cfg(feature = "session")]
pub use tracepoint_session::{Agent, Channel, Session, testing};
#[cfg(feature = "session")]
pub use tracepoint_session_spec::{Rule, filter};

pub mod clock;
#[cfg(feature = "control")]
pub mod control;
pub mod field;
pub mod marker;
pub mod probe;
pub mod runtime;
#[cfg(feature = "session")]
pub mod session;
#[cfg(feature = "session")]
pub mod sinks;
#[cfg(feature = "session")]
pub mod trigger;

#[cfg(feature = "session")]
#[doc(inline)]
pub use tracepoint_probes as probes;
