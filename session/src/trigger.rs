//! The conditions that a traced process notices by itself, and the thread that has the actions done.
//!
//! ```text
//!   event that matches ──▶ slot, with its fields ─┐
//!   signal handler ──▶ counter of the signal ─────┼─ futex ─▶ thread `tracepoint-trigger`, one a session ──▶ trigger_report
//!   panic hook, end of the process ──▶ queue ─────┘                 ▲                                   listener, or this thread
//!                       rings, statistics: looked at by the thread ─┘
//! ```
//!
//! A session has the thread only while it has such triggers. Nothing at a site locks, allocates or waits: an event that matches writes into
//! preallocated [slots](capture), a signal handler adds to a counter. Either then makes one system call, the futex wake that drains have as
//! well, and only if the thread sleeps. A thread that has acted rests for as long as that took, and for a millisecond at least, so that a
//! condition that occurs all the time takes half a processor at most, and wakes the thread 1000 times a second at most. Occurrences for which
//! there is no slot meanwhile are counted, and the next one has their number (`Occurrence::skipped`).
//!
//! **Orderings.** The thread announces its sleep before it looks at slots, counters and queue; who has something for it stores that before it
//! looks at the word (W1, W2 in `docs/ordering.md`). So either the thread finds it, or it is woken. The slots have an ordering of their own.
//!
//! **The end.** A session that ends, and a trigger that is removed, first switches its events off, then has the thread act on what has
//! occurred, while the rings exist; it waits for that no longer than [`END_TIMEOUT`]. A panicking thread waits until the actions are done,
//! since the process may end then. In a forked child nothing of this exists.

mod capture;
mod event_watch;
mod panics;
mod ring_watch;
mod shared;
mod signals;
mod statistic_watch;
mod words;

use crate::event::PlannedEvent;
use crate::statistics::LiveStatistic;
use event_watch::EventWatch;
use ring_watch::RingWatch;
use shared::{Shared, Source, THREAD};
use signals::SignalWatch;
use statistic_watch::StatisticWatch;
use std::path::PathBuf;
use std::process;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};
use tracepoint_core::channel::OpenChannel;
use tracepoint_reader::process::ProcessKey;
use tracepoint_session_spec::{Threshold, TriggerSpec, When};
use tracepoint_sinks::own_thread;
use words::Word;

/// How long the end of a session, or of a trigger, waits for actions.
const END_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a panicking thread waits for actions.
const LAST_TIMEOUT: Duration = Duration::from_secs(2);

/// Whose triggers they are.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    /// The run directory.
    pub(crate) run_dir: PathBuf,
    pub(crate) session: String,
    /// This process, if the session is one in code.
    pub(crate) process: Option<ProcessKey>,
}

/// What a session in this process gives its triggers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program<'a> {
    pub(crate) key: ProcessKey,
    pub(crate) executable: &'a str,
    pub(crate) events: &'a [PlannedEvent],
}

/// The triggers of a session that this process watches for. Dropping it ends that.
#[derive(Debug, Default)]
pub(crate) struct InProcessTriggers {
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    /// The process that started the thread.
    process: u32,
    shared: Arc<Shared>,
    armed: Vec<Armed>,
    ended: Receiver<()>,
}

/// A trigger that is watched for.
#[derive(Debug)]
struct Armed {
    spec: TriggerSpec,
    source: Arc<Source>,
    /// The events that it matches, in the order in which it knows them.
    events: usize,
}

impl InProcessTriggers {
    /// Stops watching for triggers that are not among `wanted`, after the actions for what has occurred.
    pub(crate) fn retain(&mut self, wanted: &[&TriggerSpec]) {
        let Some(running) = self.running.as_mut().filter(|running| running.is_ours()) else { return };
        if wanted.is_empty() {
            return self.end(END_TIMEOUT);
        }
        let (kept, gone): (Vec<_>, _) =
            std::mem::take(&mut running.armed).into_iter().partition(|armed| wanted.contains(&&armed.spec));
        running.armed = kept;
        if !gone.is_empty() {
            gone.iter().for_each(Armed::switch_off);
            running.shared.flush(END_TIMEOUT);
            let is_kept = |spec: &TriggerSpec| running.armed.iter().any(|armed| armed.spec == *spec);
            running.shared.retain(is_kept);
        }
    }

