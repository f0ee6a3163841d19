//! Builds the description of a session in code, and starts it.

use super::recording::{Plan, Recording};
use super::rings::RingPlace;
use super::{Session, SessionError, compute, in_code, panic_hook};
use crate::catalog;
use crate::event::{PlannedEvent, all_events};
use crate::rule_match::{Matched, Matcher};
use crate::state::{self, Round};
use crate::statistics::RunningStatistics;
use crate::trigger::{InProcessTriggers, Owner, Program};
use std::path::PathBuf;
use std::time::Duration;
use tracepoint_core::channel::{Channel, MAX_OPEN, OpenChannel};
use tracepoint_core::clock::Clock;
use tracepoint_core::private::nearest_names;
use tracepoint_probes::Measure;
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::clock;
use tracepoint_run_dir::layout::TRIGGERS_FILE;
use tracepoint_run_dir::notice::Notice;
use tracepoint_run_dir::own_process::this_process;
use tracepoint_run_dir::private_dir::PrivateDir;
use tracepoint_session_io::outputs::prepare;
use tracepoint_session_spec::{
    BudgetSpec, ChannelSpec, Rule, RuleStatistic, SessionSpec, SinkSource, SpecError, TriggerAction, TriggerCondition,
    check_name,
};
use tracepoint_sinks::{CtfError, own_thread};

/// Builds a [`SessionSpec`] in code, adds what is specific to a process (the location of the rings, the clock, sinks that are objects),
/// and [starts](Self::start) the session.
#[derive(Debug)]
#[must_use = "a session does nothing until it is started"]
pub struct SessionBuilder {
    name: String,
    /// Without its sinks, which are in `sinks`.
    spec: SessionSpec,
    sinks: Vec<SinkSource>,
    /// True if the default channel was set.
    has_channel: bool,
    place: RingPlace,
    clock: Option<Clock>,
    /// Maximum time that the caller waits for sinks while the session runs; `None` for no limit.
    sink_timeout: Option<Duration>,
    /// Initial number of rings of the default channel, unless its description sets it.
    rings_at_first: Option<usize>,
    trace_name: Option<String>,
    /// The directory of the snapshot at a panic.
    on_panic: Option<PathBuf>,
}

impl SessionBuilder {
    pub(super) fn new(name: String) -> Self {
        Self::from_spec(name, SessionSpec::new())
    }

    /// Creates a builder from `spec`, as in `session.toml`; more can be added. State, tag and owner of `spec` are ignored:
    /// [`start`](Self::start) starts the session.
    pub fn from_spec(name: impl Into<String>, mut spec: SessionSpec) -> Self {
        let sinks = std::mem::take(&mut spec.sinks).into_iter().map(SinkSource::from).collect();
        let has_channel = spec.channel != ChannelSpec::default();
        Self {
            name: name.into(),
            spec,
            sinks,
            has_channel,
            place: RingPlace::default(),
            clock: None,
            sink_timeout: None,
            rings_at_first: None,
            trace_name: None,
            on_panic: None,
        }
    }

