//! The conditions that a traced process detects itself, and the thread that starts the actions.
//!
//! ```text
//!   event that matches ──▶ slot, with its fields ─┐
//!   signal handler ──▶ counter of the signal ─────┼─ futex ─▶ thread `tracepoint-trigger`, one a session ──▶ trigger_report
//!   panic hook, end of the process ──▶ queue ─────┘                 ▲                                   listener, or this thread
//!                       rings, statistics: read by the thread ──────┘
//! ```
//!
//! A session has this thread only while it has such triggers. Nothing at a site takes a lock, allocates or waits: a matching event writes
//! into preallocated [slots](capture), a signal handler increments a counter. Both then make one system call, the same futex wake as for
//! drains, and only if the thread sleeps. After acting, the thread rests for as long as the actions took, and for at least a millisecond,
//! so that a condition that occurs continuously uses at most half a processor, and wakes the thread at most 1000 times a second.
//! Occurrences without a free slot meanwhile are counted, and the next occurrence contains their number (`Occurrence::skipped`).
//!
//! **Orderings.** The thread announces its sleep before it reads slots, counters and queue; an event, handler or thread stores its data
//! before it reads the word (W1, W2 in `docs/ordering.md`). So either the thread finds the data, or it is woken. The slots have a separate
//! ordering.
//!
//! **The end.** When a session ends or a trigger is removed, its events are disabled first. Then the thread acts on the conditions that
//! have occurred, while the rings exist; the session waits for that no longer than [`END_TIMEOUT`]. A panicking thread waits until the
//! actions are done, because the process may end then. A forked child has none of this.

mod capture;
mod error;
mod event_watch;
mod owner;
mod panics;
mod ring_watch;
mod shared;
mod signals;
mod statistic_watch;
mod words;

use crate::event::Program;
use crate::process_bound::ProcessBound;
use crate::statistics::LiveStatistic;
pub(crate) use error::{WatchError, WatchResult};
use event_watch::EventWatch;
pub(crate) use owner::TriggerOwner;
use ring_watch::RingWatch;
use shared::{SharedTriggers, Source, THREAD};
use signals::SignalWatch;
use statistic_watch::StatisticWatch;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tracepoint_core::channel::OpenChannel;
use tracepoint_session_spec::{TriggerCondition, TriggerSpec};
use tracepoint_sinks::own_thread;
use words::Word;

/// Maximum time that the end of a session or a trigger waits for actions.
const END_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum time that a panicking thread waits for actions.
const LAST_TIMEOUT: Duration = Duration::from_secs(2);

/// The triggers of a session that this process watches. Dropping it stops watching.
#[derive(Debug, Default)]
pub(crate) struct InProcessTriggers {
    thread: Option<ProcessBound<TriggerThread>>,
}

/// The thread of a session with triggers.
#[derive(Debug)]
struct TriggerThread {
    shared: Arc<SharedTriggers>,
    armed: Vec<ArmedTrigger>,
    ended: Receiver<()>,
}

/// A watched trigger.
#[derive(Debug)]
struct ArmedTrigger {
    spec: TriggerSpec,
    source: Arc<Source>,
    /// Number of the events that it matches.
    events: usize,
}

impl InProcessTriggers {
    /// Stops watching triggers that are not among `wanted`, after the actions for conditions that have occurred.
    pub(crate) fn retain(&mut self, wanted: &[&TriggerSpec]) {
        let Some(thread) = self.thread.as_mut().and_then(ProcessBound::get_mut) else { return };
        if wanted.is_empty() {
            return self.end(END_TIMEOUT);
        }
        let (kept, gone): (Vec<_>, _) =
            std::mem::take(&mut thread.armed).into_iter().partition(|armed| wanted.contains(&&armed.spec));
        thread.armed = kept;
        if !gone.is_empty() {
            gone.iter().for_each(ArmedTrigger::switch_off);
            thread.shared.flush(END_TIMEOUT);
            let is_kept = |spec: &TriggerSpec| thread.armed.iter().any(|armed| armed.spec == *spec);
            thread.shared.retain(is_kept);
        }
    }

