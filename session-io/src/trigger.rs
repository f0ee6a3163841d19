//! Triggers: when something happens, do something to a session.
//!
//! ```text
//!   kernel ─▶ helper ─▶ trigger_fire ──▶ notification socket ──▶ Listener ─┐
//!                            │ nobody listens                              ├─▶ TriggerRunner ─▶ actions, state
//!                            └─────────────────────────────────────────────┘
//! ```
//!
//! A trigger is part of its session's description (`TriggerSpec`), and applies to all processes of the session, later
//! ones included. What it has done is in a file of its own beside that description ([`TriggerState`]): counts are over the session, whichever
//! process acted. [`message`](self::Message) has the bytes of the socket, `Listener` owns the socket, `trigger_fire` is its client, and
//! [`TriggerRunner`] does the actions for both. `docs/triggers.md` is for users, `docs/format-notify.md` has the bytes and the failures.

mod action;
pub mod connection;
mod error;
mod facilities;
mod failure;
pub mod in_code;
mod message;
mod occurrence;
mod own_snapshots;
mod program;
mod report;
mod result;
mod runner;
mod snapshot;
pub mod state;

pub use error::TriggerError;
pub use facilities::{Facilities, Listening, Postponed};
pub use message::{
    CORE_DUMP, CORE_DUMP_WITH_SIGNAL, CoreDump, Decoder, FIRE, FireRequest, MAX_PAYLOAD, Message, NOTIFICATION,
    Notification, PayloadTooLong, SUBSCRIBE, subscribe,
};
pub use occurrence::{Detail, Occurrence};
pub use program::Programs;
pub use report::{ANSWER_TIMEOUT, Fired, trigger_report};
pub use result::ActionResult;
pub use runner::{FiredTrigger, TriggerRunner};
pub use state::{KeptSnapshot, TriggerState};