    /// Returns the current description. A sink that is an object appears in it by its name.
    pub fn spec(&self) -> SessionSpec {
        let mut spec = self.spec.clone();
        spec.sinks = self.sinks.iter().map(SinkSource::spec).collect();
        spec
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
        self.spec.push_rule(&rule.into());
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
            self.spec.set_channel(channel);
        } else {
            self.spec.channel = channel;
        }
        self
    }

    /// Adds a sink for the events: an object, or a `SinkSpec`. Without a sink the newest events stay in the rings, and all channels must
    /// be flight recorders.
    pub fn sink(mut self, sink: impl Into<SinkSource>) -> Self {
        self.sinks.push(sink.into());
        self
    }

    /// Sets the session's budget in this process; if its cost is higher, the most frequent event is disabled.
    pub fn budget(mut self, budget: BudgetSpec) -> Self {
        self.spec.budget = Some(budget);
        self
    }

    /// Stores the rings in files below `path`, in `rings/PID-START/`. The default is the run directory (`RunDir`), in
    /// `sessions/NAME/rings/PID-START/`. The directory and its missing parents are created, for this user only. The last call of this and
    /// [`SessionBuilder::in_memory`] applies.
    pub fn dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.place.set_dir(path.into());
        self
    }

    /// Stores the rings in anonymous memory: they are lost when the process is killed. No file is written for them.
    pub fn in_memory(mut self) -> Self {
        self.place.in_memory = true;
        self
    }

    /// Sets whether ring files may be on a disk, where a store can stall for tens of milliseconds while the kernel writes the page. The
    /// default is `false`.
    pub fn allow_disk_rings(mut self, allow: bool) -> Self {
        self.place.allow_disk = allow;
        self
    }

    /// Sets the maximum size of the session's rings in this process, in bytes: 128 MiB by default. In any case, a quarter of the free
    /// memory in the process's cgroup and in the file system of the rings stays free. A ring beyond these limits is not created; threads
    /// without a ring lose their events, which are counted as `no_ring`.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.spec.limits.memory = bytes;
        self
    }

    /// Sets the maximum size of the session's ring files in bytes, summed over all living processes: by default only [each
    /// process](Self::memory) has a limit. With this limit, creating a ring takes a check of the rings of all processes.
    pub fn memory_cap(mut self, bytes: u64) -> Self {
        self.spec.limits.memory_cap = Some(bytes);
        self
    }

    /// Sets the number of different events for which each channel has counters: by default the number of events of the program. An event
    /// takes 128 bytes in each ring; a session cannot [enable](Session::enable) more different events than this.
    pub fn max_events(mut self, events: usize) -> Self {
        self.spec.limits.max_events = Some(events);
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
        self.place.survive_cut_off = survive;
        self
    }

    /// Sets the number of dead processes of this session whose rings are kept for `tracectl recover`: the newest 8 by default. Older ones
    /// are removed when the session starts.
    pub fn keep_dead(mut self, processes: usize) -> Self {
        self.spec.limits.keep_dead = processes;
        self
    }

    /// Sets the maximum size of the kept rings of dead processes in bytes, newest first: 1 GiB by default. Applies together with
    /// [`SessionBuilder::keep_dead`].
    pub fn keep_dead_bytes(mut self, bytes: u64) -> Self {
        self.spec.limits.keep_dead_bytes = bytes;
        self
    }

    /// Sets the clock of the events. A process has one clock: by default the one selected by another session or
    /// [`tracepoint_core::clock::select`], else [`Clock::Monotonic`].
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
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
    /// use tracepoint::{Channel, Session, TriggerAction, TriggerCondition};
    ///
    /// let flight = Session::builder("flight")
    ///     .events("*")
    ///     .channel(Channel::overwrite(1 << 20))
    ///     .trigger(TriggerCondition::CoreDump, TriggerAction::Snapshot("/var/tmp/crashes".into()))
    ///     .start()?;
    /// # Ok::<(), tracepoint_session::SessionError>(())
    /// ```
    pub fn trigger(mut self, when: TriggerCondition, action: TriggerAction) -> Self {
        self.spec.push_trigger(when, action);
        self
    }

    /// Limits the time that the caller waits for the session's sinks while it runs.
    pub(crate) const fn sink_timeout(mut self, timeout: Duration) -> Self {
        self.sink_timeout = Some(timeout);
        self
    }

    /// Sets the initial number of rings of the default channel, unless its description sets it.
    pub(crate) const fn rings_at_first(mut self, rings: usize) -> Self {
        self.rings_at_first = Some(rings);
        self
    }

    /// Sets the name of the process's traces in a directory with several.
    pub(crate) fn trace_name(mut self, name: String) -> Self {
        self.trace_name = Some(name);
        self
    }

    /// Starts recording. When it returns, the events are enabled, and the [state dumps](crate::state_dump) have completed or exceeded
    /// 500 ms.
    ///
    /// # Errors
    ///
    /// If the name, a rule, a channel, a sink or the budget is invalid; if a rule matches no event, or the rules exclude all; if a sink
    /// cannot start; if there is no directory or no space for the rings; if other sessions use another clock. No event is enabled then.
    pub fn start(mut self) -> Result<Session, SessionError> {
        own_thread::follow_environment();
        let (spec, on_panic) = (self.spec(), self.on_panic.take());
        check_name(&self.name)?;
        if let Some(error) = spec.first_bad_rule() {
            return Err(error.into());
        }
        spec.check_triggers_in_code().and_then(|()| spec.check_in_process()).map_err(SessionError::Spec)?;
        self.check_place_of_triggers(&spec)?;
        clock::choose(self.clock)?;
        let mut notices = Vec::new();
        let all = all_events(catalog::markers(), &mut notices);
        let mut matcher = Matcher::default();
        let result = matcher.run(&spec, ProcessKey::of_this_process(), &this_process().executable, &all);
        // Renaming is reported only for events that are recorded.
        notices.retain(|notice| {
            let Notice::Renamed { recorded, .. } = notice else { return true };
            result.events.iter().any(|event| event.name == *recorded)
        });
        check_matched(&spec, &result, &all, &mut notices)?;
        notices.extend(result.notices);
        // If there are state dumps, their two enclosing events are recorded as well.
        let of_dumps = if state::registered(0).is_empty() { 0 } else { state::EVENTS };
        let most = all.len() + of_dumps + catalog::later_events();
        self.name = in_code::free_name(self.name, &self.place, &mut notices);
        check_name(&self.name)?;
        let name = self.name.clone();
        let mut recording = self.record(&result.events, most, notices)?;
        let mut statistics = RunningStatistics::default();
        compute(&mut statistics, &recording, &spec, result.statistics)?;
        if let Some(dir) = recording.ring_dir().filter(|_| spec.triggers().next().is_some()) {
            let process = dir.file_name().unwrap_or_default().to_string_lossy();
            let text = spec.triggers_to_toml(&format!("{name}/{process}")).map_err(SessionError::Spec)?;
            let written = PrivateDir::open(dir).and_then(|dir| {
                dir.put_authored(TRIGGERS_FILE, text.as_bytes())
                    .map_err(|error| dir.failed("write", TRIGGERS_FILE, error))
            });
            written.map_err(|error| SessionError::Rings(error.into()))?;
        }
        in_code::publish(&recording, &spec);
        if let Some((handle, dir)) = recording.handle().zip(on_panic) {
            panic_hook::register(&handle, dir)?;
        }
        recording.dump_state(Round::All);
        let mut triggers = InProcessTriggers::default();
        follow_triggers(&mut triggers, &spec, &recording, &statistics, &all)?;
        Session::new(recording, spec, matcher, triggers, statistics)
    }

    /// Checks that its triggers, if there are any, can be written next to its rings.
    fn check_place_of_triggers(&self, spec: &SessionSpec) -> Result<(), SessionError> {
        if spec.triggers().next().is_some() && !self.place.is_in_run_dir() {
            let reason = "a session with triggers must have its rings in the run directory: leave `.dir(path)` and `.in_memory()` out";
            return Err(SessionError::Spec(SpecError::Invalid { reason: reason.to_owned() }));
        }
        Ok(())
    }

    /// Starts recording `events`. Each channel will record at most `most` different events.
    pub(crate) fn record(
        self,
        events: &[PlannedEvent],
        most: usize,
        notices: Vec<Notice>,
    ) -> Result<Recording, SessionError> {
        let needed = self.spec.all_channels().count();
        let room = OpenChannel::room();
        if room < needed {
            return Err(SessionError::NoChannelLeft { open: MAX_OPEN - room, needed, most: MAX_OPEN });
        }
        let most = self.spec.limits.max_events.unwrap_or(most);
        let Self { name, spec, mut sinks, place, clock, sink_timeout, rings_at_first, trace_name, .. } = self;
        let failed = |error: CtfError| SessionError::Sink { reason: error.to_string() };
        sinks.iter_mut().filter_map(SinkSource::description_mut).try_for_each(prepare).map_err(failed)?;
        let plan = Plan { name, spec, sinks, place, clock, sink_timeout, rings_at_first, trace_name, events, most };
        Recording::start(plan, notices)
    }
}