    /// Watches for exactly those of `wanted` that are noticed in processes. Returns for each of these its id, and how many events or statistics it watches,
    /// or why it cannot be watched for; for conditions that are no events `None`.
    pub(crate) fn follow(
        &mut self,
        owner: &Owner,
        wanted: &[&TriggerSpec],
        program: Program<'_>,
        channels: &[Weak<OpenChannel>],
        statistics: &[LiveStatistic],
    ) -> Vec<(String, Result<Option<usize>, String>)> {
        let wanted: Vec<_> = wanted.iter().filter(|spec| spec.when.is_noticed_in_process()).copied().collect();
        self.retain(&wanted);
        if wanted.is_empty() || self.running.as_ref().is_some_and(|running| !running.is_ours()) {
            return Vec::new();
        }
        if self.running.is_none() {
            match Running::start(owner) {
                Ok(running) => self.running = Some(running),
                Err(error) => return wanted.iter().map(|spec| (spec.id.clone(), Err(error.clone()))).collect(),
            }
        }
        let Some(running) = &mut self.running else { return Vec::new() };
        wanted.iter().map(|spec| (spec.id.clone(), running.arm(spec, program, channels, statistics))).collect()
    }

    /// The process ends: the actions of the triggers with that condition, and those for what has occurred before, begin.
    pub(crate) fn begin_exit(&self) {
        if let Some(running) = self.running.as_ref().filter(|running| running.is_ours()) {
            running.shared.report(&When::Exit, |_| ());
            running.stop();
        }
    }

    /// Waits for these actions.
    pub(crate) fn end_until(&mut self, deadline: Instant) {
        self.end(deadline.saturating_duration_since(Instant::now()));
    }

    /// Stops watching, after the actions for what has occurred.
    fn end(&mut self, timeout: Duration) {
        let Some(running) = self.running.take() else { return };
        if !running.is_ours() {
            // The thread is the parent's, and so is what it uses.
            return std::mem::forget(running);
        }
        running.stop();
        // On a timeout the thread ends by itself, after its actions.
        let _ = running.ended.recv_timeout(timeout);
    }
}

impl Drop for InProcessTriggers {
    fn drop(&mut self) {
        self.end(END_TIMEOUT);
    }
}

impl Running {
    fn start(owner: &Owner) -> Result<Self, String> {
        let word = Word::take().ok_or("too many sessions of this process have triggers")?;
        let shared = Arc::new(Shared::new(owner.clone(), word));
        let (end, ended) = channel();
        let same = Arc::clone(&shared);
        let body = move || {
            own_thread::begin();
            same.run();
            same.word.give_back();
            let _ = end.send(());
        };
        let started = thread::Builder::new().name(THREAD.to_owned()).spawn(body);
        started.map_err(|error| {
            word.give_back();
            format!("no thread can be started for its triggers: {error}")
        })?;
        Ok(Self { process: process::id(), shared, armed: Vec::new(), ended })
    }

    fn is_ours(&self) -> bool {
        self.process == process::id()
    }

    /// No condition occurs any more, and the thread ends when it has acted on what has occurred.
    fn stop(&self) {
        self.armed.iter().for_each(Armed::switch_off);
        self.shared.stop();
    }

    /// Watches for a trigger. One that is watched for goes on, unless the events of the program have changed.
    fn arm(
        &mut self,
        spec: &TriggerSpec,
        program: Program<'_>,
        channels: &[Weak<OpenChannel>],
        statistics: &[LiveStatistic],
    ) -> Result<Option<usize>, String> {
        let known = self.armed.iter().position(|armed| armed.spec == *spec);
        if let Some(known) = known {
            let armed = &self.armed[known];
            match &*armed.source {
                Source::Event(watch) if armed.events == program.events.len() => return Ok(Some(watch.len())),
                Source::Event(_) => {
                    self.armed.remove(known).switch_off();
                    self.shared.flush(END_TIMEOUT);
                    self.shared.retain(|other| other != spec);
                }
                Source::Rings(watch) => {
                    watch.follow(channels);
                    return Ok(None);
                }
                Source::Statistic(watch) => return Ok(Some(watch.follow(statistics))),
                _ => return Ok(None),
            }
        }
        let mut events = None;
        let source = match &spec.when {
            When::Event(rule) => {
                let watch = EventWatch::start(rule, program, self.shared.word)?;
                events = Some(watch.len());
                Source::Event(watch)
            }
            When::Signal(name) => Source::Signal(SignalWatch::start(name)?),
            When::RingFull(_) | When::Lost => Source::Rings(RingWatch::new(&spec.when, channels)),
            When::Statistic(text) => {
                let watch = StatisticWatch::new(text.parse::<Threshold>()?, &[]);
                events = Some(watch.follow(statistics));
                Source::Statistic(watch)
            }
            When::Panic => {
                panics::watch(&self.shared);
                Source::Reported
            }
            _ => Source::Reported,
        };
        let source = Arc::new(source);
        self.armed.push(Armed { spec: spec.clone(), source: Arc::clone(&source), events: program.events.len() });
        self.shared.add(spec.clone(), source);
        Ok(events)
    }
}

impl Armed {
    /// The condition occurs no more.
    fn switch_off(&self) {
        match &*self.source {
            Source::Event(watch) => watch.switch_off(),
            Source::Signal(watch) => watch.switch_off(),
            Source::Rings(_) | Source::Statistic(_) | Source::Reported => {}
        }
    }
}
