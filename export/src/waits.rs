//! What threads do: whether they run, or why they wait, from the events of `record --waits`.
//!
//! ```text
//!   kernel events of `record --waits` ──▶ Threads: the state of each thread, and sums of time by cause
//!   samples of `record --samples`     ──▶ Threads: the call stacks that it ran
//!                      periods of threads: Threads ──▶ `Format::thread_state`, off-CPU flame graphs
//!   begin and end of a span: the difference of the sums ──▶ SpanTimes ──▶ `Span::time`
//! ```

mod cause;
mod spans;
mod thread;
mod threads;

use std::collections::HashMap;
use std::sync::Arc;

use cause::WokenBy;
pub use cause::{Cause, Division};
pub(crate) use spans::SpanTimes;
pub use spans::{SpanTime, WaitKind};
use thread::Out;
pub(crate) use thread::{Key, Period, Sample};
use threads::{MAX_RECORDINGS, MAX_WAITS, Threads};
use tracepoint_reader::{Event, Value};

use crate::sources::{Sources, ThreadId};

/// Maximum number of waits of a thread that are kept until their cause is final, if nothing else needs them.
const MAX_HELD: usize = 64;
/// Bits of `common_flags`: the event fired in an interrupt; in work left by one.
const HARD_INTERRUPT: u64 = 1 << 3;
const SOFT_INTERRUPT: u64 = 1 << 4;
/// Bits of `prev_state` that say what a thread waits for; without any of them it is ready. 0x100, for preempted, is not one of them.
const STATES: u64 = 0xff;
const UNINTERRUPTIBLE: u64 = 2;

/// A period of a thread, and the thread and its name in the events of the kernel at that time.
#[derive(Clone, Debug)]
pub(crate) struct ThreadPeriod {
    pub(crate) thread: ThreadId,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) period: Period,
}

/// The states of all threads of a trace.
#[derive(Debug)]
pub(crate) struct Waits {
    threads: Threads,
    hosts: HashMap<Option<String>, u32>,
    /// The thread of each key, preferably of the trace of its process.
    known: HashMap<Key, ThreadId>,
    /// The recordings of the kernel, by host and trace, with their numbers in `threads`.
    recordings: HashMap<(u32, Option<[u8; 16]>), usize>,
    has_switches: bool,
    /// Final periods that have not been taken.
    periods: Vec<ThreadPeriod>,
}

impl Waits {
    /// Keeps the waits of each thread in detail, so that spans can be divided.
    pub(crate) fn in_detail() -> Self {
        Self::new(MAX_WAITS)
    }

    /// Keeps the waits of each thread until their cause is final.
    pub(crate) fn of_states() -> Self {
        Self::new(MAX_HELD)
    }

    fn new(max_waits: usize) -> Self {
        Self {
            threads: Threads::new(max_waits),
            hosts: HashMap::new(),
            known: HashMap::new(),
            recordings: HashMap::new(),
            has_switches: false,
            periods: Vec::new(),
        }
    }

    /// The key of the thread that fires an event, in all traces of its host. From now on, its periods are of this thread, unless it belongs to the
    /// kernel's trace and the same thread is known from the trace of its process. If its id was that of a thread of another process, that one has ended.
    pub(crate) fn key(&mut self, thread: ThreadId, sources: &Sources) -> Key {
        let host = &sources.process_of(thread).host;
        let next = self.hosts.len() as u32;
        let host = match self.hosts.get(host) {
            Some(host) => *host,
            None => *self.hosts.entry(host.clone()).or_insert(next),
        };
        let key = (host, sources.thread(thread).tid.unwrap_or_default());
        match self.known.get(&key).copied() {
            Some(known) if known != thread => {
                let (process, of_known) = (sources.process_of(thread), sources.process_of(known));
                if process.pid.zip(of_known.pid).is_some_and(|(pid, of_known)| pid != of_known) {
                    self.reuse(key);
                }
                if process.program.is_some() || process.pid != of_known.pid {
                    self.known.insert(key, thread);
                }
            }
            None if key.1 != 0 => {
                self.known.insert(key, thread);
            }
            _ => {}
        }
        key
    }

