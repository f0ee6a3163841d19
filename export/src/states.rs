//! Passes the states of threads to a format, and divides the time of spans.

use std::io;

use tracepoint_reader::{Event, SpanPart};

use crate::format::{Format, LossReport, Span, Summary, ThreadDetail, ThreadState};
use crate::samples;
use crate::sources::{Sources, ThreadId};
use crate::waits::{Sample, SpanTime, SpanTimes, ThreadPeriod, Waits};

/// `PID_MAX_LIMIT`: all thread ids of Linux are below it.
const MAX_TID: u64 = 1 << 22;

/// What the threads of a trace do, as far as a format uses it.
#[derive(Debug)]
pub(crate) struct States {
    waits: Waits,
    detail: ThreadDetail,
    spans: SpanTimes,
    count: u64,
}

impl States {
    /// `None` if the format does not use them.
    pub(crate) fn new(detail: ThreadDetail) -> Option<Self> {
        let waits = if detail >= ThreadDetail::Spans { Waits::in_detail() } else { Waits::of_states() };
        let used = Self { waits, detail, spans: SpanTimes::default(), count: 0 };
        (detail >= ThreadDetail::States).then_some(used)
    }

    /// Adds the number of states that were passed, and whether there are further threads, to the counts of an export.
    pub(crate) fn count(&self, summary: &mut Summary) {
        summary.thread_states = self.count;
        summary.has_further_threads = self.waits.has_further_threads();
    }

    /// Returns whether the trace has said when threads run.
    pub(crate) fn has_begun(&self) -> bool {
        self.waits.has_switches()
    }

    /// Processes an event, which begins or ends a span if it has a part. `is_of_kernel` is true if it may be an event of the kernel.
    pub(crate) fn event(
        &mut self,
        event: &Event,
        (part, is_of_kernel): (Option<SpanPart>, bool),
        thread: ThreadId,
        sources: &Sources,
        format: &mut impl Format,
    ) -> io::Result<()> {
        let divides = part.is_some() && self.detail >= ThreadDetail::Spans;
        // Code was mapped before its event.
        if event.name() == samples::MAPPING {
            return Ok(());
        }
        // Nothing follows from events of the process before the first one of the kernel, except that spans begin.
        if !is_of_kernel && !divides && !self.waits.has_switches() {
            return Ok(());
        }
        let key = self.waits.key(thread, sources);
        let noted = if is_of_kernel { self.waits.note(event, key, thread, sources) } else { None };
        let process = sources.thread(thread).process;
        let changed = match (noted, part) {
            (Some(changed), _) => changed,
            (None, Some(part)) if divides => {
                self.spans.add(event, part, key, process, &mut self.waits);
                key
            }
            _ => {
                if let Some(stack) = samples::stack(event).filter(|_| self.detail >= ThreadDetail::Samples) {
                    self.waits.sampled(key, Sample { time: event.time_ns, process, stack });
                }
                self.waits.runs_at(key, event.time_ns);
                key
            }
        };
        let all = self.waits.take(changed);
        self.pass(&all, sources, format)
    }

    /// Processes a loss.
    pub(crate) fn loss(
        &mut self,
        loss: &LossReport<'_>,
        sources: &Sources,
        format: &mut impl Format,
    ) -> io::Result<()> {
        self.waits.lost(loss.thread, sources, loss.loss.from_ns, loss.loss.to_ns);
        let all = self.waits.take_collected();
        self.pass(&all, sources, format)
    }

    /// Takes how the time of a span divides; `None` if the format does not use it.
    pub(crate) fn time_of(&mut self, span: &Span<'_>, sources: &Sources) -> Option<SpanTime> {
        let id = (sources.thread(span.thread).process, span.id);
        let end = span.end_ns.unwrap_or(span.last_ns);
        let divides = self.detail >= ThreadDetail::Spans;
        divides.then(|| self.spans.take(id, end, span.begin_ns.abs_diff(end), &self.waits))
    }

    /// Passes the states that last until the end of the trace.
    pub(crate) fn finish(&mut self, last_ns: i64, sources: &Sources, format: &mut impl Format) -> io::Result<()> {
        let all = self.waits.take_rest(last_ns);
        self.pass(&all, sources, format)
    }

    fn pass(&mut self, all: &[ThreadPeriod], sources: &Sources, format: &mut impl Format) -> io::Result<()> {
        for ThreadPeriod { thread, name, period } in all {
            // Without a process, or with an id that Linux does not have, it cannot be drawn next to its thread.
            let of_process = sources.process_of(*thread).shown_pid;
            if of_process.is_none() || sources.thread(*thread).tid.is_none_or(|tid| tid >= MAX_TID) {
                continue;
            }
            let woken_by = period.woken_by.map(|key| self.waits.title_of(key));
            let state = ThreadState {
                thread: *thread,
                thread_name: name.as_deref(),
                begin_ns: period.from,
                end_ns: period.to,
                cause: period.cause,
                call: period.call.as_deref(),
                woken_by: woken_by.as_deref(),
            };
            self.count += 1;
            format.thread_state(&state, sources)?;
        }
        Ok(())
    }
}
