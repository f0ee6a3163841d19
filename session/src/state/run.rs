//! Runs state dumps for one session.

use super::dump::Dump;
use super::events::{state_begin, state_end};
use super::registry::RegisteredDump;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use tracepoint_core::channel::OpenChannel;
use tracepoint_run_dir::StateDumpStatus;
use tracepoint_sinks::own_thread;

/// Maximum total time that starting a session waits for its dumps.
const TIMEOUT: Duration = Duration::from_millis(500);

/// Number of dumps above which the status of unregistered ones is dropped.
const KEPT: usize = 64;

#[derive(Debug, Default)]
struct Counts {
    ran: AtomicU64,
    panicked: AtomicU64,
    late: AtomicU64,
    skipped: AtomicU64,
}

/// Selects the dumps of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// All registered dumps.
    All,
    /// Dumps registered since the last round.
    New,
}

/// The dumps of one session.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    /// Highest registration number seen so far.
    seen: u64,
    /// Number and name of each dump, and its counts; in order of registration, as are the dumps of a round.
    counts: Vec<(u64, String, Arc<Counts>)>,
    ended: Arc<AtomicBool>,
}

impl Runs {
    /// The dumps to run in a round.
    pub(crate) fn due(&self, round: Round) -> Vec<Arc<RegisteredDump>> {
        super::registered(if round == Round::New { self.seen } else { 0 })
    }

    /// Runs the dumps one after another, for a session whose events are enabled. Waits for at most [`TIMEOUT`] in total.
    pub(crate) fn run(&mut self, dumps: &[Arc<RegisteredDump>], session: &str, channel: &Arc<OpenChannel>) {
        let began = Instant::now();
        for dump in dumps {
            let counts = self.counts_of(dump);
            let timeout = TIMEOUT.saturating_sub(began.elapsed());
            let context = Dump { name: dump.name.clone(), session: session.to_owned(), ended: Arc::clone(&self.ended) };
            run_one(dump, context, &counts, channel, timeout);
        }
    }

    /// Counts these dumps as skipped.
    pub(crate) fn skip(&mut self, dumps: &[Arc<RegisteredDump>]) {
        for dump in dumps {
            self.counts_of(dump).skipped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counts_of(&mut self, dump: &RegisteredDump) -> Arc<Counts> {
        self.seen = self.seen.max(dump.number);
        // Bounds the list: a program may register a dump for each connection, and a session may last for years.
        if self.counts.len() >= KEPT {
            let there = super::registered(0);
            self.counts.retain(|(number, ..)| there.binary_search_by_key(number, |dump| dump.number).is_ok());
        }
        let place = self.counts.binary_search_by_key(&dump.number, |(number, ..)| *number);
        let place = place.unwrap_or_else(|place| {
            self.counts.insert(place, (dump.number, dump.name.clone(), Arc::default()));
            place
        });
        Arc::clone(&self.counts[place].2)
    }

    /// Returns the status of all dumps in order of registration; of unregistered ones only the last few.
    pub(crate) fn status(&self) -> Vec<StateDumpStatus> {
        let status = |(_, name, counts): &(u64, String, Arc<Counts>)| {
            let mut status = StateDumpStatus::default();
            status.name.clone_from(name);
            status.ran = counts.ran.load(Ordering::Relaxed);
            status.panicked = counts.panicked.load(Ordering::Relaxed);
            status.late = counts.late.load(Ordering::Relaxed);
            status.skipped = counts.skipped.load(Ordering::Relaxed);
            status
        };
        self.counts.iter().map(status).collect()
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// Phases of a run, shared by its thread and the thread that waits for it.
const RUNS: u8 = 0;
const RETURNED: u8 = 1;
const LATE: u8 = 2;

/// Runs one dump on a separate thread, and waits for it for at most `timeout`.
fn run_one(dump: &Arc<RegisteredDump>, context: Dump, counts: &Arc<Counts>, of: &Arc<OpenChannel>, timeout: Duration) {
    if dump.is_late() {
        counts.skipped.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let phase = Arc::new(AtomicU8::new(RUNS));
    let (end, ended) = channel::<()>();
    let (own, own_counts, own_phase, of) = (Arc::clone(dump), Arc::clone(counts), Arc::clone(&phase), Arc::clone(of));
    let body = move || {
        call(&own, &context, &own_counts, of);
        // Relaxed: the swaps of the two threads are ordered by the atomic itself, and publish no other data.
        if own_phase.swap(RETURNED, Ordering::Relaxed) == LATE {
            own.late_run_returned();
        }
        drop(end);
    };
    if own_thread::spawn_traced("tracepoint-state", body).is_err() {
        counts.skipped.fetch_add(1, Ordering::Relaxed);
        return;
    }
    if ended.recv_timeout(timeout) == Err(RecvTimeoutError::Timeout) {
        dump.run_became_late();
        if phase.swap(LATE, Ordering::Relaxed) == RETURNED {
            dump.late_run_returned();
        } else {
            counts.late.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Calls the dump's function between its two events.
fn call(dump: &RegisteredDump, context: &Dump, counts: &Counts, of: Arc<OpenChannel>) {
    let is_restricted = of.restrict_this_thread();
    // Dropped first, so that a dump that outlives its session does not keep the rings.
    drop(of);
    if !is_restricted {
        counts.skipped.fetch_add(1, Ordering::Relaxed);
        return;
    }
    tracepoint_core::trace!(state_begin(&context.name));
    let result = catch_unwind(AssertUnwindSafe(|| (dump.function)(context)));
    tracepoint_core::trace!(state_end(&context.name, result.is_err()));
    let count = if result.is_err() { &counts.panicked } else { &counts.ran };
    count.fetch_add(1, Ordering::Relaxed);
    // Dropping a panic payload may panic again.
    std::mem::forget(result);
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Round};
    use crate::session::Session;
    use crate::state::state_dump;
    use tracepoint_sinks::TextSink;

    #[test]
    fn unregistered_dumps_are_removed() -> Result<(), Box<dyn std::error::Error>> {
        let builder = Session::builder("dumps").in_memory().sink(TextSink::new(Vec::new()));
        let mut session = builder.record(&[], 4)?;
        let _stays = state_dump("stays", |_| {});
        for n in 0..3 * KEPT {
            let _goes = state_dump(format!("goes {n}"), |_| {});
            session.dump_state(Round::New);
        }
        let status = session.state_dumps();
        assert!((2..=KEPT).contains(&status.len()), "{}", status.len());
        assert!(status.iter().any(|dump| (dump.name.as_str(), dump.ran) == ("stays", 1)), "{status:?}");
        assert!(status.iter().any(|dump| dump.name == format!("goes {}", 3 * KEPT - 1)), "{status:?}");
        drop(session);
        Ok(())
    }
}