/// Watches the conditions of its triggers that this process detects itself.
pub(super) fn follow_triggers(
    triggers: &mut InProcessTriggers,
    spec: &SessionSpec,
    recording: &Recording,
    statistics: &RunningStatistics,
    events: &[PlannedEvent],
) -> Result<(), SessionError> {
    let wanted: Vec<_> = spec.triggers().flatten().collect();
    // RUN_DIR/sessions/NAME/rings/PROCESS
    let Some(run_dir) = recording.ring_dir().and_then(|rings| rings.ancestors().nth(4)) else { return Ok(()) };
    let run_dir = std::path::absolute(run_dir).unwrap_or_else(|_| run_dir.to_owned());
    let key = ProcessKey::of_this_process();
    let owner = Owner { run_dir, session: recording.name().to_owned(), process: Some(key) };
    let program = Program { key, executable: &this_process().executable, events };
    for (id, armed) in triggers.follow(&owner, &wanted, program, &recording.channels(), &statistics.live()) {
        if let Err(reason) = armed {
            return Err(SessionError::Spec(SpecError::Invalid { reason: format!("trigger `{id}`: {reason}") }));
        }
    }
    Ok(())
}

/// Fails if a rule is invalid, if an including rule matches no event, or if the rules exclude all.
fn check_matched(
    spec: &SessionSpec,
    matched: &Matched,
    all: &[PlannedEvent],
    notices: &mut Vec<Notice>,
) -> Result<(), SessionError> {
    if all.is_empty() {
        return Err(SessionError::NoEvents);
    }
    for (rule, applies) in spec.rules().zip(&matched.rules) {
        match (rule, applies) {
            (Err(error), _) | (_, Some(Err(error))) => return Err(error.clone().into()),
            (Ok(rule), Some(Ok(0))) if rule.excludes() => {
                notices.push(Notice::UselessExclusion { rule: rule.event.clone() });
            }
            (Ok(rule), Some(Ok(0))) => return Err(no_match(rule, all)),
            _ => {}
        }
    }
    let mut including = spec.rules().flatten().filter(|rule| !rule.excludes()).peekable();
    if including.peek().is_none() {
        notices.push(Notice::NoRule);
    } else if matched.events.is_empty() && matched.statistics.is_empty() {
        let excluding: Vec<_> =
            spec.rules().flatten().filter(|rule| rule.excludes()).map(|rule| format!("`{}`", rule.event)).collect();
        if !excluding.is_empty() {
            let reason = format!("{} exclude all events that the other rules match", excluding.join(" and "));
            return Err(SessionError::NothingLeft { reason });
        }
    }
    Ok(())
}

