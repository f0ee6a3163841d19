//! Passes the states of threads to a format, and divides the time of spans.

use std::io;

use tracepoint_reader::{Event, SpanPart};

use crate::format::{Format, LossReport, Span, ThreadDetail, ThreadState};
use crate::samples;
use crate::sources::{Sources, ThreadId};
use crate::waits::{Key, Period, Sample, SpanTime, SpanTimes, StateChange, Waits};

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
        (detail > ThreadDetail::None).then_some(used)
    }

    /// The number of states that were passed.
    pub(crate) fn count(&self) -> u64 {
        self.count
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
        let noted = if is_of_kernel { self.waits.note(event, key) } else { None };
        let process = sources.thread(thread).process;
        let changed = match (noted, part) {
            (Some(changed), _) => changed,
            (None, Some(part)) if divides => {
                self.spans.add(event, part, key, process, &mut self.waits);
                StateChange::Thread(key)
            }
            _ => {
                if let Some(stack) = samples::stack(event).filter(|_| self.detail >= ThreadDetail::Samples) {
                    self.waits.sampled(key, Sample { time: event.time_ns, process, stack });
                }
                self.waits.runs_at(key, event.time_ns)
            }
        };
        self.pass(changed, sources, format)
    }

    /// Processes a loss. Only the kernel's streams have no process.
    pub(crate) fn loss(
        &mut self,
        loss: &LossReport<'_>,
        sources: &Sources,
        format: &mut impl Format,
    ) -> io::Result<()> {
        if sources.process_of(loss.thread).program.is_some() {
            return Ok(());
        }
        let (host, _) = self.waits.key(loss.thread, sources);
        let changed = self.waits.lost(host, loss.loss.from_ns, loss.loss.to_ns);
        self.pass(changed, sources, format)
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
        let mut all = Vec::new();
        self.waits.take_rest(last_ns, |key, period| all.push((key, period)));
        self.pass_all(&all, sources, format)
    }

    fn pass(&mut self, changed: StateChange, sources: &Sources, format: &mut impl Format) -> io::Result<()> {
        let mut all = Vec::new();
        self.waits.take(changed, |key, period| all.push((key, period)));
        self.pass_all(&all, sources, format)
    }

    fn pass_all(&mut self, all: &[(Key, Period)], sources: &Sources, format: &mut impl Format) -> io::Result<()> {
        for (key, period) in all {
            let Some(thread) = self.waits.thread_of(*key) else { continue };
            let woken_by = period.woken_by.map(|key| self.waits.title_of(key));
            let state = ThreadState {
                thread,
                thread_name: self.waits.name_of(*key),
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
