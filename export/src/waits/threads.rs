//! The states of all threads, from the events of `record --waits`.
//!
//! The kernel has no event for the end of a thread: after its last event, a thread seems to run. As soon as another thread runs on its CPU, it is in the
//! state `Gone`, until it has another event or its id is used again.
//!
//! Several recordings of the kernel, each a trace, may record one thread. Its state is unknown while all of them miss events, or have ended.

use super::cause::{Cause, Division, WokenBy, cause};
use super::thread::{Key, Mark, Out, Period, Sample, State, Thread, Wait};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Maximum number of waits of a thread that are kept in detail. Their sums are kept of all.
pub(super) const MAX_WAITS: usize = 1024;
/// Maximum number of samples of a thread that are kept.
const MAX_SAMPLES: usize = 4096;
/// Maximum number of threads. Further ones are not examined.
const MAX_THREADS: usize = 1 << 18;
/// CPUs from this number on are ignored: Linux has at most 8192.
const MAX_CPUS: u64 = 1 << 16;
/// Maximum number of recordings that are distinguished. Further ones count as the last one.
pub(super) const MAX_RECORDINGS: usize = u64::BITS as usize;

/// A recording of the kernel.
#[derive(Debug)]
struct Recording {
    /// Until when its events are missing.
    lost_until: i64,
    /// The threads that it records.
    threads: BTreeSet<Key>,
}

/// All threads whose states are known.
#[derive(Debug)]
pub(super) struct Threads {
    all: HashMap<Key, Thread>,
    /// Maximum number of waits of a thread that are kept in detail. Their sums are kept of all.
    max_waits: usize,
    /// The thread that last began to run on each CPU of a host.
    on_cpu: HashMap<(u32, u64), Key>,
    /// All recordings, by their numbers, and the number of the one whose events are noted.
    recordings: Vec<Recording>,
    recording: usize,
    /// Names of system calls.
    calls: HashMap<Box<str>, Arc<str>>,
    /// True if there are threads that are not examined.
    pub(super) has_further: bool,
}

impl Default for Threads {
    fn default() -> Self {
        Self::new(MAX_WAITS)
    }
}

impl Threads {
    /// Keeps at most so many waits of a thread in detail.
    pub(super) fn new(max_waits: usize) -> Self {
        let (all, on_cpu, calls) = (HashMap::new(), HashMap::new(), HashMap::new());
        let mut threads =
            Self { all, max_waits, on_cpu, recordings: Vec::new(), recording: 0, calls, has_further: false };
        threads.set_recording(0);
        threads
    }

    /// The events that are noted from now on are of the recording with this number.
    pub(super) fn set_recording(&mut self, recording: usize) {
        self.recording = recording.min(MAX_RECORDINGS - 1);
        while self.recordings.len() <= self.recording {
            self.recordings.push(Recording { lost_until: i64::MIN, threads: BTreeSet::new() });
        }
    }

    /// Sets the tag of the waits of a thread that end from now on.
    pub(super) fn tag(&mut self, key: Key, tag: u32) {
        if let Some(thread) = self.thread(key) {
            thread.tag = tag;
        }
    }

    /// Takes the periods of a thread whose cause is final, in the order of times.
    pub(super) fn take(&mut self, key: Key, mut take: impl FnMut(Period)) {
        if let Some(thread) = self.all.get_mut(&key) {
            thread.take(false, &mut take);
        }
    }

    /// Takes the periods of all threads until the end of the trace, thread by thread, with the thread's name.
    pub(super) fn take_rest(&mut self, time: i64, mut take: impl FnMut(Key, Option<&Arc<str>>, Period)) {
        let mut all: Vec<_> = self.all.iter_mut().collect();
        all.sort_unstable_by_key(|(key, _)| **key);
        for (key, thread) in all {
            let name = thread.name.clone();
            thread.take_rest(time, &mut |period| take(*key, name.as_ref(), period));
        }
    }

