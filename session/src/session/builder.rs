//! Builds the description of a session in code, and starts it.

use super::recording::Recording;
use super::rings::RingPlace;
use super::rule_check::check_matched;
use super::running::{RunningSession, Target};
use super::settings::RecordingSettings;
use super::{Session, SessionError, in_code, panic_snapshot};
use crate::catalog;
use crate::event::{PlannedEvent, Program, all_events};
use crate::state;
use std::path::PathBuf;
use tracepoint_core::channel::Channel;
use tracepoint_core::clock::Clock;
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::clock;
use tracepoint_run_dir::notice::Notice;
use tracepoint_run_dir::own_process::this_process;
use tracepoint_session_spec::{
    BudgetSpec, ChannelSpec, Rule, SessionSpec, SinkSource, SpecError, TriggerAction, TriggerCondition, check_name,
};
use tracepoint_sinks::own_thread;

/// Builds a [`SessionSpec`] in code, adds what is specific to a process (the location of the rings, the clock, sinks that are objects),
/// and [starts](Self::start) the session.
#[derive(Debug)]
#[must_use = "a session does nothing until it is started"]
pub struct SessionBuilder {
    settings: RecordingSettings,
    /// True if the default channel was set.
    has_channel: bool,
    /// The directory of the snapshot at a panic.
    on_panic: Option<PathBuf>,
}

impl SessionBuilder {
    pub(super) fn new(name: String) -> Self {
        Self::from_spec(name, SessionSpec::new())
    }

    /// Creates a builder from `spec`, as in `session.toml`; more can be added. State, tag and owner of `spec` are ignored:
    /// [`start`](Self::start) starts the session.
    pub fn from_spec(name: impl Into<String>, spec: SessionSpec) -> Self {
        let has_channel = spec.channel != ChannelSpec::default();
        Self { settings: RecordingSettings::new(name.into(), spec), has_channel, on_panic: None }
    }

    /// Returns the current description. A sink that is an object appears in it by its name.
    pub fn spec(&self) -> SessionSpec {
        self.settings.spec()
    }

