//! Folded stacks: a line for each stack, its frames from the outermost on, and a number.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use tracepoint_reader::{Damage, Event, StructValue, Value};

use crate::format::{Format, LossReport, Needs, Span, Summary};
use crate::sources::{Process, Sources, ThreadId};
use crate::symbols::SymbolTable;

/// The largest size of different paths of spans, in bytes of their names: paths that go on from each other, because ends are missing, would grow
/// with the square of their number. The time of further ones is counted together.
const MAX_PATHS_SIZE: usize = 16 << 20;
/// The largest number of different call stacks; further ones are counted together.
const MAX_STACKS: usize = 1 << 17;
/// The context with the call stack of an event.
const CALL_STACK: &str = "callstack";

/// Writes folded stacks, which flame graphs are drawn from: `program;outer;inner 1234`.
///
/// All of them are written at the end. Characters that have a meaning in this format are replaced by `_`.
#[derive(Debug)]
pub struct Folded<W: Write> {
    out: W,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Spans(Times),
    Calls(Calls),
}

/// The time that is spent in spans, in nanoseconds.
#[derive(Debug, Default)]
struct Times {
    /// By process and path.
    by_path: BTreeMap<(u32, u32), u64>,
    /// The size of the paths.
    size: usize,
    /// In further paths.
    more: u64,
}

impl Times {
    fn add(&mut self, process: u32, path: u32, time: u64, sources: &Sources) {
        let (key, size) = ((process, path), self.size + sources.path_size(path));
        let sum = match self.by_path.get_mut(&key) {
            Some(sum) => sum,
            None if time == 0 => return,
            None if size > MAX_PATHS_SIZE => &mut self.more,
            None => {
                self.size = size;
                self.by_path.entry(key).or_default()
            }
        };
        *sum = sum.saturating_add(time);
    }

    fn write(&self, out: &mut impl Write, sources: &Sources) -> io::Result<()> {
        for ((process, path), time) in &self.by_path {
            let program = program(sources.process(*process));
            line(out, [program.as_str()].into_iter().chain(sources.path(*path)), *time)?;
        }
        if self.more > 0 { line(out, ["[further paths]"], self.more) } else { Ok(()) }
    }
}

/// How often each call stack occurs.
#[derive(Debug, Default)]
struct Calls {
    /// By the process, the name of the event, and the addresses from the innermost on.
    stacks: HashMap<(u32, String, Vec<u64>), u64>,
    /// In further stacks.
    more: u64,
    without: u64,
    lost: u64,
    symbols: SymbolTable,
}

impl<W: Write> Folded<W> {
    /// The time that is spent in spans, and not in their children: nanoseconds. A span whose end is not known counts nothing.
    /// The names on different paths are 16 MiB at most; the time of further ones is the frame `[further paths]`.
    pub fn of_spans(out: W) -> Self {
        Self { out, source: Source::Spans(Times::default()) }
    }

    /// How many events there are with each call stack, for channels that record them (`Context::CallStack`). Lost events whose number is known
    /// are the frame `[lost]`, events without a call stack `[no call stack]`.
    pub fn of_call_stacks(out: W) -> Self {
        Self { out, source: Source::Calls(Calls::default()) }
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

fn program(process: &Process) -> String {
    process.program.clone().unwrap_or_else(|| process.pid.to_string())
}

/// One line.
fn line<'a>(out: &mut impl Write, frames: impl IntoIterator<Item = &'a str>, number: u64) -> io::Result<()> {
    for (index, frame) in frames.into_iter().enumerate() {
        let plain = frame.replace(|c: char| c == ';' || c.is_control(), "_");
        write!(out, "{}{plain}", if index == 0 { "" } else { ";" })?;
    }
    writeln!(out, " {number}")
}

impl Calls {
    fn write(&mut self, out: &mut impl Write, sources: &Sources) -> io::Result<()> {
        // Different addresses of one function are one frame.
        let mut folded: BTreeMap<Vec<String>, u64> = BTreeMap::new();
        for ((process, event, stack), count) in &self.stacks {
            let process = sources.process(*process);
            let mut frames = vec![program(process)];
            for (depth, address) in stack.iter().enumerate().rev() {
                // A return address is behind the call, and may be that of the next function.
                let call = if depth == 0 { *address } else { address.saturating_sub(1) };
                frames.extend_from_slice(self.symbols.functions(&process.modules, call));
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

impl<W: Write> Format for Folded<W> {
    fn needs(&self) -> Needs {
        match self.source {
            Source::Spans(_) => Needs::SPANS,
            Source::Calls(_) => Needs::EVENTS,
        }
    }

    fn event(&mut self, event: &Event, thread: ThreadId, sources: &Sources) -> io::Result<()> {
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

    fn span(&mut self, span: &Span<'_>, sources: &Sources) -> io::Result<()> {
        if let Source::Spans(times) = &mut self.source {
            times.add(sources.thread(span.thread).process, span.path, span.self_ns, sources);
        }
        Ok(())
    }

    fn loss(&mut self, loss: &LossReport<'_>, _sources: &Sources) -> io::Result<()> {
        if let Source::Calls(calls) = &mut self.source {
            calls.lost += loss.events.unwrap_or(0);
        }
        Ok(())
    }

    fn damage(&mut self, _damage: &Damage) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, _summary: &Summary, sources: &Sources) -> io::Result<()> {
        match &mut self.source {
            Source::Spans(times) => times.write(&mut self.out, sources)?,
            Source::Calls(calls) => calls.write(&mut self.out, sources)?,
        }
        self.out.flush()
    }
}
