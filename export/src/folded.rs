//! Folded stacks: a line for each stack, with its frames from the outermost to the innermost, and a number.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use tracepoint_reader::text::is_control;
use tracepoint_reader::{Damage, Event, SpanPart, StructValue, Value};

use crate::format::{Format, LossReport, Needs, Span, Summary, ThreadDetail};
use crate::inside::{NameSelection, SelectedSpans};
use crate::off_cpu::OffCpu;
use crate::samples::Samples;
use crate::sources::{Sources, ThreadId};
use crate::symbols::SymbolTable;
use crate::times::TimeTree;

/// Maximum number of different span paths.
const MAX_PATHS: usize = 1 << 19;
/// Maximum total size in bytes of the names in written paths. Without it, a chain of nested paths would grow quadratically. The time of further paths
/// is summed up in one line.
const MAX_PATHS_SIZE: usize = 16 << 20;
/// Maximum number of different call stacks. Further ones are counted together.
const MAX_STACKS: usize = 1 << 17;
/// The context with the call stack of an event.
const CALL_STACK: &str = "callstack";

/// Writes folded stacks, the input of flame graphs: `program;outer;inner 1234`.
///
/// All lines are written at the end. Characters with a special meaning in this format are replaced by `_`.
#[derive(Debug)]
pub struct FoldedStacks<W: Write> {
    out: W,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Spans(Times),
    Calls(Calls),
    Samples(Box<Samples>, Option<SelectedSpans>),
    Waits(Box<OffCpu>),
}

#[derive(Debug, Default)]
struct Times {
    by_process: BTreeMap<u32, TimeTree>,
    count: usize,
}

impl Times {
    fn add(&mut self, process: u32, outer: &[&str], mut times: TimeTree) {
        for name in outer.iter().rev() {
            times = TimeTree::of(name, 0, times);
        }
        let all = self.by_process.entry(process).or_default();
        let before = all.len();
        all.add(times, MAX_PATHS.saturating_sub(self.count));
        self.count += all.len() - before;
    }

    fn write(&self, out: &mut impl Write, sources: &Sources) -> io::Result<()> {
        let (mut more, mut size) = (0_u64, 0);
        for (process, times) in &self.by_process {
            more = more.saturating_add(times.further());
            let mut frames = vec![program(sources, *process)];
            times.paths(&mut frames, &mut |frames, time| {
                size += if time == 0 { 0 } else { frames.iter().map(String::len).sum::<usize>() };
                if size > MAX_PATHS_SIZE {
                    more = more.saturating_add(time);
                } else if time > 0 {
                    line(out, frames.iter().map(String::as_str), time)?;
                }
                Ok(())
            })?;
        }
        if more > 0 { line(out, ["[further paths]"], more) } else { Ok(()) }
    }
}

/// The number of occurrences of each call stack.
#[derive(Debug, Default)]
struct Calls {
    /// By process, event name, and addresses from the innermost to the outermost.
    stacks: HashMap<(u32, String, Vec<u64>), u64>,
    /// Occurrences of further stacks.
    more: u64,
    without: u64,
    lost: u64,
    symbols: SymbolTable,
}

impl<W: Write> FoldedStacks<W> {
    /// Sums the time in nanoseconds spent in spans, excluding their children. A span with an unknown end does not count. The names of all written
    /// paths are limited to 16 MiB in total; the time of further paths is the frame `[further paths]`.
    pub fn of_spans(out: W) -> Self {
        Self { out, source: Source::Spans(Times::default()) }
    }

    /// Counts the events with each call stack, for channels that record them (`Context::CallStack`). Lost events whose number is known are the frame
    /// `[lost]`, events without a call stack `[no call stack]`.
    pub fn of_call_stacks(out: W) -> Self {
        Self { out, source: Source::Calls(Calls::default()) }
    }

    /// Counts the samples of the processor with each call stack (`tracectl record --samples`).
    pub fn of_samples(out: W) -> Self {
        Self { out, source: Source::Samples(Box::default(), None) }
    }