    /// Adds a rule, which selects events to record: a pattern for `provider:name`, or a [`Rule`] with conditions. A pattern that starts
    /// with `!` excludes events, regardless of the other rules. A session without a rule records nothing.
    ///
    /// [`start`](Self::start) returns an error for a rule that is invalid or matches no event.
    ///
    /// ```no_run
    /// use tracepoint::{Channel, Rule, Session, sinks::CtfSink};
    ///
    /// let session = Session::builder("shop")
    ///     .events("shop:*") // drained into the sink as they come
    ///     .events(Rule::new("net:*").filter("bytes > 4096").channel("flight")) // the newest of each thread, at the end or after a crash
    ///     .channel(Channel::discard(1 << 20))
    ///     .channel(Channel::overwrite(4 << 20).name("flight"))
    ///     .sink(CtfSink::create("/tmp/shop")?)
    ///     .start()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn events(mut self, rule: impl Into<Rule>) -> Self {
        self.settings.spec.push_rule(&rule.into());
        self
    }

    /// Adds a channel: the rings for some events, with a policy, sizes and contexts. The first call describes the default channel, for the
    /// events of rules that [name no channel](Rule::channel); each further call adds a channel, or replaces the one of the same
    /// [name](Channel::name).
    ///
    /// Each channel has its own rings from the start, and is a stream class in the trace. Sinks, drain thread, memory cap and the location of
    /// the rings belong to the session. Sinks get the events of a flight recorder ([`Channel::overwrite`]) when the session ends.
    /// A session has at most 16 channels, and all sessions of a process have at most 32.
    #[expect(clippy::needless_pass_by_value, reason = "builder calls take a temporary channel")]
    pub fn channel(mut self, channel: Channel) -> Self {
        let channel = ChannelSpec::from(&channel);
        if std::mem::replace(&mut self.has_channel, true) {
            self.settings.spec.set_channel(channel);
        } else {
            self.settings.spec.channel = channel;
        }
        self
    }

    /// Adds a sink for the events: an object, or a `SinkSpec`. Without a sink the newest events stay in the rings, and all channels must
    /// be flight recorders.
    pub fn sink(mut self, sink: impl Into<SinkSource>) -> Self {
        self.settings.sinks.push(sink.into());
        self
    }

    /// Sets the session's budget in this process; if its cost is higher, the most frequent event is disabled.
    pub fn budget(mut self, budget: BudgetSpec) -> Self {
        self.settings.spec.budget = Some(budget);
        self
    }

    /// Stores the rings in files below `path`, in `rings/PID-START/`. The default is the run directory (`RunDir`), in
    /// `sessions/NAME/rings/PID-START/`. The directory and its missing parents are created, for this user only. The last call of this and
    /// [`SessionBuilder::in_memory`] applies.
    pub fn dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.place.set_dir(path.into());
        self
    }

    /// Stores the rings in anonymous memory: they are lost when the process is killed. No file is written for them.
    pub fn in_memory(mut self) -> Self {
        self.settings.place.in_memory = true;
        self
    }

    /// Sets whether ring files may be on a disk, where a store can stall for tens of milliseconds while the kernel writes the page. The
    /// default is `false`.
    pub fn allow_disk_rings(mut self, allow: bool) -> Self {
        self.settings.place.allow_disk = allow;
        self
    }

    /// Sets the maximum size of the session's rings in this process, in bytes: 128 MiB by default. In any case, a quarter of the free
    /// memory in the process's cgroup and in the file system of the rings stays free. A ring beyond these limits is not created; threads
    /// without a ring lose their events, which are counted as `no_ring`.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.settings.spec.limits.memory = bytes;
        self
    }

    /// Sets the maximum size of the session's ring files in bytes, summed over all living processes: by default only [each
    /// process](Self::memory) has a limit. With this limit, creating a ring takes a check of the rings of all processes.
    pub fn memory_cap(mut self, bytes: u64) -> Self {
        self.settings.spec.limits.memory_cap = Some(bytes);
        self
    }

    /// Sets the number of different events for which each channel has counters: by default the number of events of the program. An event
    /// takes 128 bytes in each ring; a session cannot [enable](Session::enable) more different events than this.
    pub fn max_events(mut self, events: usize) -> Self {
        self.settings.spec.limits.max_events = Some(events);
        self
    }

    /// Sets whether the program survives the truncation of a ring file (`truncate`, `> FILE`) while the session runs. By default it does
    /// not, as with any mapped file: the next access to the ring ends the program by SIGBUS.
    ///
    /// With `true`, starting the session installs a SIGBUS handler. It replaces the lost pages by zeroed memory and counts them
    /// ([`Summary::cut_off_pages`](super::Summary::cut_off_pages)). The ring is abandoned with its contents and counters, its thread gets
    /// another ring in the drain's next round, within 200 ms, and the account is marked incomplete. The handler forwards signals with
    /// another cause to the previously installed handler. The program still ends if the thread blocks SIGBUS; a sink that passes lost
    /// memory to the kernel fails, which `stop` reports. The handler stays installed; a handler that is installed later should forward
    /// signals to it. There is no cost per event. At most 4096 rings of a process are guarded; no more are created.
    pub fn survive_cut_off_rings(mut self, survive: bool) -> Self {
        self.settings.place.survive_cut_off = survive;
        self
    }

    /// Sets the number of dead processes of this session whose rings are kept for `tracectl recover`: the newest 8 by default. Older ones
    /// are removed when the session starts.
    pub fn keep_dead(mut self, processes: usize) -> Self {
        self.settings.spec.limits.keep_dead = processes;
        self
    }

    /// Sets the maximum size of the kept rings of dead processes in bytes, newest first: 1 GiB by default. Applies together with
    /// [`SessionBuilder::keep_dead`].
    pub fn keep_dead_bytes(mut self, bytes: u64) -> Self {
        self.settings.spec.limits.keep_dead_bytes = bytes;
        self
    }

    /// Sets the clock of the events. A process has one clock: by default the one selected by another session or
    /// [`tracepoint_core::clock::select`], else [`Clock::Monotonic`].
    pub fn clock(mut self, clock: Clock) -> Self {
        self.settings.clock = Some(clock);
        self
    }

    /// Takes a [snapshot](Session::snapshot) into `dir` at the first panic of the process while the session runs, whether the panic
    /// unwinds, is caught, or ends the process (`panic = "abort"`); later panics take none. If `dir` exists and is not empty, the snapshot
    /// is written to `dir-PID-TIME` next to it. A message on standard error contains its path, or the reason why there is none. A panic in
    /// a probe or field expression is caught and counted, and does not trigger a snapshot.
    ///
    /// Starting the session installs a panic hook that precedes the existing one: it starts a thread that writes the snapshot, waits for
    /// it, and then runs the existing hook. A hook that the program installs later, without calling the previous one, replaces it. The hook
    /// stays installed; without a session that requests a snapshot it does nothing.
    pub fn on_panic(mut self, dir: impl Into<PathBuf>) -> Self {
        self.on_panic = Some(dir.into());
        self
    }

    /// Performs `action` whenever `when` occurs in this process, or, for [`TriggerCondition::CoreDump`], when any process dumps core while this one
    /// lives or because this one died: takes a [snapshot](TriggerAction::Snapshot) of this process's rings, or notifies.
    ///
    /// A core dump is detected by a helper that the kernel starts, other conditions by a thread of this process; `docs/triggers.md`
    /// describes the requirements. The triggers are in a file next to the rings, which must be in the run directory. [`start`](Self::start)
    /// fails for actions and conditions that only sessions of a controller support, and for other locations of the rings.
    ///
    /// ```no_run
    /// use tracepoint::trigger::{TriggerAction, TriggerCondition};
    /// use tracepoint::{Channel, Session};
    ///
    /// let flight = Session::builder("flight")
    ///     .events("*")
    ///     .channel(Channel::overwrite(1 << 20))
    ///     .trigger(TriggerCondition::CoreDump, TriggerAction::Snapshot("/var/tmp/crashes".into()))
    ///     .start()?;
    /// # Ok::<(), tracepoint_session::SessionError>(())
    /// ```
    pub fn trigger(mut self, when: TriggerCondition, action: TriggerAction) -> Self {
        self.settings.spec.push_trigger(when, action);
        self
    }

    /// Starts recording. When it returns, the events are enabled, and the [state dumps](crate::state_dump) have completed or exceeded
    /// 500 ms.
    ///
    /// # Errors
    ///
    /// If the name, a rule, a channel, a sink or the budget is invalid; if a rule matches no event, or the rules exclude all; if a sink
    /// cannot start; if there is no directory or no space for the rings; if other sessions use another clock. No event is enabled then.
    pub fn start(self) -> Result<Session, SessionError> {
        own_thread::follow_environment();
        let Self { mut settings, on_panic, .. } = self;
        let spec = settings.spec();
        check_name(&settings.name)?;
        if let Some(error) = spec.first_bad_rule() {
            return Err(error.into());
        }
        spec.check_triggers_in_code().and_then(|()| spec.check_in_process()).map_err(SessionError::Spec)?;
        check_place_of_triggers(&settings.place, &spec)?;
        clock::choose(settings.clock)?;
        let (mut notices, mut of_start) = (Vec::new(), Vec::new());
        let (all, process) = (all_events(catalog::markers(), &mut notices), this_process());
        let program = Program { key: ProcessKey::of_this_process(), executable: &process.executable, events: &all };
        settings.name = in_code::free_name(settings.name, &settings.place, &mut of_start);
        check_name(&settings.name)?;
        let mut session = RunningSession::new(settings.name.clone(), Some(program.key), None);
        let matched = session.match_rules(&spec, program);
        // Renaming is reported only for events that are recorded.
        notices.retain(|notice| {
            let Notice::Renamed { recorded, .. } = notice else { return true };
            matched.events.iter().any(|event| event.name == *recorded)
        });
        check_matched(&spec, &matched, &all, &mut notices)?;
        // If there are state dumps, their two enclosing events are recorded as well.
        let of_dumps = if state::registered(0).is_empty() { 0 } else { state::EVENTS };
        let max_events = all.len() + of_dumps + catalog::later_events();
        let start = |events: &[PlannedEvent]| {
            let recording = Recording::start(settings, events, max_events, &mut of_start)?;
            in_code::write_triggers(&recording, &spec)?;
            in_code::publish(&recording, &spec);
            if let Some(dir) = on_panic {
                panic_snapshot::register(recording.shared(), dir)?;
            }
            Ok(recording)
        };
        let mut report = session.apply(&spec, Target::Active, matched, program, start);
        if let Some(error) = report.take_error() {
            // Ends the triggers while the rings exist, and removes the files of statistics that were computed already.
            drop(session.take_recording());
            return Err(error);
        }
        notices.extend(report.notices.into_iter().chain(of_start));
        Session::new(session, notices)
    }

    /// Returns the settings. Outside tests, the agent changes those that the builder has no method for.
    #[cfg(test)]
    pub(crate) const fn settings(&mut self) -> &mut RecordingSettings {
        &mut self.settings
    }

    /// Starts recording `events`, without rules.
    #[cfg(test)]
    pub(crate) fn record(self, events: &[PlannedEvent], max_events: usize) -> Result<Recording, SessionError> {
        Recording::start(self.settings, events, max_events, &mut Vec::new())
    }
}

/// Checks that the triggers, if there are any, can be written next to the rings.
fn check_place_of_triggers(place: &RingPlace, spec: &SessionSpec) -> Result<(), SessionError> {
    if spec.triggers().next().is_some() && !place.is_in_run_dir() {
        let reason = "a session with triggers must have its rings in the run directory: leave `.dir(path)` and `.in_memory()` out";
        return Err(SessionError::Spec(SpecError::Invalid(reason.to_owned())));
    }
    Ok(())
}
