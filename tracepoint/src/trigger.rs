//! Triggers: when a condition occurs, do actions on a session.
//!
//! ```
//! use tracepoint::session::{Channel, Rule, Session};
//! use tracepoint::trigger::{TriggerAction, TriggerCondition};
//!
//! tracepoint::define_trace! { provider = "pharmacy"; pub paid(cents: u64, status: u16) { cents: u64 = cents, status: u16 = status } }
//!
//! # let place = std::env::temp_dir().join(format!("tracepoint-doc-trigger-{}", std::process::id()));
//! // What led to an error is kept: each time that a payment fails, the contents of the rings are written to a new directory.
//! let failed = TriggerCondition::Event(Rule::new("pharmacy:paid").filter("status >= 500"));
//! let flight = Session::builder("flight")
//!     .events("pharmacy:*")
//!     .channel(Channel::overwrite(1 << 20))
//!     .trigger(failed, TriggerAction::Snapshot(place))
//!     .start()?;
//! tracepoint::trace!(paid(1250, 200));
//! flight.stop()?;
//! # Ok::<(), tracepoint::session::SessionError>(())
//! ```
//!
//! A [`TriggerSpec`] also has how often it acts and how many snapshots it keeps. A process notices most [conditions](TriggerCondition) itself;
//! for its death and core dumps, `tracectl listen` or the core-dump helper must run.
#![cfg_attr(
    feature = "control",
    doc = "
With the feature `control`, [`trigger_set`] and [`trigger_remove`] change the triggers of any session, [`trigger_fire`] reports a condition to
the [`Listener`] of the notification socket, and a [`Subscription`] receives what occurred. Negative answers and failed actions are variants
of [`TriggerError`]. The other items are the messages of the socket, for programs that speak its protocol."
)]
//!
//! An action runs on a thread of the library, never at the site. The book: *Triggers*, *The notification socket*.

#[cfg(feature = "control")]
pub use tracepoint_controller::trigger::{
    ActionResult, CORE_DUMP, CORE_DUMP_WITH_SIGNAL, CoreDump, Decoder, Detail, FIRE, FireOutcome, FireRequest,
    FiredTrigger, KeptSnapshot, Listener, MAX_PAYLOAD, Message, NOTIFICATION, Notification, Occurrence, PayloadTooLong,
    Report, ReportKind, SUBSCRIBE, Subscription, TriggerError, TriggerOptions, TriggerState, TriggerStatus,
    trigger_fire, trigger_remove, trigger_report, trigger_set,
};
pub use tracepoint_session_spec::{
    Threshold, ThresholdError, TriggerAction, TriggerCondition, TriggerPartError, TriggerSpec,
};