    /// The id of a thread is used again: takes the periods of the thread that had it before, which are over with its last event.
    pub(super) fn reuse(&mut self, key: Key, mut take: impl FnMut(Period)) {
        let Some(thread) = self.all.get_mut(&key) else { return };
        let end = thread.last.max(thread.since);
        thread.take_rest(end, &mut take);
        // The times of the next one are not before it.
        *thread = Thread { since: end, taken_until: end, before: thread.before + 1, ..Thread::new(self.max_waits) };
    }

    fn thread(&mut self, key: Key) -> Option<&mut Thread> {
        if self.all.len() >= MAX_THREADS && !self.all.contains_key(&key) {
            self.has_further = true;
            return None;
        }
        let max_waits = self.max_waits;
        Some(self.all.entry(key).or_insert_with(|| Thread::new(max_waits)))
    }

    /// Notes that the recording has this thread.
    fn record(&mut self, key: Key, time: i64) {
        let Some(thread) = self.all.get_mut(&key) else { return };
        thread.recorded.get_or_insert(time);
        let bit = 1 << self.recording;
        if thread.recordings & bit == 0 {
            thread.recordings |= bit;
            self.recordings[self.recording].threads.insert(key);
        }
    }

    /// Returns whether events of the recording are missing at this time. Then nothing follows from its events, except that it has this thread.
    pub(super) fn is_lost(&mut self, key: Key, time: i64) -> bool {
        let is_lost = time < self.recordings[self.recording].lost_until;
        if is_lost && let Some(thread) = self.thread(key) {
            if thread.recorded.is_none() {
                thread.change(time, Cause::Unknown, None, State::Unknown);
            }
            self.record(key, time);
        }
        is_lost
    }

    /// Notes the name of a thread.
    pub(super) fn name(&mut self, key: Key, name: &[u8]) {
        if let Some(thread) = self.thread(key)
            && thread.name.as_ref().is_none_or(|known| known.as_bytes() != name)
        {
            thread.name = Some(String::from_utf8_lossy(name).into());
        }
    }

    pub(super) fn name_of(&self, key: Key) -> Option<&str> {
        self.all.get(&key)?.name.as_deref()
    }

    pub(super) fn shared_name_of(&self, key: Key) -> Option<Arc<str>> {
        self.all.get(&key)?.name.clone()
    }

    /// Returns whether the recording has already said that it records this thread: then another one has its id now.
    pub(super) fn is_announced(&self, key: Key) -> bool {
        self.all.get(&key).is_some_and(|thread| thread.announced & 1 << self.recording != 0)
    }

    /// Notes that a thread is recorded from now on; `state` is a letter of `ps`.
    pub(super) fn recorded(&mut self, key: Key, time: i64, state: u8) {
        let (is_lost, bit) = (self.is_lost(key, time), 1 << self.recording);
        let Some(thread) = self.thread(key) else { return };
        thread.announced |= bit;
        if !is_lost && thread.recorded.is_none() {
            let state = match state {
                b'R' => State::Runnable,
                b'Z' | b'X' => State::Gone,
                state => State::Blocked { is_uninterruptible: state == b'D' },
            };
            thread.change(time, Cause::Unknown, None, state);
        }
        self.record(key, time);
    }

    /// Notes the time of an event of a thread, if the thread is known.
    pub(super) fn seen(&mut self, key: Key, time: i64) {
        if let Some(thread) = self.all.get_mut(&key) {
            thread.last = time;
        }
    }

    /// Notes that a thread begins to run on a CPU. Returns the thread that has seemed to run there until now.
    pub(super) fn runs_on(&mut self, key: Key, cpu: u64) -> Option<Key> {
        if cpu >= MAX_CPUS {
            return None;
        }
        self.thread(key)?.cpu = Some(cpu);
        let before = self.on_cpu.insert((key.0, cpu), key).filter(|before| *before != key)?;
        let gone = self.all.get_mut(&before).filter(|gone| gone.cpu == Some(cpu) && gone.state == State::Running)?;
        gone.change(gone.last, gone.current(), None, State::Gone);
        gone.call = None;
        Some(before)
    }

