//! State dumps: what a recording that begins late has missed, told by the program itself.
//!
//! ```text
//!   registered ──a session begins to record, or begins to record more──▶ running, on a thread of its own
//!   running ──returns──▶ done          running ──panics──▶ done, counted
//!   running ──500 ms──▶ late: nobody waits for it; whoever starts next passes it over, counted, until it returns
//! ```
//!
//! The step before is a session whose events are on ([`crate::Session`]); the step after are the sites that the dump fires. Its thread is
//! kept for the session's channels: other recordings do not get what it fires ([`tracepoint_core::channel::OpenChannel::restrict_this_thread`]).
//!
//! No lock is held while a dump runs, and whoever waits for it goes on after a while: a dump that needs what the waiting thread holds is
//! late, and no deadlock. Where a session ends first, the rest of the dump meets sites that are off.

mod events;
mod registry;
mod run;

pub(crate) use events::{EVENTS, planned};
pub use registry::{StateDump, state_dump};
pub(crate) use registry::{Wake, registered, wake_for_dumps};
pub use run::{Dump, StateDumpStatus};
pub(crate) use run::{Round, Runs};
