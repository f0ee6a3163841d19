//! The states of threads, and the division of the time of spans.

use super::data::{StateRow, States, WaitRow};
use super::names::Names;
use super::sample::Sample;
use super::tracks::{ThreadKey, Tracks};
use crate::slices::Slices;
use std::collections::HashMap;
use tracepoint_export::{Cause, Sources, SpanTime, ThreadId, ThreadState};

/// Maximum number of states in the page.
const MAX: usize = 1 << 14;
/// Number of equal time slices from which they are sampled, and maximum number of threads that are sampled separately.
const PARTS: usize = 64;
const MAX_CELLS: usize = MAX / PARTS;
/// Maximum number of kinds of waits of a span in the page.
const WAITS: usize = 3;

/// A state of a thread that is in the sample.
struct Period {
    thread: usize,
    begin_ns: i64,
    row: StateRow,
}

pub(super) struct StateSample {
    /// The threads, with their names, and their indices by their ids.
    threads: Vec<(ThreadKey, Option<String>)>,
    by_key: HashMap<ThreadKey, usize>,
    by_id: HashMap<ThreadId, usize>,
    sample: Sample<Period>,
    parts: Slices,
    texts: Names,
}

impl StateSample {
    pub(super) fn new(range: (i64, i64)) -> Self {
        Self {
            threads: Vec::new(),
            by_key: HashMap::new(),
            by_id: HashMap::new(),
            sample: Sample::new(MAX),
            parts: Slices::new(range, PARTS),
            texts: Names::default(),
        }
    }

    /// Offers a state. Of each thread and part of the time, the longest ones are kept.
    pub(super) fn offer(&mut self, state: &ThreadState<'_>, sources: &Sources) {
        let Some(thread) = self.thread(state, sources) else { return };
        let length = state.end_ns.abs_diff(state.begin_ns);
        let cell = thread.min(MAX_CELLS - 1) * PARTS + self.parts.index(state.begin_ns);
        let texts = &mut self.texts;
        self.sample.offer(cell, length, || {
            let text = description(state.call, state.woken_by).map(|text| texts.index(&text));
            Period { thread, begin_ns: state.begin_ns, row: StateRow(0, index(state.cause), 0, length, text) }
        });
    }

    fn thread(&mut self, state: &ThreadState<'_>, sources: &Sources) -> Option<usize> {
        if let Some(known) = self.by_id.get(&state.thread) {
            return Some(*known);
        }
        let process = sources.process_of(state.thread);
        let key = ThreadKey { host: process.host.clone(), pid: process.pid, tid: sources.thread(state.thread).tid? };
        let next = self.threads.len();
        let index = *self.by_key.entry(key.clone()).or_insert(next);
        if index == next {
            self.threads.push((key, state.thread_name.map(str::to_owned)));
        }
        self.by_id.insert(state.thread, index);
        Some(index)
    }

    /// The division of the time of a span, and its longest kinds of waits.
    pub(super) fn divide(&mut self, time: &SpanTime) -> (Vec<(usize, u64)>, Vec<WaitRow>) {
        let division = time.division.parts().map(|(cause, time)| (index(cause), time)).collect();
        let texts = &mut self.texts;
        let described = time.waits.iter().filter_map(|wait| {
            let text = description(wait.call.as_deref(), wait.woken_by.as_deref())?;
            Some(WaitRow(index(wait.cause), texts.index(&text), wait.count, wait.nanoseconds))
        });
        (division, described.take(WAITS).collect())
    }

    /// All states of the page. `since` converts a time. A thread without a track gets one, as long as there are not too many. States of several
    /// threads on one track would overlap: the others are left out.
    pub(super) fn finish(self, tracks: &mut Tracks, since: impl Fn(i64) -> u64) -> States {
        let all = self.sample.offered;
        let mut kept = self.sample.finish();
        kept.sort_by_key(|period| (period.thread, period.begin_ns));
        let of_threads = self.threads.iter().map(|(key, name)| tracks.of_thread(key, name.as_deref()));
        let of_threads: Vec<_> = of_threads.collect();
        let without_track = of_threads.iter().filter(|track| track.is_none()).count();
        let rows = kept.into_iter().filter_map(|Period { thread, begin_ns, row }| {
            let StateRow(_, cause, _, length, text) = row;
            Some(StateRow(of_threads[thread]?, cause, since(begin_ns), length, text))
        });
        let causes = Cause::ALL.map(Cause::name).to_vec();
        States { causes, rows: rows.collect(), texts: self.texts.all, all, without_track }
    }
}

fn index(cause: Cause) -> usize {
    Cause::ALL.iter().position(|known| *known == cause).unwrap_or_default()
}

/// The system call of a wait, and the thread that ended it.
fn description(call: Option<&str>, woken_by: Option<&str>) -> Option<String> {
    let call = call.map(|call| format!("in {call}"));
    let woken_by = woken_by.map(|thread| format!("ended by {thread}"));
    let parts: Vec<_> = call.into_iter().chain(woken_by).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
