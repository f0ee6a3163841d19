//! The state shared by a session and the thread of its triggers, and the body of the thread.

use super::TriggerOwner;
use super::event_watch::EventWatch;
use super::ring_watch::RingWatch;
use super::signals::SignalWatch;
use super::statistic_watch::{self, StatisticWatch};
use super::words::Word;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use tracepoint_session_io::trigger::{Detail, FireRequest, Occurrence, trigger_report};
use tracepoint_session_spec::{TriggerCondition, TriggerSpec};

/// The name of the thread, as shown by `top -H`.
pub(super) const THREAD: &str = "tracepoint-trigger";
/// Minimum time that the thread rests after it has acted.
const REST: Duration = Duration::from_millis(1);
/// Time that it sleeps if nothing has to be checked.
const LONG: Duration = Duration::from_secs(3600);
/// The state shared by the thread and its session.
#[derive(Debug)]
pub(super) struct SharedTriggers {
    owner: TriggerOwner,
    pub(super) word: Word,
    is_stopped: AtomicBool,
    /// True while the thread is in a round.
    is_acting: AtomicBool,
    sources: Mutex<Vec<(TriggerSpec, Arc<Source>)>>,
    /// Occurrences that threads have reported, and the threads that wait for the actions.
    queue: Mutex<VecDeque<ReportedOccurrence>>,
}

/// An occurrence that a thread has reported for a trigger. The sender is dropped when the actions are done.
#[derive(Debug)]
struct ReportedOccurrence {
    occurrence: Occurrence,
    trigger: String,
    waiting: Sender<()>,
}

/// The source of a condition.
#[derive(Debug)]
pub(super) enum Source {
    Event(EventWatch),
    Signal(SignalWatch),
    Rings(RingWatch),
    Statistic(StatisticWatch),
    /// Reported by threads: a panic, the end of the process.
    Reported,
}

impl SharedTriggers {
    pub(super) fn new(owner: TriggerOwner, word: Word) -> Self {
        Self {
            owner,
            word,
            is_stopped: AtomicBool::new(false),
            is_acting: AtomicBool::new(false),
            sources: Mutex::default(),
            queue: Mutex::default(),
        }
    }

    pub(super) fn add(&self, spec: TriggerSpec, source: Arc<Source>) {
        lock(&self.sources).push((spec, source));
        self.word.wake();
    }

    pub(super) fn retain(&self, is_kept: impl Fn(&TriggerSpec) -> bool) {
        lock(&self.sources).retain(|(spec, _)| is_kept(spec));
    }

    /// Ends the thread, after a last round.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.word.wake();
    }

    /// The body of the thread.
    pub(super) fn run(&self) {
        loop {
            self.word.announce();
            // Read after the announcement: either this sees the value that `stop` stores before it wakes, or the wake ends the sleep below.
            let is_last = self.is_stopped.load(Ordering::Relaxed);
            let began = Instant::now();
            // After a panic in an action, the next round does the rest.
            self.is_acting.store(true, Ordering::Relaxed);
            let acted = catch_unwind(AssertUnwindSafe(|| self.round())).unwrap_or(true);
            self.is_acting.store(false, Ordering::Relaxed);
            if is_last {
                return;
            }
            if acted {
                self.word.awake();
                thread::sleep(REST.max(began.elapsed()));
            } else {
                let interval = |(_, source): &(TriggerSpec, Arc<Source>)| source.interval();
                let pause = lock(&self.sources).iter().filter_map(interval).min();
                self.word.sleep(pause.unwrap_or(LONG));
            }
        }
    }

    /// Acts on conditions that have occurred; returns whether there were any.
    fn round(&self) -> bool {
        let sources = lock(&self.sources).clone();
        let mut any = false;
        for (spec, source) in sources {
            for occurrence in source.take(&spec) {
                any = true;
                self.act(spec.id.clone(), occurrence);
            }
        }
        // The lock is not held while it acts.
        while let Some(ReportedOccurrence { occurrence, trigger, waiting }) = self.next_reported() {
            any = true;
            self.act(trigger, occurrence);
            drop(waiting);
        }
        any
    }

    fn next_reported(&self) -> Option<ReportedOccurrence> {
        lock(&self.queue).pop_front()
    }

    /// Performs the actions. Failures are stored in the state of the trigger; the trigger of a removed session has no state.
    fn act(&self, trigger: String, mut occurrence: Occurrence) {
        let TriggerOwner { run_dir, session, process } = &self.owner;
        occurrence.add("trigger_session", Detail::Text(session.clone()));
        let mut request = FireRequest::new(session.clone(), trigger, occurrence);
        request.process = *process;
        let _ = trigger_report(run_dir, &request);
    }

    /// Queues an occurrence of `when` for each trigger with that condition; returns a receiver that is disconnected when all actions are
    /// done.
    pub(super) fn report(&self, when: &TriggerCondition, add: impl Fn(&mut Occurrence)) -> Option<Receiver<()>> {
        let (done, waiting) = channel();
        let mut any = false;
        for (spec, _) in lock(&self.sources).iter().filter(|(spec, _)| spec.when == *when) {
            any = true;
            let mut occurrence = Occurrence::new(when, process::id(), SystemTime::now());
            add(&mut occurrence);
            lock(&self.queue).push_back(ReportedOccurrence {
                occurrence,
                trigger: spec.id.clone(),
                waiting: done.clone(),
            });
        }
        self.word.wake();
        any.then_some(waiting)
    }

    /// Waits until the conditions that have occurred until now were acted on, for at most `timeout`.
    pub(super) fn flush(&self, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        self.word.wake();
        let is_pending = || lock(&self.sources).iter().any(|(_, source)| source.is_pending());
        // The thread stores that it acts before it takes an occurrence by a Release, which `is_pending` acquires (E1 in `capture`).
        while (is_pending() || self.is_acting.load(Ordering::Relaxed)) && Instant::now() < deadline {
            thread::sleep(REST);
        }
    }
}

impl Source {
    /// Returns the occurrences since the last call.
    fn take(&self, spec: &TriggerSpec) -> Vec<Occurrence> {
        match self {
            Self::Event(watch) => watch.take(&spec.when),
            Self::Signal(watch) => watch.take(&spec.when),
            Self::Rings(watch) => watch.look(&spec.when).into_iter().collect(),
            Self::Statistic(watch) => watch.look(&spec.when),
            Self::Reported => Vec::new(),
        }
    }

    /// Returns whether there is an occurrence that was not taken.
    fn is_pending(&self) -> bool {
        match self {
            Self::Event(watch) => watch.is_pending(),
            Self::Signal(watch) => watch.is_pending(),
            Self::Rings(_) | Self::Statistic(_) | Self::Reported => false,
        }
    }

    /// Returns the interval at which it has to be checked.
    const fn interval(&self) -> Option<Duration> {
        match self {
            Self::Rings(watch) => Some(watch.interval()),
            Self::Statistic(_) => Some(statistic_watch::INTERVAL),
            _ => None,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
