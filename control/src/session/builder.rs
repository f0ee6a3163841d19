//! Builds the description of a session in code, and starts it.

use super::recording::{Plan, Recording};
use super::rings::RingPlace;
use super::sink_source::SinkSource;
use super::{Session, SessionError};
use crate::catalog;
use crate::clock;
use crate::event::{PlannedEvent, all_events};
use crate::nearest::nearest_names;
use crate::notice::Notice;
use crate::process::{ProcessKey, this_process};
use crate::rule_match::{Matched, Matcher};
use crate::spec::{BudgetSpec, ChannelSpec, Rule, SessionSpec};
use crate::state::{self, Round};
use std::path::PathBuf;
use std::time::Duration;
use tracepoint_core::channel::Channel;
use tracepoint_core::clock::Clock;

/// Builds a [`SessionSpec`] in code, with what each process decides for itself (the place of the rings, the clock, sinks that are objects), and
/// [starts](Self::start) the session.
#[derive(Debug)]
#[must_use = "a session does nothing until it is started"]
pub struct SessionBuilder {
    name: String,
    /// Its sinks are in `sinks`.
    spec: SessionSpec,
    sinks: Vec<SinkSource>,
    /// Whether the default channel was given.
    has_channel: bool,
    place: RingPlace,
    clock: Option<Clock>,
    /// How long the caller waits for sinks once the session runs; `None`: as long as it takes.
    sink_timeout: Option<Duration>,
    /// How many rings the default channel begins with, unless its description says so.
    rings_at_first: Option<usize>,
    trace_name: Option<String>,
}

impl SessionBuilder {
    pub(super) fn new(name: String) -> Self {
        Self::from_spec(name, SessionSpec::new())
    }