    /// Watches exactly those of `wanted` that processes detect themselves.
    pub(crate) fn follow(
        &mut self,
        owner: &TriggerOwner,
        wanted: &[&TriggerSpec],
        program: Program<'_>,
        channels: &[Weak<OpenChannel>],
        statistics: &[LiveStatistic],
    ) -> Vec<WatchResult> {
        let wanted: Vec<_> = wanted.iter().filter(|spec| spec.when.is_noticed_in_process()).copied().collect();
        self.retain(&wanted);
        if wanted.is_empty() {
            return Vec::new();
        }
        if self.thread.is_none() {
            match TriggerThread::start(owner) {
                Ok(thread) => self.thread = Some(ProcessBound::new(thread)),
                Err(error) => return wanted.iter().map(|spec| (spec.id.clone(), Err(error.clone()))).collect(),
            }
        }
        let Some(thread) = self.thread.as_mut().and_then(ProcessBound::get_mut) else { return Vec::new() };
        wanted.iter().map(|spec| (spec.id.clone(), thread.arm(spec, program, channels, statistics))).collect()
    }

    /// Starts, at the end of the process, the actions of triggers with that condition, and those for conditions that have occurred before.
    pub(crate) fn begin_exit(&self) {
        if let Some(thread) = self.thread.as_ref().and_then(ProcessBound::get) {
            thread.shared.report(&TriggerCondition::Exit, |_| ());
            thread.stop();
        }
    }

    /// Waits for these actions.
    pub(crate) fn end_until(&mut self, deadline: Instant) {
        self.end(deadline.saturating_duration_since(Instant::now()));
    }

    /// Stops watching, after the actions for conditions that have occurred.
    fn end(&mut self, timeout: Duration) {
        let Some(thread) = self.thread.take().as_mut().and_then(ProcessBound::take) else { return };
        thread.stop();
        // On a timeout the thread ends by itself, after its actions.
        let _ = thread.ended.recv_timeout(timeout);
    }
}

impl Drop for InProcessTriggers {
    fn drop(&mut self) {
        self.end(END_TIMEOUT);
    }
}

impl TriggerThread {
    fn start(owner: &TriggerOwner) -> Result<Self, WatchError> {
        let many = || WatchError::new("too many sessions of this process have triggers");
        let word = Word::take().ok_or_else(many)?;
        let shared = Arc::new(SharedTriggers::new(owner.clone(), word));
        let (end, ended) = channel();
        let same = Arc::clone(&shared);
        let body = move || {
            same.run();
            same.word.give_back();
            let _ = end.send(());
        };
        own_thread::spawn(THREAD, body).map_err(|error| {
            word.give_back();
            WatchError::new(format_args!("no thread can be started for its triggers: {error}"))
        })?;
        Ok(Self { shared, armed: Vec::new(), ended })
    }

    /// Stops all conditions; the thread ends after acting on those that have occurred.
    fn stop(&self) {
        self.armed.iter().for_each(ArmedTrigger::switch_off);
        self.shared.stop();
    }

    /// Arms a trigger. A trigger that is already armed stays armed, unless the program's events have changed.
    fn arm(
        &mut self,
        spec: &TriggerSpec,
        program: Program<'_>,
        channels: &[Weak<OpenChannel>],
        statistics: &[LiveStatistic],
    ) -> Result<Option<usize>, WatchError> {
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
            TriggerCondition::Event(rule) => {
                let watch = EventWatch::start(rule, program, self.shared.word)?;
                events = Some(watch.len());
                Source::Event(watch)
            }
            TriggerCondition::Signal(name) => Source::Signal(SignalWatch::start(name)?),
            TriggerCondition::RingFull(_) | TriggerCondition::Lost => {
                Source::Rings(RingWatch::new(&spec.when, channels))
            }
            TriggerCondition::Statistic(threshold) => {
                let watch = StatisticWatch::new(threshold.clone(), &[]);
                events = Some(watch.follow(statistics));
                Source::Statistic(watch)
            }
            TriggerCondition::Panic => {
                panics::watch(&self.shared);
                Source::Reported
            }
            _ => Source::Reported,
        };
        let source = Arc::new(source);
        self.armed.push(ArmedTrigger { spec: spec.clone(), source: Arc::clone(&source), events: program.events.len() });
        self.shared.add(spec.clone(), source);
        Ok(events)
    }
}

impl ArmedTrigger {
    /// Stops watching the condition.
    fn switch_off(&self) {
        match &*self.source {
            Source::Event(watch) => watch.switch_off(),
            Source::Signal(watch) => watch.switch_off(),
            Source::Rings(_) | Source::Statistic(_) | Source::Reported => {}
        }
    }
}
