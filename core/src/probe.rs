//! Probes: functions with a tracepoint's argument types, connected and disconnected while the program runs.
//!
//! The step before is a tracepoint's cold path; a probe is the end of its own.
//!
//! # The list
//!
//! Each tracepoint publishes an immutable list, ordered by priority (higher first), then by order of registration. Every change
//! makes a new list:
//!
//! ```text
//!   0 ──register: list, then key on──▶ 1 ──register: list──▶ N
//!   0 ◀──unregister: key off, then list── 1 ◀──unregister: list── N
//! ```
//!
//! A site that read the key too early finds an empty list, or none; one that read it too late runs the old list, which lives
//! until the grace period is over.
//!
//! # Who waits
//!
//! [`Probe::unregister`] (and dropping a [`Probe`]) returns when the probe is not running anywhere and never will again, and
//! when what it owned has been dropped. From inside a probe that would be waiting for oneself: there the new list is published
//! at once, and the waiting and dropping are left to the next change made outside.
//!
//! No lock is held while waiting. What can still hang is what the caller brings along: a thread that holds a lock of its own
//! must not unregister a probe that takes the same lock.
//!
//! # Panics
//!
//! A probe that panics is marked, and not called again. That is all that a site does, because it may be in a signal handler; the list
//! is left as it is until the probe is unregistered, and the sites stay on until then.

mod handle;
mod set;

pub use handle::{Dynamic, Probe, inert};
pub use set::{ArgumentsType, ProbeSet};

/// How deep user probes nest: a probe that fires a tracepoint runs its probes, those may fire in turn, and so on. What would
/// be deeper is not run, and counted (see [`crate::Tracepoint::probes_skipped`]).
pub const MAX_PROBE_DEPTH: u32 = 4;

/// The priority of probes that are registered without one.
pub const DEFAULT_PRIORITY: i32 = 10;
