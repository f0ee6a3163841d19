//! The description of a session, and its start.

use super::asked::{self, AskedRule};
use super::channels::Channels;
use super::live::LiveEvents;
use super::plan::{PlannedEvent, plan};
use super::rings::Rings;
use super::unfinished::Unfinished;
use super::{Notice, Running, Session, SessionError, outputs};
use crate::clock;
use crate::drain_thread::DrainThread;
use crate::drain_thread::shared::SharedDrain;
use crate::gate::{Conditions, ConditionsByRule, set_gates};
use crate::limit::Limit;
use crate::process::this_process;
use crate::rule::{BadRule, LevelRule};
use crate::rundir::RunDir;
use crate::state::{self, Round, Runs};
use std::fmt;
use std::iter::once;
use std::path::PathBuf;
use std::process;
use std::sync::Arc;
use std::time::Duration;
use tracepoint_core::channel::Channel;
use tracepoint_core::clock::{Clock, select, selected};
use tracepoint_sinks::{ClockInfo, Drain, Sink, TraceInfo};
use uuid::Uuid;

/// The description of a session: what is not said is as [`SessionBuilder::start`] says.
pub struct SessionBuilder {
    name: String,
    rules: Vec<AskedRule>,
    level: Option<String>,
    conditions: ConditionsByRule,
    channel: Channel,
    /// Those beside it.
    further: Vec<Channel>,
    rings: Rings,
    clock: Option<Clock>,
    sinks: Vec<Box<dyn Sink>>,
    /// Whether the packets are taken from outside.
    outside: bool,
    /// How long whoever controls the session waits for its sinks; `None`: as long as it takes.
    patience: Option<Duration>,
}

impl fmt::Debug for SessionBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sinks: Vec<_> = self.sinks.iter().map(|sink| sink.name()).collect();
        f.debug_struct("SessionBuilder")
            .field("name", &self.name)
            .field("rules", &self.rules)
            .field("level", &self.level)
            .field("conditions", &self.conditions)
            .field("channel", &self.channel)
            .field("further", &self.further)
            .field("rings", &self.rings)
            .field("clock", &self.clock)
            .field("sinks", &sinks)
            .field("outside", &self.outside)
            .field("patience", &self.patience)
            .finish()
    }
}