    /// Counts only the samples of threads inside a span whose name `select` accepts. An asynchronous span is inside its polls.
    pub fn of_samples_inside(out: W, select: impl Fn(&str) -> bool + 'static) -> Self {
        Self { out, source: Source::Samples(Box::default(), Some(SelectedSpans::new(NameSelection::new(select)))) }
    }

    /// Sums the time in nanoseconds in which threads did not run (`tracectl record --waits`), by their open spans, by cause and by system call.
    pub fn of_waits(out: W) -> Self {
        Self { out, source: Source::Waits(Box::new(OffCpu::new(None))) }
    }

    /// Sums only the time of threads inside a span whose name `select` accepts. An asynchronous span is inside its polls.
    pub fn of_waits_inside(out: W, select: impl Fn(&str) -> bool + 'static) -> Self {
        Self { out, source: Source::Waits(Box::new(OffCpu::new(Some(NameSelection::new(select))))) }
    }
}

/// The addresses of an event's call stack; `None` if it has none.
fn addresses(event: &Event) -> Option<Vec<u64>> {
    let contexts = [&event.stream_context, &event.context].into_iter().flatten();
    match contexts.flat_map(StructValue::iter).find(|(name, _)| *name == CALL_STACK)? {
        (_, Value::Array(values)) if !values.is_empty() => values.iter().map(Value::as_u64).collect(),
        _ => None,
    }
}

/// Returns whether a function belongs to the code that fires events, rather than to the program.
fn is_of_tracer(name: &str) -> bool {
    let is_own = ["tracepoint_core::", "<tracepoint_core::"].iter().any(|crate_name| name.starts_with(crate_name));
    let drops_own = name.starts_with("core::ptr::drop_in_place") && name.contains("tracepoint_core::");
    is_own || drops_own || name.contains("::__tracepoint_")
}

fn program(sources: &Sources, process: u32) -> String {
    let pid = || sources.process(process).pid.map_or_else(|| "[no process]".to_owned(), |pid| pid.to_string());
    sources.program(process).map_or_else(pid, str::to_owned)
}

fn line<'a>(out: &mut impl Write, frames: impl IntoIterator<Item = &'a str>, number: u64) -> io::Result<()> {
    for (index, frame) in frames.into_iter().enumerate() {
        let plain = frame.replace(|c: char| c == ';' || is_control(c), "_");
        write!(out, "{}{plain}", if index == 0 { "" } else { ";" })?;
    }
    writeln!(out, " {number}")
}

impl Calls {
    fn write(&mut self, out: &mut impl Write, sources: &Sources) -> io::Result<()> {
        // Different addresses in the same function are one frame.
        let mut folded: BTreeMap<Vec<String>, u64> = BTreeMap::new();
        for ((process, event, stack), count) in &self.stacks {
            let mut frames = vec![program(sources, *process)];
            let process = sources.process(*process);
            for (depth, address) in stack.iter().enumerate().rev() {
                // A return address is the address after the call, which may already belong to the next function.
                let call = if depth == 0 { *address } else { address.saturating_sub(1) };
                frames.extend_from_slice(self.symbols.functions(&process.modules, call));
            }
            // Functions of the tracer that fire a span's event may still precede the site.
            while frames.len() > 1 && frames.last().is_some_and(|name| is_of_tracer(name)) {
                frames.pop();
            }
            frames.push(event.clone());
            *folded.entry(frames).or_default() += count;
        }
        for (frames, count) in &folded {
            line(out, frames.iter().map(String::as_str), *count)?;
        }
        for (frame, count) in
            [("[further stacks]", self.more), ("[no call stack]", self.without), ("[lost]", self.lost)]
        {
            if count > 0 {
                line(out, [frame], count)?;
            }
        }
        Ok(())
    }
}

fn write_samples(samples: &mut Samples, out: &mut impl Write, sources: &Sources) -> io::Result<()> {
    let (folded, more) = samples.folded();
    for ((process, frames), count) in folded {
        let program = program(sources, *process);
        line(out, [program.as_str()].into_iter().chain(frames.iter().map(String::as_str)), *count)?;
    }
    if more > 0 { line(out, ["[further stacks]"], more) } else { Ok(()) }
}

