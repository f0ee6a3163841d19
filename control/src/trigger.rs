//! Triggers: when something happens, do something to a session.
//!
//! ```text
//!   kernel ─▶ helper ─▶ trigger_fire ──▶ notification socket ──▶ Listener ─┐
//!                            │ nobody listens                              ├─▶ TriggerRunner ─▶ actions, state
//!                            └─────────────────────────────────────────────┘
//! ```
//!
//! A trigger is part of its session's description ([`TriggerSpec`](crate::TriggerSpec)), and applies to all processes of the session, later
//! ones included. What it has done is in a file of its own beside that description ([`TriggerState`]): counts are over the session, whichever
//! process acted. [`message`](self::Message) has the bytes of the socket, [`Listener`] owns the socket, [`trigger_fire`] is its client, and
//! [`TriggerRunner`] does the actions for both. `docs/triggers.md` is for users, `docs/format-notify.md` has the bytes and the failures.

mod action;
mod client;
mod core_handler;
mod error;
mod facilities;
mod failure;
mod fire;
mod in_code;
pub(crate) mod in_process;
mod listener;
mod message;
mod occurrence;
mod own_snapshots;
mod peer;
mod program;
mod recorder_watch;
mod result;
mod runner;
mod snapshot;
mod socket;
mod state;
mod watch;
mod watchers;

pub use client::Subscription;
pub use error::TriggerError;
pub use fire::{Fired, TriggerOptions, TriggerStatus, trigger_fire, trigger_remove, trigger_report, trigger_set};
pub use listener::{Listener, Received, Report};
pub use message::{
    CORE_DUMP, CORE_DUMP_WITH_SIGNAL, CoreDump, Decoder, FIRE, FireRequest, MAX_PAYLOAD, Message, NOTIFICATION,
    Notification, PayloadTooLong, SUBSCRIBE,
};
pub use occurrence::{Detail, Occurrence};
pub(crate) use recorder_watch::RecorderWatch;
pub use result::ActionResult;
pub use runner::{FiredTrigger, TriggerRunner};
pub use state::{KeptSnapshot, TriggerState};
pub use watchers::Watchers;