    /// The id of a thread is used again: the one that had it has ended.
    fn reuse(&mut self, key: Key) {
        let name = self.threads.shared_name_of(key);
        let (known, periods) = (self.known.get(&key), &mut self.periods);
        self.threads.reuse(key, |period| {
            periods.extend(known.map(|thread| ThreadPeriod { thread: *thread, name: name.clone(), period }));
        });
    }

    /// Returns whether the trace has said when threads run.
    pub(crate) fn has_switches(&self) -> bool {
        self.has_switches
    }

    /// The number of a recording of the kernel: of the trace of a thread.
    fn recording(&mut self, (host, _): Key, thread: ThreadId, sources: &Sources) -> usize {
        let next = self.recordings.len().min(MAX_RECORDINGS - 1);
        *self.recordings.entry((host, sources.process_of(thread).trace)).or_insert(next)
    }

    /// Returns whether there are threads that are not examined.
    pub(crate) fn has_further_threads(&self) -> bool {
        self.threads.has_further
    }

    /// Notes an event of the kernel on a thread, with its key. Returns the thread whose state may have changed, or `None` for any other event.
    pub(crate) fn note(&mut self, event: &Event, key: Key, thread: ThreadId, sources: &Sources) -> Option<Key> {
        // The providers of a process may have the same names.
        if sources.process_of(thread).program.is_some() {
            return None;
        }
        let (time, of) = (event.time_ns, |field: &str| number(event, field));
        let mut changed = key;
        let recording = self.recording(key, thread, sources);
        self.threads.set_recording(recording);
        match event.name() {
            "perf:switch" => {
                self.has_switches = true;
                match bytes(event, "state") {
                    b"running" => {
                        if let Some(cpu) = cpu(event)
                            && !self.threads.is_lost(key, time)
                            && let Some(gone) = self.threads.runs_on(key, cpu)
                        {
                            self.collect(gone);
                        }
                        self.threads.switched_in(key, time);
                    }
                    b"ready" => self.threads.switched_out(key, time, Out::Ready),
                    _ => self.threads.switched_out(key, time, Out::Blocked { is_uninterruptible: false }),
                }
            }
            "perf:thread" => {
                if self.threads.is_announced(key) {
                    self.reuse(key);
                }
                self.threads.name(key, bytes(event, "comm"));
                self.threads.recorded(key, time, bytes(event, "state").first().copied().unwrap_or_default());
            }
            "perf:end" => {
                for key in self.threads.end(time) {
                    self.collect(key);
                }
            }
            "perf:major_fault" => self.threads.faulted(key),
            // Of a recording of the kernel alone: it does not say when threads are switched in.
            "sched:sched_switch" | "sched:sched_waking" if !self.has_switches => return None,
            "sched:sched_switch" => {
                let thread = (key.0, of("prev_pid"));
                self.threads.name(thread, bytes(event, "prev_comm"));
                let state = of("prev_state") & STATES;
                let is_uninterruptible = state & UNINTERRUPTIBLE != 0;
                let out = if state == 0 { Out::Ready } else { Out::Blocked { is_uninterruptible } };
                self.threads.switched_out(thread, time, out);
                changed = thread;
            }
            "sched:sched_waking" => {
                let flags = of("common_flags");
                let woken_by = match key.1 {
                    _ if flags & HARD_INTERRUPT != 0 => WokenBy::Interrupt,
                    _ if flags & SOFT_INTERRUPT != 0 => WokenBy::SoftInterrupt,
                    0 => WokenBy::Interrupt,
                    _ => WokenBy::Thread,
                };
                let thread = (key.0, of("pid"));
                self.threads.woken(thread, time, woken_by, key);
                changed = thread;
            }
            "raw_syscalls:sys_enter" => {
                if let Some(Value::Enum(value, labels)) = field(event, "id") {
                    self.threads.entered(key, labels.labels(value.value).next().unwrap_or("system call"));
                }
            }
            "raw_syscalls:sys_exit" => self.threads.left(key),
            _ => return None,
        }
        self.threads.seen(key, time);
        Some(changed)
    }