fn write_waits(waits: &mut OffCpu, out: &mut impl Write, sources: &Sources) -> io::Result<()> {
    let (rows, more) = waits.finish(sources);
    // The kernel's trace of a process is another process.
    let mut folded: BTreeMap<(String, Vec<&str>), u64> = BTreeMap::new();
    for ((process, frames), time) in rows {
        let sum = folded.entry((program(sources, process), frames)).or_default();
        *sum = sum.saturating_add(time);
    }
    for ((program, frames), time) in folded {
        line(out, [program.as_str()].into_iter().chain(frames), time)?;
    }
    if more > 0 { line(out, ["[further stacks]"], more) } else { Ok(()) }
}

impl<W: Write> Format for FoldedStacks<W> {
    fn needs(&self) -> Needs {
        match self.source {
            Source::Spans(_) => Needs::TIMES,
            Source::Samples(_, Some(_)) => Needs::SLICES,
            Source::Waits(_) => Needs { threads: ThreadDetail::Events, ..Needs::SLICES },
            Source::Calls(_) | Source::Samples(_, None) => Needs::EVENTS,
        }
    }

    fn event(&mut self, event: &Event, thread: ThreadId, sources: &Sources) -> io::Result<()> {
        if let Source::Samples(samples, spans) = &mut self.source {
            let is_selected = spans.as_ref().is_none_or(|spans| spans.is_inside(thread, sources));
            samples.add(event, sources.thread(thread).process, is_selected);
        }
        if let Source::Waits(waits) = &mut self.source {
            waits.event(event, thread, sources);
        }
        if let Source::Calls(calls) = &mut self.source {
            let Some(addresses) = addresses(event) else {
                calls.without += 1;
                return Ok(());
            };
            let key = (sources.thread(thread).process, event.name().to_owned(), addresses);
            if let Some(count) = calls.stacks.get_mut(&key) {
                *count += 1;
            } else if calls.stacks.len() < MAX_STACKS {
                calls.stacks.insert(key, 1);
            } else {
                calls.more += 1;
            }
        }
        Ok(())
    }

    fn unselected(&mut self, event: &Event, thread: ThreadId, sources: &Sources) -> io::Result<()> {
        if let Source::Waits(waits) = &mut self.source {
            waits.event(event, thread, sources);
        }
        Ok(())
    }

    fn span_event(&mut self, event: &Event, part: SpanPart, thread: ThreadId, sources: &Sources) -> io::Result<()> {
        match &mut self.source {
            Source::Samples(_, Some(spans)) => spans.add(event, part, thread, sources),
            Source::Waits(waits) => waits.span_event(event, part, thread, sources),
            _ => {}
        }
        Ok(())
    }

    fn span(&mut self, _span: &Span<'_>, _sources: &Sources) -> io::Result<()> {
        Ok(())
    }

    fn times(&mut self, process: u32, outer: u32, times: TimeTree, sources: &Sources) -> io::Result<()> {
        if let Source::Spans(all) = &mut self.source {
            all.add(process, &sources.path(outer), times);
        }
        Ok(())
    }

    fn loss(&mut self, loss: &LossReport<'_>, sources: &Sources) -> io::Result<()> {
        match &mut self.source {
            Source::Calls(calls) => calls.lost = calls.lost.saturating_add(loss.events.unwrap_or(0)),
            Source::Waits(waits) => waits.loss(loss, sources),
            _ => {}
        }
        Ok(())
    }

    fn damage(&mut self, _damage: &Damage) -> io::Result<()> {
        Ok(())
    }

    fn count(&self, summary: &mut Summary) {
        if let Source::Waits(waits) = &self.source {
            waits.count(summary);
        }
    }

    fn finish(&mut self, _summary: &Summary, sources: &Sources) -> io::Result<()> {
        match &mut self.source {
            Source::Spans(times) => times.write(&mut self.out, sources)?,
            Source::Calls(calls) => calls.write(&mut self.out, sources)?,
            Source::Samples(samples, _) => write_samples(samples, &mut self.out, sources)?,
            Source::Waits(waits) => write_waits(waits, &mut self.out, sources)?,
        }
        self.out.flush()
    }
}
