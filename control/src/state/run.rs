//! Running dumps for one session.

use super::events::{state_begin, state_end};
use super::registry::Registered;
use crate::own_thread::leave_signals_to_the_program;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};
use tracepoint_core::channel::OpenChannel;

/// How long whoever starts a session waits for all its dumps together.
const PATIENCE: Duration = Duration::from_millis(500);

/// Of how many dumps it is kept how they fared before those are forgotten that are registered no longer.
const KEPT: usize = 64;

/// A dump that runs, as it sees itself.
#[derive(Debug)]
pub struct Dump {
    name: String,
    session: String,
    ended: Arc<AtomicBool>,
}

impl Dump {
    /// Under which name it was registered.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the session that it runs for.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Whether the session has ended meanwhile: what is fired from here on nobody gets. Long dumps should look now and then.
    pub fn is_over(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}

/// What became of a state dump in a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StateDumpStatus {
    /// Under which name it was registered.
    pub name: String,
    /// How often it has run to its end.
    pub ran: u64,
    /// How often it panicked: not all of the state is in the trace.
    pub panicked: u64,
    /// How often it took longer than it is waited for, 500 ms. It went on, and is counted above as well if it has returned.
    pub late: u64,
    /// How often it was passed over: because an earlier run had not returned, or because there was no thread for it, or no id left for the
    /// events around it, or because a sink that was to be told of these blocked. The state is not in the trace.
    pub skipped: u64,
}

impl StateDumpStatus {
    /// Whether the trace may lack some of the state.
    pub const fn is_wanting(&self) -> bool {
        self.panicked > 0 || self.late > 0 || self.skipped > 0
    }
}

impl std::fmt::Display for StateDumpStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "state dump {}: ran {}", self.name, self.ran)?;
        for (count, what) in [(self.panicked, "panicked"), (self.late, "late"), (self.skipped, "skipped")] {
            if count > 0 {
                write!(f, ", {what} {count}")?;
            }
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
struct Counts {
    ran: AtomicU64,
    panicked: AtomicU64,
    late: AtomicU64,
    skipped: AtomicU64,
}

/// Which dumps a round runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// All that are registered.
    All,
    /// Those that were registered since the last round.
    New,
}

/// The dumps of one session.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    /// The number of the last one that was seen.
    seen: u64,
    counts: BTreeMap<(u64, String), Arc<Counts>>,
    ended: Arc<AtomicBool>,
}

impl Runs {
    /// What there is to run in such a round.
    pub(crate) fn due(&self, round: Round) -> Vec<Arc<Registered>> {
        super::registered(if round == Round::New { self.seen } else { 0 })
    }

    /// Runs these, one after the other, for a session whose events are on. Waits for all of them together for a while.
    pub(crate) fn run(&mut self, dumps: &[Arc<Registered>], session: &str, channel: &Arc<OpenChannel>) {
        let began = Instant::now();
        for dump in dumps {
            let counts = self.counts_of(dump);
            let patience = PATIENCE.saturating_sub(began.elapsed());
            let told = Dump { name: dump.name.clone(), session: session.to_owned(), ended: Arc::clone(&self.ended) };
            run_one(dump, told, &counts, channel, patience);
        }
    }

    /// Counts that these cannot run.
    pub(crate) fn pass_over(&mut self, dumps: &[Arc<Registered>]) {
        for dump in dumps {
            self.counts_of(dump).skipped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counts_of(&mut self, dump: &Registered) -> Arc<Counts> {
        self.seen = self.seen.max(dump.number);
        // A program may register one for each connection, and a session may go on for years.
        if self.counts.len() >= KEPT {
            let there: BTreeSet<u64> = super::registered(0).iter().map(|dump| dump.number).collect();
            self.counts.retain(|(number, _), _| there.contains(number));
        }
        Arc::clone(self.counts.entry((dump.number, dump.name.clone())).or_default())
    }

    /// How they fared, in the order of their registration; of those that are registered no longer, the last few.
    pub(crate) fn status(&self) -> Vec<StateDumpStatus> {
        let status = |((_, name), counts): (&(u64, String), &Arc<Counts>)| StateDumpStatus {
            name: name.clone(),
            ran: counts.ran.load(Ordering::Relaxed),
            panicked: counts.panicked.load(Ordering::Relaxed),
            late: counts.late.load(Ordering::Relaxed),
            skipped: counts.skipped.load(Ordering::Relaxed),
        };
        self.counts.iter().map(status).collect()
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// A run, as its thread and whoever waits for it see it.
const RUNS: u8 = 0;
const RETURNED: u8 = 1;
const LATE: u8 = 2;

/// Runs one on a thread of its own, and waits for it for so long.
fn run_one(dump: &Arc<Registered>, told: Dump, counts: &Arc<Counts>, of: &Arc<OpenChannel>, patience: Duration) {
    if dump.is_late() {
        counts.skipped.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let phase = Arc::new(AtomicU8::new(RUNS));
    let (end, ended) = channel::<()>();
    let (own, own_counts, own_phase, of) = (Arc::clone(dump), Arc::clone(counts), Arc::clone(&phase), Arc::clone(of));
    let body = move || {
        leave_signals_to_the_program();
        tell(&own, &told, &own_counts, of);
        // Relaxed: each of the two swaps tells the other what happened, and nothing else hangs on it.
        if own_phase.swap(RETURNED, Ordering::Relaxed) == LATE {
            own.returned();
        }
        drop(end);
    };
    if Builder::new().name("tracepoint-state".to_owned()).spawn(body).is_err() {
        counts.skipped.fetch_add(1, Ordering::Relaxed);
        return;
    }
    if ended.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
        dump.is_waited_for_no_longer();
        if phase.swap(LATE, Ordering::Relaxed) == RETURNED {
            dump.returned();
        } else {
            counts.late.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The dump itself, between its two events.
fn tell(dump: &Registered, told: &Dump, counts: &Counts, of: Arc<OpenChannel>) {
    let is_kept = of.restrict_this_thread();
    // The rings are not kept for a dump that outlives its session.
    drop(of);
    if !is_kept {
        counts.skipped.fetch_add(1, Ordering::Relaxed);
        return;
    }
    tracepoint_core::trace!(state_begin(&told.name));
    let result = catch_unwind(AssertUnwindSafe(|| (dump.tell)(told)));
    tracepoint_core::trace!(state_end(&told.name, result.is_err()));
    let count = if result.is_err() { &counts.panicked } else { &counts.ran };
    count.fetch_add(1, Ordering::Relaxed);
    // What it panicked with may panic when it is dropped.
    std::mem::forget(result);
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Round};
    use crate::session::Session;
    use crate::state::state_dump;
    use tracepoint_sinks::TextSink;

    #[test]
    fn dumps_that_are_gone_are_forgotten() -> Result<(), Box<dyn std::error::Error>> {
        let builder = Session::builder("dumps").in_memory().sink(TextSink::new(Vec::new()));
        let mut session = builder.record(&[], 4, Vec::new())?;
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