/// Returns the event of the rule's latency that the program does not have.
fn missing_end(rule: &Rule, all: &[PlannedEvent]) -> Option<String> {
    let Some(Ok(RuleStatistic::Compute(spec))) = rule.statistic.as_ref().map(|text| text.parse()) else { return None };
    let Measure::Latency { begin, end, .. } = spec.measure() else { return None };
    [begin, end].into_iter().find(|name| !all.iter().any(|event| event.declared() == **name)).cloned()
}

/// Explains why `rule`, which includes events, matches none.
pub(super) fn no_match(rule: &Rule, all: &[PlannedEvent]) -> SessionError {
    let mut any_level = rule.clone();
    (any_level.level, any_level.filter, any_level.limit) = (None, None, None);
    let pattern = tracepoint_session_spec::NameRule::parse(&any_level.event).ok();
    if let Some(event) = missing_end(rule, all) {
        let nearest = nearest_names(&event, all.iter().map(|event| event.name.as_str()));
        return SessionError::NoMatch { rule: event, nearest };
    }
    let levels: Vec<_> = all
        .iter()
        .filter(|event| pattern.as_ref().is_some_and(|pattern| pattern.matches(&event.declared())))
        .map(PlannedEvent::level)
        .collect();
    if let (Some(level), Some(most_important)) = (&rule.level, levels.iter().min()) {
        let reason = format!(
            "the levels of all {} events that `{}` matches are outside `{level}`; the most important of them is {most_important}",
            levels.len(),
            rule.event
        );
        return SessionError::NothingLeft { reason };
    }
    let names: Vec<_> = all.iter().map(PlannedEvent::declared).collect();
    let nearest = nearest_names(&rule.event, names.iter().map(String::as_str));
    SessionError::NoMatch { rule: rule.event.clone(), nearest }
}
