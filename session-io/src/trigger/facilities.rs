//! What the process that performs actions offers to them.
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

/// What a listener, or a recorder, can do.
pub trait Listening: Debug + Send + Sync {
    /// Sends a notification to the subscribers; `false` if it has none.
    fn notify(&self, notification: Notification) -> bool;
    /// Has the actions done at this time.
    fn postpone(&self, until: Instant, postponed: Postponed);
}

/// What actions can use.
#[derive(Clone, Debug, Default)]
pub struct Facilities {
    /// Starts programs, if it may.
    pub programs: Option<Programs>,
    /// Has subscribers, and can wait.
    pub listening: Option<Arc<dyn Listening>>,
}

/// The actions of a trigger that has fired, to be done later.
#[derive(Clone, Debug)]
pub struct Postponed {
    pub(super) session: String,
    /// Whose session it is, if it was started in code.
    pub(super) process: Option<ProcessKey>,
    pub(super) trigger: TriggerSpec,
    /// Who has written the trigger.
    pub(super) author: Author,
    pub(super) occurrence: Occurrence,
}