    /// The session that `spec` describes, as it is in `session.toml`; what was described can be added to. Its state, tag and owner are not
    /// looked at: [`start`](Self::start) starts it.
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
        }
    }

    /// The description so far. Sinks that are objects stand in it by their names.
    pub fn spec(&self) -> SessionSpec {
        SessionSpec { sinks: self.sinks.iter().map(SinkSource::spec).collect(), ..self.spec.clone() }
    }

    /// Records the events that the rule matches, too: a pattern for `provider:name`, or a [`Rule`] with conditions of its own. A pattern
    /// that begins with `!` excludes events, whatever the other rules say. A session without a rule records nothing.
    ///
    /// A rule that cannot be parsed, or that matches nothing, is an error of [`start`](Self::start).
    ///
    /// ```no_run
    /// use tracepoint_control::{Channel, Rule, Session, sinks::CtfSink};
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

    /// A channel: the rings that events go into, with a policy, sizes and contexts. The first call describes the default channel, into which
    /// the events of rules go that [name none](Rule::channel); each further call adds a channel, or replaces the one of the same
    /// [name](Channel::name).
    ///
    /// Each channel has rings of its own from the start, and is a stream class of its own in the trace. Sinks, drain thread, memory cap and
    /// the place of the rings are the session's. Sinks get the events of a flight recorder ([`Channel::overwrite`]) when the session ends.
    /// A session has at most 16 channels, and a process 32 of all its sessions.
    #[expect(clippy::needless_pass_by_value, reason = "a channel is described where it is given")]
    pub fn channel(mut self, channel: Channel) -> Self {
        let channel = ChannelSpec::from(&channel);
        if std::mem::replace(&mut self.has_channel, true) {
            self.spec.set_channel(channel);
        } else {
            self.spec.channel = channel;
        }
        self
    }

    /// One more place to which the events go: an object, or a [`SinkSpec`]. Without a sink the newest events stay in the rings, and all
    /// channels have to be flight recorders.
    pub fn sink(mut self, sink: impl Into<SinkSource>) -> Self {
        self.sinks.push(sink.into());
        self
    }

    /// What the session may cost this process; where it costs more, the hottest event is switched off.
    pub fn budget(mut self, budget: BudgetSpec) -> Self {
        self.spec.budget = Some(budget);
        self
    }

    /// The rings are files below `path`, in `rings/PID-START/`, instead of in the run directory ([`RunDir`](crate::RunDir)), in
    /// `sessions/NAME/rings/PID-START/`. The directory is made, parents included, for this user only, if it does not exist. Of this and
    /// [`SessionBuilder::in_memory`] the last call counts.
    pub fn dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.place.set_dir(path.into());
        self
    }

    /// The rings are in anonymous memory of the process: they are lost when it is killed. Nothing is written to a directory then.
    pub fn in_memory(mut self) -> Self {
        self.place.in_memory = true;
        self
    }

    /// Whether the files of the rings may be on a disk, where a store can stall for tens of milliseconds while the kernel
    /// writes the page: no, unless it is allowed here.
    pub fn allow_disk_rings(mut self, allow: bool) -> Self {
        self.place.allow_disk = allow;
        self
    }

    /// How many bytes the rings of the session may take, in files, in all living processes together: 1 GiB by default.
    /// A ring beyond the cap is not made; threads that find none lose their events, which is counted as `no_ring`.
    pub fn memory_cap(mut self, bytes: u64) -> Self {
        self.spec.limits.memory_cap = bytes;
        self
    }

    /// For how many different events each channel has counters: as many as the program has, unless it is said here. They take 128 bytes for
    /// each event in each ring; a session that has fewer cannot [enable](Session::enable) events beyond them.
    pub fn max_events(mut self, events: usize) -> Self {
        self.spec.limits.max_events = Some(events);
        self
    }

    /// Whether the program survives that a file of its rings is cut off (`truncate`, `> FILE`) while the session runs: no by default, as
    /// with any mapped file; the next access to the ring then ends the program by SIGBUS.
    ///
    /// With `true`, a handler of SIGBUS is installed when the session starts. It replaces the lost pages by empty memory and counts them
    /// ([`Summary::cut_off_pages`](super::Summary::cut_off_pages)); the ring is given up with all that it held and counted, its
    /// thread gets another one at the drain's next round, within 200 ms, and the account says that it is not complete. Signals of
    /// other origin go to the handler that was installed before. A thread that blocks SIGBUS ends the program all the same; a sink through
    /// which the kernel writes lost memory fails, which `stop` reports. The handler stays installed; a handler that is installed later
    /// should pass signals on to it. Costs nothing at an event. At most 4096 rings of a process are guarded; more are not made.
    pub fn survive_cut_off_rings(mut self, survive: bool) -> Self {
        self.place.survive_cut_off = survive;
        self
    }

    /// Of how many processes of this session that died the rings are kept, for `tracectl recover`: of the newest 8 by default.
    /// Older ones are removed when the session starts.
    pub fn keep_dead(mut self, processes: usize) -> Self {
        self.spec.limits.keep_dead = processes;
        self
    }

    /// How many bytes the kept rings of processes that died may take, those of the newest first: 1 GiB by default. Of this and
    /// [`SessionBuilder::keep_dead`] the stricter bound counts.
    pub fn keep_dead_bytes(mut self, bytes: u64) -> Self {
        self.spec.limits.keep_dead_bytes = bytes;
        self
    }

    /// The clock of the events. There is one for the process: by default it is the one that another session or
    /// [`tracepoint_core::clock::select`] chose, else [`Clock::Monotonic`].
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// The caller does not wait longer than that for the session's sinks once it runs.
    pub(crate) const fn sink_timeout(mut self, timeout: Duration) -> Self {
        self.sink_timeout = Some(timeout);
        self
    }

    /// How many rings the default channel begins with, unless its description says so.
    pub(crate) const fn rings_at_first(mut self, rings: usize) -> Self {
        self.rings_at_first = Some(rings);
        self
    }

    /// What the process's traces are called, in a directory of many.
    pub(crate) fn trace_name(mut self, name: String) -> Self {
        self.trace_name = Some(name);
        self
    }

    /// Starts recording: when it returns, the events are on, and the program has told its [state](crate::state_dump), unless that takes
    /// longer than 500 ms.
    ///
    /// # Errors
    ///
    /// If the name, a rule, a channel, a sink or the budget cannot be used; if a rule matches no event, or the rules exclude all; if a sink
    /// cannot begin; if there is no place or no room for the rings; if other sessions use another clock. Nothing is switched on then.
    pub fn start(self) -> Result<Session, SessionError> {
        let spec = self.spec();
        check_name(&self.name)?;
        if let Some(error) = spec.first_bad_rule() {
            return Err(error.into());
        }
        spec.check_in_process().map_err(SessionError::Spec)?;
        clock::choose(self.clock)?;
        let mut notices = Vec::new();
        let all = all_events(catalog::markers(), &mut notices);
        let mut matcher = Matcher::default();
        let chosen = matcher.run(&spec, ProcessKey::of_this_process(), &this_process().executable, &all);
        // Of events that are not recorded it does not matter what they would be called.
        notices.retain(|notice| {
            let Notice::Renamed { recorded, .. } = notice else { return true };
            chosen.events.iter().any(|event| event.name == *recorded)
        });
        check_matched(&spec, &chosen, &all, &mut notices)?;
        notices.extend(chosen.notices);
        // The events around state dumps are recorded beside them, where there are any.
        let most = all.len() + if state::registered(0).is_empty() { 0 } else { state::EVENTS };
        let mut recording = self.record(&chosen.events, most, notices)?;
        recording.dump_state(Round::All);
        Session::new(recording, spec, matcher)
    }

    /// Starts recording these events. At most `most` different ones are ever recorded in each channel.
    pub(crate) fn record(
        self,
        events: &[PlannedEvent],
        most: usize,
        notices: Vec<Notice>,
    ) -> Result<Recording, SessionError> {
        let most = self.spec.limits.max_events.unwrap_or(most);
        let Self { name, spec, sinks, place, clock, sink_timeout, rings_at_first, trace_name, .. } = self;
        let plan = Plan { name, spec, sinks, place, clock, sink_timeout, rings_at_first, trace_name, events, most };
        Recording::start(plan, notices)
    }
}

/// Fails if a rule cannot be used, if a rule that includes events matches none, or if the rules exclude all.
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
    } else if matched.events.is_empty() {
        let excluding: Vec<_> =
            spec.rules().flatten().filter(|rule| rule.excludes()).map(|rule| format!("`{}`", rule.event)).collect();
        if !excluding.is_empty() {
            let reason = format!("{} exclude all that the others match", excluding.join(" and "));
            return Err(SessionError::NothingLeft { reason });
        }
    }
    Ok(())
}

/// Why this rule, which includes events, matches none.
pub(super) fn no_match(rule: &Rule, all: &[PlannedEvent]) -> SessionError {
    let any_level = Rule { level: None, filter: None, limit: None, ..rule.clone() };
    let pattern = crate::spec::NameRule::parse(&any_level.event).ok();
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

/// Fails if a session cannot be called so.
pub(crate) fn check_name(name: &str) -> Result<(), SessionError> {
    let reason = if name.is_empty() {
        "it is empty"
    } else if name.len() > 255 {
        "it is longer than 255 bytes"
    } else if name.contains('/') {
        "it has a `/` in it"
    } else if name.contains('\0') {
        "it has a NUL in it"
    } else if name.chars().any(char::is_control) {
        "it has a control character in it"
    } else if name.starts_with('.') {
        "it starts with a dot"
    } else {
        return Ok(());
    };
    Err(SessionError::Name { name: name.to_owned(), reason })
}
