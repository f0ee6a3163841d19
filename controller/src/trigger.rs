//! Triggers as seen by controllers: setting and firing them, the listener, and conditions that only other processes can detect.
//!
//! The actions of triggers are in [`tracepoint_session_io::trigger`].

mod client;
mod core_handler;
mod fire;
mod listener;
mod peer;
mod programs;
mod recorder_watch;
mod socket;
mod watch;
mod watchers;

pub use client::Subscription;
pub use fire::{TriggerOptions, TriggerStatus, trigger_fire, trigger_remove, trigger_set};
pub use listener::{Listener, Report, ReportKind};
pub(crate) use recorder_watch::RecorderWatch;
pub use tracepoint_session_io::trigger::{
    ActionResult, CORE_DUMP, CORE_DUMP_WITH_SIGNAL, CoreDump, Decoder, Detail, FIRE, FireOutcome, FireRequest,
    FiredTrigger, KeptSnapshot, MAX_PAYLOAD, Message, NOTIFICATION, Notification, Occurrence, PayloadTooLong,
    SUBSCRIBE, TriggerError, TriggerState, trigger_report,
};
pub use watchers::Watchers;
