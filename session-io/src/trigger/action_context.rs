//! The context of actions. Which actions succeed depends on the process that performs them:
//!
//! | performed by | `run` | `notify` | `--after` |
//! |---|---|---|---|
//! | the listener | starts programs | has subscribers | waits |
//! | a recorder without a listener | starts programs, unless it is root's for another user | fails: there are no subscribers | waits |
//! | a helper or another program without a listener | starts programs | fails: there are no subscribers | acts at once |
//! | a traced process | fails: it starts no program of others | fails: there are no subscribers | acts at once |

use super::failure::ActionFailure;
use super::message::Notification;
use super::occurrence::Occurrence;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Instant;
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::private_dir::Author;
use tracepoint_session_spec::TriggerSpec;

/// The part of the context that only a listener or a recorder has.
pub trait NotificationSink: Debug + Send + Sync {
    /// Sends a notification to the subscribers; `false` if there are none.
    fn notify(&self, notification: Notification) -> bool;
    /// Performs the actions at this time.
    fn postpone(&self, until: Instant, postponed: PostponedActions);
}

/// Receives the exit status of a program as text, and whether it means success.
pub type ExitHandler = Box<dyn FnOnce(String, bool) + Send>;

/// Starts the programs of the action `run`.
pub trait ProgramStarter: Debug + Send + Sync {
    /// Starts a program, with these variables in addition to this process's environment.
    ///
    /// # Errors
    ///
    /// If the program cannot be started, or too many are running.
    fn start(
        &self,
        line: &[String],
        variables: Vec<(String, String)>,
    ) -> Result<Box<dyn StartedProgram>, ActionFailure>;
}

/// A program that was started.
pub trait StartedProgram: Debug {
    /// Returns its process id.
    fn pid(&self) -> u32;
    /// Waits for its end in the background, and then calls `handler`.
    fn on_exit(self: Box<Self>, handler: ExitHandler);
}

/// The abilities of the process that performs the actions.
#[derive(Clone, Debug, Default)]
pub struct ActionContext {
    /// Starts programs, if permitted.
    pub programs: Option<Arc<dyn ProgramStarter>>,
    /// Has subscribers, and can wait.
    pub listening: Option<Arc<dyn NotificationSink>>,
}

/// The actions of a fired trigger, to be performed later.
#[derive(Clone, Debug)]
pub struct PostponedActions {
    pub(super) session: String,
    /// The process, if it started the session in code.
    pub(super) process: Option<ProcessKey>,
    pub(super) trigger: TriggerSpec,
    /// The author of the trigger.
    pub(super) author: Author,
    pub(super) occurrence: Occurrence,
}