    /// Notes a sample of the processor.
    pub(crate) fn sampled(&mut self, key: Key, sample: Sample) {
        self.threads.sampled(key, sample);
    }

    /// Notes an event of the thread itself: it runs.
    pub(crate) fn runs_at(&mut self, key: Key, time: i64) {
        self.threads.runs_at(key, time);
    }

    /// Notes that events of the trace of a thread are missing between two times, if it is the kernel's. Returns whether it is.
    pub(crate) fn lost(&mut self, thread: ThreadId, sources: &Sources, from: i64, until: i64) -> bool {
        // Only the kernel's streams have no process.
        if sources.process_of(thread).program.is_some() {
            return false;
        }
        let key = self.key(thread, sources);
        let recording = self.recording(key, thread, sources);
        self.threads.set_recording(recording);
        for key in self.threads.lost(from, until) {
            self.collect(key);
        }
        true
    }

    /// Sets [`Period::tag`] for the waits of a thread that end from now on.
    pub(crate) fn tag(&mut self, key: Key, tag: u32) {
        self.threads.tag(key, tag);
    }

    /// Takes the periods that are final. To be called after each change of a thread.
    pub(crate) fn take(&mut self, changed: Key) -> Vec<ThreadPeriod> {
        self.collect(changed);
        self.take_collected()
    }

    /// Takes the periods of threads that were changed by events of others.
    pub(crate) fn take_collected(&mut self) -> Vec<ThreadPeriod> {
        std::mem::take(&mut self.periods)
    }

    fn collect(&mut self, key: Key) {
        let (threads, thread, periods) = (&mut self.threads, self.known.get(&key), &mut self.periods);
        let before = periods.len();
        threads.take(key, |period| {
            periods.extend(thread.map(|thread| ThreadPeriod { thread: *thread, name: None, period }));
        });
        if periods.len() > before {
            let name = threads.shared_name_of(key);
            periods[before..].iter_mut().for_each(|period| period.name.clone_from(&name));
        }
    }

    /// Takes all other periods, until the end of the trace.
    pub(crate) fn take_rest(&mut self, time: i64) -> Vec<ThreadPeriod> {
        let mut rest = self.take_collected();
        let known = &self.known;
        self.threads.take_rest(time, |key, name, period| {
            rest.extend(known.get(&key).map(|thread| ThreadPeriod { thread: *thread, name: name.cloned(), period }));
        });
        rest
    }

    /// The name of a thread in the events of the kernel.
    pub(crate) fn name_of(&self, key: Key) -> Option<&str> {
        self.threads.name_of(key)
    }

    /// The name of a thread, as far as known, and its id.
    pub(crate) fn title_of(&self, key: Key) -> String {
        match self.name_of(key) {
            Some(name) => format!("{name} [{}]", key.1),
            None => format!("[{}]", key.1),
        }
    }
}

/// The CPU of an event.
fn cpu(event: &Event) -> Option<u64> {
    let contexts = [event.context.as_ref(), event.stream_context.as_ref(), event.packet_context.as_deref()];
    contexts.into_iter().flatten().find_map(|context| context.get("cpu_id")).and_then(Value::as_u64)
}

fn field<'e>(event: &'e Event, name: &str) -> Option<&'e Value> {
    event.fields.as_ref()?.get(name)
}

fn number(event: &Event, name: &str) -> u64 {
    field(event, name).and_then(Value::as_u64).unwrap_or_default()
}

fn bytes<'e>(event: &'e Event, name: &str) -> &'e [u8] {
    field(event, name).and_then(Value::as_bytes).unwrap_or_default()
}