impl SessionBuilder {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            rules: Vec::new(),
            level: None,
            conditions: ConditionsByRule::new(),
            channel: Channel::default(),
            further: Vec::new(),
            rings: Rings::default(),
            clock: None,
            sinks: Vec::new(),
            outside: false,
            patience: None,
        }
    }

    /// Records the events whose `provider:name` matches `rule`, too. In a rule `*` stands for any characters, `?` for one, and
    /// `[a-m]` for one of a set; a rule that begins with `!` leaves out what it matches, whatever the others say. Without a
    /// rule that takes events in, all are.
    #[must_use]
    pub fn events(mut self, rule: impl Into<String>) -> Self {
        self.rules.push(AskedRule { text: rule.into(), channel: None });
        self
    }

    /// The same for the channel called `channel`: what the rule matches goes into it. [`events`](Self::events) is for the default channel; a
    /// rule of it that begins with `!` leaves events out of all channels, and here out of this one alone.
    ///
    /// An event that rules for several channels take in is recorded in each of them, as their filters and limits have it, and counted in
    /// each. It costs what it costs in as many sessions: some 36 ns in two channels, where one takes 13, because the short way is for one.
    ///
    /// ```no_run
    /// use tracepoint_control::{Channel, Session, sinks::CtfSink};
    ///
    /// let session = Session::builder("shop")
    ///     .events("shop:*") // drained into the sink as they come
    ///     .channel_named("flight", Channel::overwrite(4 << 20))
    ///     .events_in("flight", "net:*") // the newest of each thread, at the end or after a crash
    ///     .sink(CtfSink::create("/tmp/shop")?)
    ///     .start()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn events_in(mut self, channel: impl Into<String>, rule: impl Into<String>) -> Self {
        self.rules.push(AskedRule { text: rule.into(), channel: Some(channel.into()) });
        self
    }

    /// Of the events that the rules choose, only those of certain levels: `<=info` for those at least as important as info,
    /// `==err`, `>=debug`. The last call counts.
    #[must_use]
    pub fn level(mut self, rule: impl Into<String>) -> Self {
        self.level = Some(rule.into());
        self
    }

    /// Of the events that the rule of the last [`events`](Self::events) takes in, only those whose fields are as `filter` says, such as
    /// `size > 4096 && comm == "postgres*"`; `docs/filters.md` describes the language. Called before any `events`, it is for every rule
    /// that has no filter of its own.
    ///
    /// An event that several rules take in is recorded if one of them wants it. One that lacks a field of the filter, or has it with a
    /// type that will not do, is not taken in by that rule; if that leaves no rule for it, a [notice](Session::notices) says so.
    #[must_use]
    pub fn filter(mut self, filter: impl Into<String>) -> Self {
        self.asked().filter = Some(filter.into());
        self
    }

    /// Of the events that the rule of the last [`events`](Self::events) takes in, and its filter accepts, no more than `limit`, all of them
    /// together; the others are counted as suppressed. Called before any `events`, it is for every rule that has no limit of its own,
    /// for each by itself.
    #[must_use]
    pub fn limit(mut self, limit: Limit) -> Self {
        self.asked().limit = Some(limit);
        self
    }

    /// What is asked of the last rule.
    fn asked(&mut self) -> &mut Conditions {
        self.conditions.entry(self.rules.len()).or_default()
    }

    /// The default channel, whose rings the events go into unless a rule names [another one](Self::channel_named).
    #[must_use]
    pub fn channel(mut self, channel: Channel) -> Self {
        self.channel = channel;
        self
    }

    /// One more channel, called `name`, for the rules that [name it](Self::events_in): with a policy, sizes and contexts of its own. It
    /// has rings of its own from the start, `spares` of them, and is a stream class of its own in the trace. Sinks, drain thread, memory cap
    /// and the place of the rings are the session's. A process has room for 32 channels of all its sessions.
    ///
    /// Where sinks take events as they come, they get those of a flight recorder ([`Channel::overwrite`]) when the session ends.
    #[must_use]
    pub fn channel_named(mut self, name: impl Into<String>, channel: Channel) -> Self {
        self.further.push(channel.name(name));
        self
    }

    /// The rings are files below `path`, in `rings/PID-START/`; unless told otherwise, they are in the run directory
    /// ([`RunDir`](crate::RunDir)), in `sessions/NAME/rings/PID-START/`. The directory is made, parents included, for this user
    /// only, if it is not there. Of this and [`SessionBuilder::in_memory`] the last call counts.
    #[must_use]
    pub fn dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.rings.at(path.into());
        self
    }

    /// The rings are in memory of the process alone, and gone when it is killed. Nothing is written to a directory then.
    #[must_use]
    pub fn in_memory(mut self) -> Self {
        self.rings.in_memory();
        self
    }

    /// Whether the files of the rings may be on a disk, where a store can stall for tens of milliseconds while the kernel
    /// writes the page: no, unless told otherwise.
    #[must_use]
    pub fn allow_disk_rings(mut self, allow: bool) -> Self {
        self.rings.allow_disk(allow);
        self
    }

    /// How many bytes the rings of the session may take, in files, in all living processes together: 1 GiB unless told otherwise.
    /// A ring that goes beyond is not made; threads that find none lose their events, which is counted as `no_ring`.
    #[must_use]
    pub fn memory_cap(mut self, bytes: u64) -> Self {
        self.rings.memory_cap(bytes);
        self
    }

    /// Whether the program goes on if somebody cuts off a file of its rings (`truncate`, `> FILE`) while the session runs: no, unless told
    /// otherwise, as with any file that is mapped; the next event or look at the ring then ends it by SIGBUS.
    ///
    /// With `true`, a handler of SIGBUS is installed when the session starts. It puts empty memory where the file's was and counts the
    /// pages ([`Summary::cut_off_pages`](super::Summary::cut_off_pages)); the ring is given up with all that it held and counted, its
    /// thread gets another one when the drain comes round, within 200 ms, and the account says that it is not complete. Signals of
    /// other origin go to the handler that was there before. A thread that blocks SIGBUS ends the program all the same; a sink that has
    /// the kernel write what is lost fails, which `stop` tells. The handler stays; whoever installs another one later should hand on to
    /// it. Costs nothing at an event. At most 4096 rings of a process are guarded; more are not made.
    #[must_use]
    pub fn survive_cut_off_rings(mut self, survive: bool) -> Self {
        self.rings.survive_cut_off(survive);
        self
    }

    /// Of how many processes of this session that died the rings are kept, for `tracectl recover`: of the newest 8 unless told
    /// otherwise. Older ones are removed when the session starts.
    #[must_use]
    pub fn keep_dead(mut self, processes: usize) -> Self {
        self.rings.keep_dead(processes);
        self
    }

    /// How many bytes the rings of processes that died may take, those of the newest: 1 GiB unless told otherwise. Of this and
    /// [`SessionBuilder::keep_dead`] what is less counts.
    #[must_use]
    pub fn keep_dead_bytes(mut self, bytes: u64) -> Self {
        self.rings.keep_dead_bytes(bytes);
        self
    }

    /// The clock of the events. There is one for the process: unless told otherwise, it is the one that another session or
    /// [`tracepoint_core::clock::select`] chose, and [`Clock::Monotonic`] if nobody did.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// One more place to which the events go.
    #[must_use]
    pub fn sink(self, sink: impl Sink + 'static) -> Self {
        self.boxed_sink(Box::new(sink))
    }

    pub(crate) fn boxed_sink(mut self, sink: Box<dyn Sink>) -> Self {
        self.sinks.push(sink);
        self
    }

    /// The packets stay in the rings, for a consumer in another process; the sinks get none.
    pub(crate) fn drained_from_outside(mut self) -> Self {
        self.outside = true;
        self
    }

    /// Whoever controls the session does not wait longer than that for its sinks, once it has begun.
    pub(crate) const fn patience(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    /// Starts recording: when it returns, the events are on, and the program has told its [state](crate::state_dump), unless that takes
    /// longer than 500 ms. Unless told otherwise, all events are recorded, through a [`Channel::default`].
    ///
    /// # Errors
    ///
    /// If the name, a rule, a filter, a limit or a channel's name or sizes will not do; if a rule names no channel of the session; if a
    /// rule matches nothing, or the rules leave nothing, or a filter fits none of its rule's events; if there is no sink, or one cannot
    /// begin; if there is no place or no room for the rings; if other sessions use another clock. Nothing is switched on then.
    pub fn start(self) -> Result<Session, SessionError> {
        check_name(&self.name)?;
        let names: Vec<&str> = once(&self.channel).chain(&self.further).map(Channel::channel_name).collect();
        let rules = asked::route(&self.rules, &names)?;
        let level = self.level.as_deref().map(|text| LevelRule::parse(text).map(|rule| (text, rule))).transpose();
        let level = level.map_err(|BadRule { text, reason }| SessionError::Level { rule: text, reason })?;
        let mut notices = Vec::new();
        let mut events = plan(&rules, level, 1 + self.further.len() as u32, &mut notices)?;
        clock::choose(self.clock)?;
        set_gates(&mut events, &rules, &self.conditions, &mut notices)?;
        // Those around state dumps stand beside them, where there are any.
        let most = most_in_one(&events) + if state::registered(0).is_empty() { 0 } else { state::EVENTS };
        let mut session = self.record(&events, most, notices)?;
        session.dump_state(Round::All);
        Ok(session)
    }

    /// Starts recording these events. At most `most` different ones are ever recorded in each channel: see [`Session::switch`].
    pub(crate) fn record(
        mut self,
        events: &[PlannedEvent],
        most: usize,
        mut notices: Vec<Notice>,
    ) -> Result<Session, SessionError> {
        if self.sinks.is_empty() {
            return Err(SessionError::NoSink);
        }
        clock::choose(self.clock)?;

        let uuid = Uuid::new_v4().into_bytes();
        let mut unfinished = Unfinished::new(self.rings.make_dir(&self.name)?);
        if let Some(dir) = unfinished.dir.as_ref().filter(|_| self.outside) {
            dir.admit_consumer()?;
        }
        let source = || self.rings.source(unfinished.dir.as_ref(), &self.name);
        unfinished.channels = Channels::open(self.channel, self.further, uuid, most, source)?;
        let channels = &unfinished.channels;
        // Now that channels are open nobody can change it; until then somebody may have.
        self.clock.map_or(Ok(()), select)?;
        let trace =
            TraceInfo { uuid, name: self.name.clone(), clock: clock_info(&mut notices), process: this_process() };
        let outputs = (!self.outside).then(|| outputs::list(&mut self.sinks, &mut notices));
        let mut drain = Drain::new(trace.clone(), channels.all().to_vec());
        if self.outside {
            drain = drain.leave_packets();
        }
        for sink in self.sinks {
            drain.add_sink(sink).map_err(SessionError::Start)?;
        }
        let drain = Arc::new(SharedDrain::new(drain));
        let mut live = LiveEvents::new(trace, outputs);
        live.describe(events, channels, &drain, unfinished.dir.as_deref())?;
        if let Some(patience) = self.patience {
            drain.wait_no_longer_than(patience);
        }
        let thread = DrainThread::start(Arc::clone(&drain)).map_err(SessionError::Thread)?;
        live.switch_all_on(channels)?;
        let ((dir, channels), cut_off, dumps) = (unfinished.started(), self.rings.cut_off(), Runs::default());
        let running = Running { live, thread, drain, channels, dir, outside: self.outside, cut_off, dumps };
        Ok(Session { name: self.name, process: process::id(), notices, running: Some(running) })
    }
}

/// How many events the channel has that has most.
fn most_in_one(events: &[PlannedEvent]) -> usize {
    events.chunk_by(|one, next| one.channel == next.channel).map(<[_]>::len).max().unwrap_or(0)
}

fn clock_info(notices: &mut Vec<Notice>) -> ClockInfo {
    if !selected().is_monotonic() {
        return ClockInfo::default();
    }
    let mut not_shared = |reason: String| notices.push(Notice::NoSharedClock { reason });
    match RunDir::find() {
        Ok(run_dir) => {
            let (info, shared) = clock::clock_info(&run_dir);
            if let Err(error) = shared {
                not_shared(format!("{} in {}", error, run_dir.path().display()));
            }
            info
        }
        Err(error) => {
            not_shared(error.to_string());
            clock::own_clock_info()
        }
    }
}

/// Whether a session may be called so.
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