    /// A thread begins to run.
    pub(super) fn switched_in(&mut self, key: Key, time: i64) {
        if self.is_lost(key, time) {
            return;
        }
        let Some(thread) = self.thread(key) else { return };
        let cause = match thread.state {
            State::Runnable => Cause::Ready,
            State::Running if thread.recorded.is_some() => Cause::Running,
            State::Unknown | State::Running | State::Gone => Cause::Unknown,
            State::Ready | State::Blocked { .. } => thread.current(),
        };
        thread.change(time, cause, None, State::Running);
        self.record(key, time);
    }

    /// A thread ceases to run.
    pub(super) fn switched_out(&mut self, key: Key, time: i64, out: Out) {
        if self.is_lost(key, time) {
            return;
        }
        let Some(thread) = self.thread(key) else { return };
        let cause = match thread.state {
            // Two events tell of one switch.
            State::Ready | State::Blocked { .. } => return,
            State::Running | State::Runnable => thread.current(),
            State::Unknown | State::Gone => Cause::Unknown,
        };
        let state = match out {
            Out::Ready => State::Ready,
            Out::Blocked { is_uninterruptible } => State::Blocked { is_uninterruptible },
        };
        thread.change(time, cause, None, state);
        self.record(key, time);
    }

    /// A thread is woken, by this one if `woken_by` says so.
    pub(super) fn woken(&mut self, key: Key, time: i64, woken_by: WokenBy, by: Key) {
        let Some(thread) = self.all.get(&key) else { return };
        let State::Blocked { is_uninterruptible } = thread.state else { return };
        let since = thread.since;
        let did = (woken_by == WokenBy::Thread && by != key).then(|| {
            let did = |other: &Thread| other.did(since, time);
            (by, Box::new(self.all.get(&by).map_or_else(|| Division::unknown(since.abs_diff(time)), did)))
        });
        let Some(thread) = self.all.get_mut(&key) else { return };
        let cause = cause(thread.call.as_deref(), is_uninterruptible, woken_by);
        thread.change(time, cause, did, State::Ready);
    }

    /// A thread begins a system call.
    pub(super) fn entered(&mut self, key: Key, call: &str) {
        let call = match self.calls.get(call) {
            Some(known) => Arc::clone(known),
            None => Arc::clone(self.calls.entry(call.into()).or_insert_with(|| call.into())),
        };
        self.in_call(key, Some(call));
    }

    /// A thread has ended a system call.
    pub(super) fn left(&mut self, key: Key) {
        self.in_call(key, None);
    }

    fn in_call(&mut self, key: Key, call: Option<Arc<str>>) {
        if let Some(thread) = self.thread(key) {
            thread.explained = thread.number_of_waits();
            thread.call = call;
        }
    }

    /// A page fault for which a thread has waited is over.
    pub(super) fn faulted(&mut self, key: Key) {
        let Some(thread) = self.thread(key) else { return };
        let new = usize::try_from(thread.number_of_waits() - thread.explained).unwrap_or(usize::MAX);
        for wait in thread.waits.iter_mut().rev().take(new).filter(|wait| wait.cause == Cause::Blocked) {
            thread.sums.change(Cause::Blocked, Cause::PageFault, wait.from.abs_diff(wait.to));
            wait.cause = Cause::PageFault;
        }
        thread.explained = thread.number_of_waits();
    }

    /// A thread runs, with this call stack.
    pub(super) fn sampled(&mut self, key: Key, sample: Sample) {
        let Some(thread) = self.thread(key) else { return };
        if thread.samples.len() >= MAX_SAMPLES {
            thread.samples.pop_front();
        }
        thread.samples.push_back(sample);
    }

    /// The samples of a thread since a mark, the newest first, as far as they are kept.
    pub(super) fn samples(&self, key: Key, mark: &Mark) -> impl Iterator<Item = &Sample> {
        let samples = self.marked(key, mark).into_iter().flat_map(|thread| thread.samples.iter().rev());
        let begin = mark.time;
        samples.take_while(move |sample| sample.time >= begin)
    }

