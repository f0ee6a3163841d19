//! The recorder drains the rings of a session's processes from another process, and writes the packets with its own rights.
//!
//! ```text
//!   sessions/NAME/rings/PID-START/  ─▶ lease ─▶ packets, round by round ─▶ the recorder's sinks
//!                                                      │
//!                     lock released: the process or its recording has ended ─▶ remaining packets, account; directory removed
//! ```
//!
//! A recorded process does not cooperate and need not run: processes that were killed, that are stopped, and whose recording ended are
//! handled alike. One thread serves all processes; a sink that blocks delays the packets of all of them.

pub(crate) mod files;
mod process;
mod recorded_process;
mod state;

use crate::controller::NamedSession;
use crate::trigger::RecorderWatch;
pub use recorded_process::RecordedProcess;
use state::State;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use tracepoint_core::channel::WakeWord;
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::private_dir::{DirError, PrivateDir};
use tracepoint_run_dir::rights::Rights;
use tracepoint_run_dir::ring_files::map_wake_file;
use tracepoint_run_dir::session_dir::open_wake_file;
use tracepoint_session_io::ControlError;
use tracepoint_session_io::outputs::Allowance;
use tracepoint_session_spec::{ChannelSpec, SinkSpec};
use tracepoint_sinks::YieldingLock;
use tracepoint_sinks::consumer_loop::{ConsumerLoop, DrainCounters, PollInterval};
use tracepoint_sinks::own_thread::{leave_signals_to_the_program, never_trace_this_thread};

/// Maximum interval between two rounds, also if processes cannot wake the recorder.
const LONGEST: Duration = Duration::from_millis(500);
const LONGEST_WITHOUT_WORD: Duration = Duration::from_millis(20);
/// The thread's name, as `top -H` shows it.
const NAME: &str = "tracepoint-record";

/// Records a session whose rings another process drains ([`DrainedBy::Recorder`](tracepoint_session_spec::DrainedBy::Recorder)).
///
/// End it with [`Recorder::finish`]. If it is dropped instead, it leaves everything in the rings for `tracectl recover`, as if this process
/// had been killed.
#[derive(Debug)]
pub struct Recorder {
    state: Arc<YieldingLock<State>>,
    rounds: Arc<ConsumerLoop>,
    thread: Option<JoinHandle<()>>,
    allowance: Arc<Allowance>,
    /// Watches the triggers of the session; `None` if there is no descriptor or thread for it.
    watch: Option<RecorderWatch>,
}

impl Recorder {
    /// Records all processes of `session`, running and future, each into its own `sinks`. CTF and text output is limited to `max_size`
    /// bytes in total; the limits of the individual sinks are ignored.
    ///
    /// Existing processes are attached when this function returns. Their directories are read with the rights of the calling thread; sinks
    /// write with the rights of this process, as `rights` holds them.
    ///
    /// # Errors
    ///
    /// If the session was removed, or the thread cannot be created.
    pub fn start(
        session: &NamedSession<'_>,
        sinks: Vec<SinkSpec>,
        max_size: u64,
        rights: Rights,
    ) -> Result<Self, ControlError> {
        let allowance = Allowance::of(max_size);
        // A program that root starts as another user could become root again.
        let may_run = !rights.are_of_another_user();
        let watch = RecorderWatch::start(session.run_dir(), session.name(), may_run).ok();
        let dir = session.dir()?;
        let word = wake_word(&dir);
        // Two rounds within the age at which the processes close packets.
        let ages = sinks.iter().filter_map(|sink| Some(sink.stream_settings()?.flush_age() / 2));
        let longest = if word.is_some() { LONGEST } else { LONGEST_WITHOUT_WORD };
        let longest = ages.chain([longest]).min().unwrap_or(longest);
        let interval = PollInterval::new(longest);
        let streams = sinks.iter().find_map(SinkSpec::stream_settings);
        let buckets = streams.map(|stream| session.buckets(stream.max_bandwidth.is_some())).transpose()?;
        let max_wait = session.spec()?.all_channels().filter_map(ChannelSpec::max_wait).min();
        let mut state = State::new(dir, (sinks, buckets), Arc::clone(&allowance), rights, max_wait);
        state.round();
        let failed = |source| thread_error(&session.path(), source);
        let state = Arc::new(YieldingLock::new(state));
        let rounds = Arc::new(ConsumerLoop::new(Arc::new(word.unwrap_or_default())));
        let (own, own_rounds) = (Arc::clone(&state), Arc::clone(&rounds));
        let body = move || {
            leave_signals_to_the_program();
            // If this process is recorded as well, an event of this thread would wait for the thread itself.
            never_trace_this_thread();
            // Packets of a round that a panic interrupted stay in the rings, and are reported at the end.
            own_rounds.run(interval, || catch_unwind(AssertUnwindSafe(|| own.lock_for_round().round())).ok());
        };
        let thread = Builder::new().name(NAME.to_owned()).spawn(body).map_err(failed)?;
        Ok(Self { state, rounds, thread: Some(thread), allowance, watch })
    }

    fn stop(&mut self) {
        drop(self.watch.take());
        self.rounds.stop();
        if let Some(thread) = self.thread.take() {
            // The thread catches panics itself.
            let _ = thread.join();
        }
    }

    /// Attaches processes that have started to record meanwhile, without waiting for the next round of its thread.
    pub fn attach(&self) {
        self.state.lock().round();
    }

    /// Raises this process's limit on open files to its maximum: a recorder needs some for each process. For programs that only record,
    /// because the limit applies to the whole process and is inherited by its children.
    pub fn raise_file_limit() {
        files::raise_limit();
    }

    /// Sets the function that the recorder's thread calls whenever a process was found, has ended or was [refused](Self::refused), and when
    /// the output is [full](Self::is_full). It must not block, nor call the recorder.
    pub fn on_change(&self, call: impl Fn() + Send + 'static) {
        self.state.lock().on_change(Box::new(call));
    }

    /// The results of the processes that have ended, and the progress of those that are still recorded.
    pub fn recorded(&self) -> Vec<RecordedProcess> {
        self.state.lock().recorded()
    }

    /// Returns how often its thread has drained the rings, and how often a process has woken it.
    pub fn counters(&self) -> DrainCounters {
        self.rounds.counters()
    }

    /// The processes whose sinks could not be created, with the error.
    pub fn refused(&self) -> Vec<(ProcessKey, String)> {
        self.state.lock().refused()
    }

    /// Returns whether output was refused because `max_size` is used up.
    pub fn is_full(&self) -> bool {
        self.allowance.is_used_up()
    }

    /// Ends the recording, after the session was stopped: drains all remaining packets of its processes. From processes that did not
    /// acknowledge (`silent`) it takes the packets that are committed by now; their accounts are incomplete.
    pub fn finish(mut self, silent: &[ProcessKey]) -> Vec<RecordedProcess> {
        self.stop();
        self.state.lock().finish(silent)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Maps the word on which the recorder sleeps, in a file that the processes map, too; `None` if it cannot be created. A process that
/// truncates the file does not end the recorder, but no longer wakes it.
fn wake_word(session: &PrivateDir) -> Option<WakeWord> {
    let file = open_wake_file(session).ok()?;
    WakeWord::shared(map_wake_file(&file, Some(&Arc::default())).ok()?)
}

fn thread_error(path: &std::path::Path, source: std::io::Error) -> ControlError {
    DirError::Io { action: "start a thread to record", path: path.to_owned(), source }.into()
}
