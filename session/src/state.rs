//! State dumps: the program fires events that describe existing state, for a recording that starts late.
//!
//! ```text
//!   registered ──a session starts to record, or enables more events──▶ running, on a thread of its own
//!   running ──returns──▶ done          running ──panics──▶ done, counted
//!   running ──500 ms──▶ late: the starting thread stops waiting; later runs are skipped and counted until it returns
//! ```
//!
//! A session ([`crate::Session`]) runs the dumps after it has enabled its events. The dump's thread is bound to the session's channels, so
//! other recordings do not get the events of the dump ([`tracepoint_core::channel::OpenChannel::restrict_this_thread`]).
//!
//! No lock is held while a dump runs, and the wait for it is bounded: a dump that needs a lock of the waiting thread becomes late, but does
//! not deadlock. If the session ends first, the rest of the dump fires at disabled sites.

mod dump;
mod events;
mod registry;
mod run;

pub use dump::Dump;
pub(crate) use events::{EVENTS, planned};
pub use registry::{StateDump, state_dump};
pub(crate) use registry::{Wake, registered, wake_agent, wake_for_dumps};
pub(crate) use run::{Round, Runs};
