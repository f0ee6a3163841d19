//! The hooks of [`tracepoint`](https://docs.rs/tracepoint): everything that runs between the call of a tracepoint and the channel that records it.
//!
//! Programs use this crate through `tracepoint`, which re-exports it and holds the documentation for users. This page is for
//! contributors; `ARCHITECTURE.md` shows how the crates fit together.
//!
//! # The terms, in the order of an event's path
//!
//! | noun | is | module |
//! |---|---|---|
//! | tracepoint | a typed hook, declared by [`define_trace!`]; it has a key, a list of probes and, with a field block, a marker | `tracepoint` |
//! | site | one place where the call of a tracepoint or a [`trace_mark!`] was inlined: a patched instruction, or the load of a flag | `site` |
//! | key | the reference-counted on/off switch of a set of sites | `key` |
//! | fast path, full path | `fire_fast` serves a channel, and aggregates, without filters; `fire_full` also conditions, filters and probes | `fire` |
//! | marker | the export of basic types: name, format string, named fields; it has its own key and list of subscribers | [`marker`] |
//! | subscriber | a channel or an aggregate that gets a marker's events, optionally through a filter | [`marker`] |
//! | span | two tracepoints that share a key, and the state between them | [`mod@span`] |
//! | probe | a function with the tracepoint's argument types, connected at run time | [`probe`] |
//!
//! The event then leaves this crate for a [`channel`] of `tracepoint-ring`. The `registry` lists all tracepoints and markers;
//! `macros` declares the macros, whose expansions name the items of `__macro_support`. Other crates of the project also use
//! `internal`.
//!
//! Sites read published lists inside a read-side section of `tracepoint_ring::update` (RCU). Changes are made under its update
//! lock: they publish a new list, and free the old one after a grace period.
//!
//! # What this crate must not know
//!
//! Sessions, sinks, sockets, threads of its own, the bytes of a record. It opens one file, `/proc/self/mem`, to patch code.
//!
//! # Platforms
//!
//! | target | sites |
//! |---|---|
//! | x86-64 and aarch64 Linux | patched: one instruction while off, switched by overwriting it |
//! | others | flag: a relaxed load and a predicted branch |
//!
//! [`platform()`] reports the mechanisms in use. Grace periods and clocks are described in `tracepoint-ring`.
//!
//! # Feature flags
//!
//! * `flag-sites`: sites load a flag, also where they could be patched.
//! * `failpoints`: named points of the write path at which tests of crash resistance kill the process.
//! * `usdt`: markers have notes, which bpftrace, perf, gdb and SystemTap use to find them; see [`usdt`].
//! * `off`: compiles tracing out. Declarations and sites keep their signatures and add nothing to the program.

#[doc(hidden)]
pub mod __macro_support;
mod after_fork;
mod error;
mod fire;
mod getters;
mod hooks;
#[doc(hidden)]
pub mod internal;
mod key;
mod location;
mod macros;
pub mod marker;
mod nearest;
mod platform;
pub mod probe;
mod registry;
mod site;
pub mod span;
mod tracepoint;
pub mod usdt;
mod values;

pub use error::{RegisterError, TracepointNotFound};
pub use location::Location;
pub use marker::Marker;
pub use platform::{Platform, platform};
pub use probe::{MAX_PROBE_DEPTH, Probe};
pub use registry::{find, markers, tracepoints};
pub use site::SiteSwitchError;
pub use tracepoint::{Argument, Tracepoint};
pub use tracepoint_macros::TraceEnum;
/// Puts each call of a function, a method or an `async fn` into a [span](mod@span) with the name of the function.
///
/// ```
/// use tracepoint::traced;
///
/// struct Shop { name: String }
///
/// impl Shop {
///     #[traced(provider = "shop", fields(name: str = &self.name, id), level = Info)]
///     fn answer(&self, id: u64, body: &[u8]) -> usize {
///         body.len()
///     }
/// }
///
/// #[traced(skip(secret), err)]
/// async fn login(user: &str, secret: u64) -> Result<u64, std::num::ParseIntError> {
///     Ok(user.parse::<u64>()? ^ secret)
/// }
/// # Shop { name: "a".into() }.answer(1, b"body");
/// # let _ = login("7", 3);
/// ```
///
/// | option | effect |
/// |---|---|
/// | – | fields: all arguments of the types `str`, `String`, `Path`, `PathBuf`, an integer up to 64 bits, `bool`, `f32`, `f64`, `[T]`, `Vec<T>` or `Option<T>` of these numbers, `Duration`, `SystemTime`, an address, a `Uuid` that is `Display`, and references to them; others are omitted, including other types with these names, and types written with another name |
/// | `skip(a, b)` | omits these |
/// | `fields(a, len: u64 = b.len() as u64, c: debug = c)` | exactly these: arguments, and expressions over the arguments and `self` |
/// | `err` | the function returns a `Result`: an `Err` is the outcome `error`, and the event `NAME_err { span_id, error }` records what its `Display` writes |
/// | `parent = expression` | the parent, as in [`span!`](crate::span!) |
/// | `name = "…"`, `provider = "…"`, `level = Info` | defaults: the function's name, the crate's name, `DebugLine` |
/// | `crate = path` | the path of this crate, if it has been renamed |
///
/// The fields are evaluated only while the span is on. The future of an `async fn` is inside the span from its first poll on, as with
/// [`FutureExt::traced`](span::FutureExt::traced), and each poll is a span `NAME_poll`. If a function returns a future, only its creation is inside
/// the span. The macro `#[async_trait]` generates such functions: write `#[traced]` on functions outside of the trait, which the methods call.
pub use tracepoint_macros::traced;
pub use tracepoint_ring::panic::silence_panics;
pub use tracepoint_ring::thread::{MAX_THREADS, unserved_events};
pub use tracepoint_ring::update::{in_probe, synchronize};
pub use tracepoint_ring::{Level, ParseLevelError, channel, clock, context, field};
pub use values::TraceEnum;