    /// Returns whether events of all these recordings are missing at this time.
    fn are_lost(recordings: &[Recording], of: u64, time: i64) -> bool {
        recordings.iter().enumerate().all(|(number, one)| of & 1 << number == 0 || time < one.lost_until)
    }

    /// Events of the recording are missing between two times: until the later one, and then until its next event, the state of each of its threads is
    /// unknown, unless another recording has it. Returns these threads.
    pub(super) fn lost(&mut self, from: i64, until: i64) -> Vec<Key> {
        let recording = &mut self.recordings[self.recording];
        recording.lost_until = recording.lost_until.max(until);
        let (recordings, all) = (&self.recordings, &mut self.all);
        let threads = recordings[self.recording].threads.iter().copied();
        let are_lost = |key: &Key| {
            let thread = all.get_mut(key).filter(|thread| Self::are_lost(recordings, thread.recordings, from));
            if let Some(thread) = thread {
                thread.change(from, thread.current(), None, State::Unknown);
                thread.call = None;
                return true;
            }
            false
        };
        threads.filter(are_lost).collect()
    }

    /// The recording has ended. Returns the threads that are not recorded any more.
    pub(super) fn end(&mut self, time: i64) -> Vec<Key> {
        let threads = std::mem::take(&mut self.recordings[self.recording].threads);
        let (recordings, all, bit) = (&self.recordings, &mut self.all, 1 << self.recording);
        let has_ended = |key: &Key| {
            let Some(thread) = all.get_mut(key) else { return false };
            (thread.recordings, thread.announced) = (thread.recordings & !bit, thread.announced & !bit);
            let is_unknown = Self::are_lost(recordings, thread.recordings, time);
            if is_unknown {
                thread.change(time, thread.current(), None, State::Unknown);
            }
            if thread.recordings == 0 {
                thread.recorded = None;
            }
            is_unknown
        };
        threads.into_iter().filter(has_ended).collect()
    }

    /// Returns a thread at a time at which it runs: it has an event of its own then.
    pub(super) fn runs_at(&mut self, key: Key, time: i64) -> Option<Mark> {
        let of = self.all.get(&key).map_or(0, |thread| thread.recordings);
        let is_lost = of != 0 && Self::are_lost(&self.recordings, of, time);
        let thread = self.thread(key)?;
        thread.last = time;
        if matches!(thread.state, State::Unknown | State::Gone) && !is_lost {
            thread.change(time, Cause::Unknown, None, State::Running);
        }
        Some(thread.at(time))
    }

    /// The thread of a mark; `None` if another one has its id now.
    fn marked(&self, key: Key, mark: &Mark) -> Option<&Thread> {
        self.all.get(&key).filter(|thread| thread.before == mark.before)
    }

    /// Returns how the time since a mark divides, until a time that is not before the last event.
    pub(super) fn since(&self, key: Key, mark: &Mark, time: i64) -> Division {
        let duration = mark.until(time);
        let Some(thread) = self.marked(key, mark) else { return Division::unknown(duration) };
        let mut division = thread.at(time).sums.since(&mark.sums);
        // The clocks of the kernel and of the process differ by less than a microsecond.
        division.fit(duration, Cause::Unknown);
        division
    }

