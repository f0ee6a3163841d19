//! Triggers: perform actions on a session when a condition occurs.
//!
//! ```text
//!   kernel ─▶ helper ─▶ trigger_fire ──▶ notification socket ──▶ Listener ─┐
//!                            │ no listener                                 ├─▶ TriggerRunner ─▶ actions, state
//!                            └─────────────────────────────────────────────┘
//! ```
//!
//! A trigger is part of its session's description (`TriggerSpec`), and applies to all processes of the session, including later ones. Its
//! state is in a separate file next to that description ([`TriggerState`]): counts are per session, regardless of which process acted.
//! [`message`](self::Message) defines the bytes on the socket, `Listener` owns the socket, `trigger_fire` is its client, and
//! [`TriggerRunner`] performs the actions for both. `docs/triggers.md` is for users, `docs/format-notify.md` describes the bytes and the
//! failures.

mod action;
mod action_context;
pub mod connection;
mod error;
mod failure;
pub mod in_code;
mod message;
mod occurrence;
mod own_snapshots;
mod report;
mod result;
mod runner;
mod snapshot;
pub mod state;

pub use action_context::{
    ActionContext, ExitHandler, NotificationSink, PostponedActions, ProgramStarter, StartedProgram,
};
pub use error::TriggerError;
pub use failure::ActionFailure;
pub use message::{
    CORE_DUMP, CORE_DUMP_WITH_SIGNAL, CoreDump, Decoder, FIRE, FireRequest, MAX_PAYLOAD, Message, NOTIFICATION,
    Notification, PayloadTooLong, SUBSCRIBE, subscribe,
};
pub use occurrence::{Detail, Occurrence};
pub use report::{ANSWER_TIMEOUT, FireOutcome, trigger_report};
pub use result::ActionResult;
pub use runner::{FiredTrigger, TriggerRunner};
pub use state::{KeptSnapshot, TriggerState};
