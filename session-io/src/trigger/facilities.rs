//! The facilities that actions get from the process that performs them.
//!
//! | performed by | `run` | `notify` | `--after` |
//! |---|---|---|---|
//! | the listener | starts programs | has subscribers | waits |
//! | a recorder without a listener | starts programs, unless it is root's for another user | fails: there are no subscribers | waits |
//! | a helper or another program without a listener | starts programs | fails: there are no subscribers | acts at once |
//! | a traced process | fails: it starts no program of others | fails: there are no subscribers | acts at once |

use super::message::Notification;
use super::occurrence::Occurrence;
use super::program::Programs;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Instant;
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::private_dir::Author;
use tracepoint_session_spec::TriggerSpec;

/// The additional facilities of a listener or a recorder.
pub trait Listening: Debug + Send + Sync {
    /// Sends a notification to the subscribers; `false` if there are none.
    fn notify(&self, notification: Notification) -> bool;
    /// Performs the actions at this time.
    fn postpone(&self, until: Instant, postponed: Postponed);
}

/// The facilities for actions.
#[derive(Clone, Debug, Default)]
pub struct Facilities {
    /// Starts programs, if permitted.
    pub programs: Option<Programs>,
    /// Has subscribers, and can wait.
    pub listening: Option<Arc<dyn Listening>>,
}

/// The actions of a fired trigger, to be performed later.
#[derive(Clone, Debug)]
pub struct Postponed {
    pub(super) session: String,
    /// The process, if it started the session in code.
    pub(super) process: Option<ProcessKey>,
    pub(super) trigger: TriggerSpec,
    /// The author of the trigger.
    pub(super) author: Author,
    pub(super) occurrence: Occurrence,
}