    /// The waits of a thread since a mark, the newest first, as far as they are kept.
    pub(super) fn waits(&self, key: Key, mark: &Mark) -> impl Iterator<Item = &Wait> {
        let waits = self.marked(key, mark).into_iter().flat_map(|thread| thread.waits.iter().rev());
        let begin = mark.time;
        waits.take_while(move |wait| wait.to > begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Key = (0, 1);
    const B: Key = (0, 2);
    const BLOCKED: Out = Out::Blocked { is_uninterruptible: false };
    const ON_DISK: Out = Out::Blocked { is_uninterruptible: true };

    /// Two threads that run since 0.
    fn threads() -> Threads {
        let mut threads = Threads::default();
        for key in [A, B] {
            threads.switched_in(key, 0);
        }
        threads
    }

    fn parts(threads: &Threads, mark: &Mark, until: i64) -> Vec<(Cause, u64)> {
        threads.since(A, mark, until).parts().collect()
    }

    #[test]
    fn a_wait_for_a_lock_names_the_thread_that_held_it_and_what_it_did() {
        let mut threads = threads();
        threads.name(B, b"holder");
        let mark = threads.runs_at(A, 10).expect("a thread");
        threads.entered(A, "futex");
        threads.switched_out(A, 20, BLOCKED);
        // The second event of the same switch.
        threads.switched_out(A, 21, BLOCKED);
        threads.entered(B, "clock_nanosleep");
        threads.switched_out(B, 30, BLOCKED);
        threads.woken(B, 80, WokenBy::Interrupt, A);
        threads.switched_in(B, 85);
        threads.left(B);
        threads.woken(A, 100, WokenBy::Thread, B);
        threads.switched_in(A, 104);
        threads.left(A);
        assert_eq!(parts(&threads, &mark, 110), [(Cause::Running, 16), (Cause::Ready, 4), (Cause::Lock, 80)]);
        let waits: Vec<_> = threads.waits(A, &mark).collect();
        assert_eq!((waits.len(), waits[1].call.as_deref(), waits[1].to), (2, Some("futex"), 100));
        let (by, did) = waits[1].woken_by.as_ref().expect("a waker");
        assert_eq!((*by, threads.name_of(*by)), (B, Some("holder")));
        let did: Vec<_> = did.parts().collect();
        assert_eq!(did, [(Cause::Running, 25), (Cause::Ready, 5), (Cause::Sleep, 50)]);
    }

    #[test]
    fn without_rights_a_thread_is_blocked_or_ready() {
        let mut threads = threads();
        let mark = threads.runs_at(A, 10).expect("a thread");
        threads.switched_out(A, 20, BLOCKED);
        threads.switched_in(A, 50);
        threads.switched_out(A, 60, Out::Ready);
        threads.switched_in(A, 65);
        assert_eq!(parts(&threads, &mark, 70), [(Cause::Running, 25), (Cause::Ready, 5), (Cause::Blocked, 30)]);
    }

    #[test]
    fn a_page_fault_explains_the_waits_since_the_last_system_call() {
        let mut threads = threads();
        let mark = threads.runs_at(A, 0).expect("a thread");
        threads.entered(A, "read");
        threads.switched_out(A, 10, ON_DISK);
        threads.woken(A, 30, WokenBy::Interrupt, B);
        threads.switched_in(A, 30);
        threads.left(A);
        threads.switched_out(A, 40, ON_DISK);
        threads.woken(A, 70, WokenBy::Interrupt, B);
        threads.switched_in(A, 72);
        threads.faulted(A);
        let expected = [(Cause::Running, 28), (Cause::Ready, 2), (Cause::Disk, 20), (Cause::PageFault, 30)];
        assert_eq!(parts(&threads, &mark, 80), expected);
    }

    #[test]
    fn what_is_not_recorded_is_unknown() {
        let mut threads = Threads::default();
        let mark = threads.runs_at(A, 10).expect("a thread");
        assert_eq!(parts(&threads, &mark, 20), [(Cause::Unknown, 10)]);
        // It is ready when it is found.
        threads.recorded(A, 30, b'R');
        threads.switched_in(A, 40);
        assert_eq!(parts(&threads, &mark, 50), [(Cause::Running, 10), (Cause::Ready, 10), (Cause::Unknown, 20)]);
        // Of the time in which events were lost, and until its next event, nothing is known.
        threads.lost(55, 60);
        let mark = threads.runs_at(A, 70).expect("a thread");
        assert_eq!(parts(&threads, &mark, 75), [(Cause::Running, 5)]);
        // Nothing is known after the end.
        threads.end(77);
        assert_eq!(parts(&threads, &mark, 80), [(Cause::Running, 7), (Cause::Unknown, 3)]);
        // Another host's.
        assert_eq!(threads.since((1, 1), &mark, 80), Division::unknown(10));
    }

    #[test]
    fn nothing_counts_twice_while_events_are_lost() {
        let mut threads = threads();
        let mark = threads.runs_at(A, 0).expect("a thread");
        threads.lost(50, 150);
        // What is left of the events.
        threads.entered(A, "futex");
        threads.switched_out(A, 60, BLOCKED);
        threads.woken(A, 140, WokenBy::Thread, B);
        threads.switched_in(A, 145);
        threads.recorded((0, 3), 100, b'S');
        assert_eq!(parts(&threads, &mark, 160), [(Cause::Running, 50), (Cause::Unknown, 110)]);
        threads.switched_out(A, 170, Out::Ready);
        assert_eq!(parts(&threads, &mark, 200), [(Cause::Running, 50), (Cause::Ready, 30), (Cause::Unknown, 120)]);
    }

    #[test]
    fn a_waker_that_is_not_recorded_is_named_by_its_id() {
        let mut threads = threads();
        let mark = threads.runs_at(A, 0).expect("a thread");
        threads.switched_out(A, 10, BLOCKED);
        threads.woken(A, 30, WokenBy::Thread, (0, 9));
        let wait = threads.waits(A, &mark).next().expect("a wait");
        assert_eq!(wait.woken_by.as_ref().map(|(key, did)| (*key, did.of(Cause::Unknown))), Some(((0, 9), 20)));
    }

    #[test]
    fn a_thread_that_is_found_sleeps_or_runs() {
        let mut threads = Threads::default();
        for (key, state) in [(A, b'S'), (B, b'R')] {
            threads.recorded(key, 0, state);
        }
        let marks = [A, B].map(|key| threads.runs_at(key, 0).expect("a thread"));
        threads.switched_in(A, 20);
        threads.switched_out(B, 20, BLOCKED);
        assert_eq!(threads.since(A, &marks[0], 30).of(Cause::Blocked), 20);
        assert_eq!(
            threads.since(B, &marks[1], 30).parts().collect::<Vec<_>>(),
            [(Cause::Running, 20), (Cause::Blocked, 10)]
        );
    }

    #[test]
    fn further_threads_are_noted() {
        let mut threads = Threads::default();
        for tid in 0..MAX_THREADS as u64 {
            threads.left((0, tid));
        }
        assert!(!threads.has_further);
        threads.switched_in((1, 0), 10);
        assert!(threads.has_further && threads.all.len() == MAX_THREADS);
    }

    #[test]
    fn a_thread_is_gone_once_another_one_runs_on_its_cpu() {
        let mut threads = threads();
        let mark = threads.runs_at(A, 0).expect("a thread");
        assert_eq!((threads.runs_on(A, 1), threads.runs_on(B, 0)), (None, None));
        threads.seen(A, 20);
        assert_eq!(threads.runs_on(B, 1), Some(A));
        assert_eq!(parts(&threads, &mark, 50), [(Cause::Running, 20), (Cause::Unknown, 30)]);
        // It has another event: the end of its turn was lost.
        threads.runs_at(A, 60);
        assert_eq!(parts(&threads, &mark, 70), [(Cause::Running, 30), (Cause::Unknown, 40)]);
        // It runs elsewhere.
        assert_eq!((threads.runs_on(A, 0), threads.runs_on((0, 3), 1)), (None, Some(B)));
        assert_eq!(parts(&threads, &mark, 80), [(Cause::Running, 40), (Cause::Unknown, 40)]);
        // There is no such CPU.
        assert_eq!((threads.runs_on(A, MAX_CPUS), threads.runs_on(B, MAX_CPUS), threads.on_cpu.len()), (None, None, 2));
    }

    #[test]
    fn sums_are_exact_where_there_are_more_waits_than_are_kept() {
        let mut threads = threads();
        let mark = threads.runs_at(A, 0).expect("a thread");
        for round in 0..10_000 {
            threads.switched_out(A, round * 10 + 3, BLOCKED);
            threads.switched_in(A, round * 10 + 10);
        }
        assert_eq!(parts(&threads, &mark, 100_000), [(Cause::Running, 30_000), (Cause::Blocked, 70_000)]);
        assert_eq!(threads.waits(A, &mark).count(), MAX_WAITS);
    }
}
