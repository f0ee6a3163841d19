//! Controlling the sessions of other processes, as `tracectl` does. For tools: a traced process needs an [`Agent`](crate::Agent) only.
//!
//! ```
//! use std::time::Duration;
//! use tracepoint::control::Controller;
//! use tracepoint::session::{Agent, ChannelSpec, Rule, RunDir, SessionSpec, State};
//!
//! tracepoint::define_trace! { provider = "butcher"; pub paid(cents: u64) { cents: u64 = cents } }
//!
//! # let place = std::path::Path::new("/dev/shm").join(format!("tracepoint-doc-control-{}", std::process::id()));
//! # std::fs::create_dir(&place)?;
//! // Both sides meet in a run directory. Programs usually call `Agent::start` and `Controller::find`, which find the same one.
//! let run_dir = place.join("run");
//! let _agent = Agent::start_in(&RunDir::at(&run_dir)?)?; // in the traced process
//!
//! let controller = Controller::at(RunDir::at(&run_dir)?)?;
//! assert_eq!(controller.processes()?.len(), 1);
//! let mut spec = SessionSpec::new();
//! spec.add_rule(&Rule::new("butcher:*"))?;
//! spec.set_channel(ChannelSpec::overwrite(1 << 20)); // without sinks: the rings contain the newest events
//! spec.state = State::Active;
//! let session = controller.create("web", &spec)?;
//! let acknowledged = session.wait(session.spec()?.generation, Duration::from_secs(20))?;
//! assert_eq!((acknowledged.acks.len(), acknowledged.silent.len()), (1, 0));
//! session.destroy(Duration::from_secs(20), true)?;
//! # std::fs::remove_dir_all(&place)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | to | use |
//! |---|---|
//! | list processes, their tracepoints and sessions | [`Controller`], [`Application`], [`TracepointInfo`], [`SessionInCode`] |
//! | create, change and end a session | [`NamedSession`], with a [`SessionSpec`](crate::session::SessionSpec); [`end_with_this_process`] |
//! | learn what each process did | [`Ack`], [`Acknowledgements`], [`DestroyResult`]; [`SilenceReason`], [`MissingFeature`], [`UnmatchedRule`] for what it did not |
//! | find the rings of sessions that are over | [`Leftover`] |
//! | record processes that have no sinks | [`Recorder`], [`RecordedProcess`] |
//! | read statistics | [`SessionStatistics`], [`ProcessStatistics`] |
//!
//! There is no daemon: the run directory is the truth. A controller replaces files in it under a lock and wakes the agents; a process that
//! starts later finds the session waiting. A [`ControlError`] names the command that helps. A process accepts only users who could debug it.
//!
//! Next: [`trigger`](crate::trigger), to act when something happens; the book: *Control from outside*, *The run directory*.

pub use tracepoint_controller::{
    Acknowledgements, Application, Controller, DestroyResult, Leftover, Mismatch, MissingFeature, NamedSession,
    RecordedProcess, Recorder, SessionInCode, SilenceReason, UnmatchedRule,
};
pub use tracepoint_reader::process::{ProcessKey, ProcessKeyError};
pub use tracepoint_run_dir::{
    Ack, AckState, AppStatus, ApplicationInfo, ArgumentInfo, BandwidthUse, FieldInfo, RotationResult, RuleAck,
    StreamStatus, TracepointInfo, TracepointKind, TriggerAck,
};
pub use tracepoint_session_io::ControlError;
pub use tracepoint_session_io::owner::end_with_this_process;
pub use tracepoint_session_io::statistics::{ProcessStatistics, SessionStatistics};
pub use tracepoint_session_io::store::Rotation;
