//! Probes: functions with a tracepoint's argument types, connected and disconnected while the program runs. The cold path of the
//! tracepoint calls them.
//!
//! # The list
//!
//! Each tracepoint publishes an immutable list of probes, ordered by priority (higher first), then by order of registration. Every
//! change publishes a new list:
//!
//! ```text
//!   0 ──register: list, then key on──▶ 1 ──register: list──▶ N
//!   0 ◀──unregister: key off, then list── 1 ◀──unregister: list── N
//! ```
//!
//! A site that saw the key on too early finds no list; a site that saw it on too late runs the old list, which lives until the end of
//! the grace period.
//!
//! # Unregistering waits for a grace period
//!
//! [`Probe::unregister`] (and dropping a [`Probe`]) returns when the probe is not running anywhere and never runs again, and when
//! everything it owned has been dropped. A thread inside a probe cannot wait for its own read-side section to end: there, the call
//! publishes the new list at once, and leaves waiting and dropping to the next change that is made outside probes.
//!
//! The update lock is not held during the wait. A deadlock is possible only through a lock of the caller: a thread must not unregister
//! a probe that takes a lock which the thread holds.
//!
//! # Panics
//!
//! A probe that panics is marked as dead and not called again. The site does nothing else, because it may run in a signal handler.
//! The probe stays in the list, and the sites stay on, until it is unregistered.

pub(crate) mod handle;
pub(crate) mod set;

pub use handle::{Dynamic, Probe};

/// The maximum nesting of probes: a probe that fires a tracepoint runs the probes of that tracepoint, which may fire in turn. Calls
/// beyond this depth are skipped and counted (see [`crate::Tracepoint::probes_skipped`]).
pub const MAX_PROBE_DEPTH: u32 = 4;

/// The priority of a probe that is registered without one.
pub const DEFAULT_PRIORITY: i32 = 10;
