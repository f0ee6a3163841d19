//! Passes the items of a trace to a format.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use tracepoint_reader::metadata::EventClass;
use tracepoint_reader::{Event, Item, Loss, SpanPart, Stream, Trace};

use crate::format::{Format, LossReport, Span, SpanEnd, Summary, ThreadDetail};
use crate::samples::{MAPPING, maps_code};
use crate::sources::{Sources, ThreadId};
use crate::spans::{Kind, Output, Spans};
use crate::states::States;
use crate::times::TimeTree;

/// Passes the items of a trace, in the order of their times, to a format.
///
/// Keeps in memory the open spans (at most 262,144, and about 64 MiB), and the names of threads, processes and span paths.
#[derive(Debug)]
pub struct Exporter<F> {
    format: F,
    sources: Sources,
    spans: Spans,
    states: Option<States>,
    classes: Classes,
    /// The thread of the last event of each stream.
    threads: HashMap<usize, (Arc<Stream>, ThreadId)>,
    has_begun: bool,
    summary: Summary,
}

/// What is known of event classes, by the addresses of the classes.
#[derive(Debug, Default)]
struct Classes(HashMap<usize, (Arc<EventClass>, Role, bool)>);

#[derive(Clone, Debug)]
enum Role {
    Begin { name: Arc<str>, is_async: bool, is_poll: bool, is_root_without_parent: bool, end_channels: Arc<[u64]> },
    End(Arc<str>),
    Other,
}

impl Classes {
    /// The role of an event in spans, and whether it may be the kernel's about a thread.
    fn role(&mut self, event: &Event) -> (Role, bool) {
        let key = Arc::as_ptr(&event.class) as usize;
        // Keep the class alive, so that its address is not reused.
        let (_, role, is_of_kernel) = self.0.entry(key).or_insert_with(|| {
            let is_of_kernel = ["perf:", "sched:", "raw_syscalls:"].iter().any(|of| event.name().starts_with(of));
            (Arc::clone(&event.class), Role::of(event), is_of_kernel)
        });
        (role.clone(), *is_of_kernel)
    }
}

impl Role {
    fn of(event: &Event) -> Self {
        match event.class.span() {
            None => Self::Other,
            Some((name, SpanPart::End)) => Self::End(name.into()),
            Some((name, _)) => {
                let polls = format!("{name}_poll_begin");
                let classes = || event.stream.metadata.streams().flat_map(|class| class.events.values());
                let is_async = classes().any(|class| class.name == polls);
                let whole = name.strip_suffix("_poll").map(|whole| format!("{whole}_begin"));
                let is_poll = whole.is_some_and(|whole| classes().any(|class| class.name == whole));
                let ends = classes().filter(|class| class.span().is_some_and(|end| end == (name, SpanPart::End)));
                let end_channels = ends.map(|class| class.stream_id).collect();
                let is_root_without_parent = name.starts_with("tracing:");
                Self::Begin { name: name.into(), is_async, is_poll, is_root_without_parent, end_channels }
            }
        }
    }
}

impl<F: Format> Exporter<F> {
    /// Creates an exporter to a format.
    pub fn new(format: F) -> Self {
        let needs = format.needs();
        let (spans, states) = (Spans::new(needs), States::new(needs.threads));
        let (sources, classes, threads) = (Sources::default(), Classes::default(), HashMap::new());
        Self { format, sources, spans, states, classes, threads, has_begun: false, summary: Summary::default() }
    }

    /// Limits the number of open spans to a value of 1 to 262,144, the default. If there are more, the oldest one is given up.
    #[must_use]
    pub fn max_open_spans(mut self, spans: usize) -> Self {
        self.spans.set_max_open(spans);
        self
    }

    /// The counts so far.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The format.
    pub fn format_mut(&mut self) -> &mut F {
        &mut self.format
    }

    /// Processes the mappings of code before a time. Samples after it need them for the names of functions. Reads the trace up to this time, if it has
    /// mappings.
    ///
    /// # Errors
    /// The errors of the output.
    pub fn code_before(&mut self, trace: &Trace, time_ns: i64) -> io::Result<()> {
        let mut classes =
            trace.metadata().flat_map(|(_, metadata)| metadata.streams()).flat_map(|class| class.events.values());
        if classes.all(|class| class.name != MAPPING) {
            return Ok(());
        }
        let before = trace.items().take_while(|item| !matches!(item, Item::Event(event) if event.time_ns >= time_ns));
        before.filter(maps_code).try_for_each(|item| self.item(&item))
    }

    /// Processes the next item.
    ///
    /// # Errors
    /// The errors of the output.
    pub fn item(&mut self, item: &Item) -> io::Result<()> {
        match item {
            Item::Event(event) => self.event(event),
            Item::Loss(loss) => self.loss(loss),
            Item::Damage(damage) => {
                self.summary.damage += 1;
                self.format.damage(damage)
            }
            _ => Ok(()),
        }
    }

    /// Processes an item that is not to be exported, as far as the states of threads follow from it. To be called in the order of times, with
    /// [`item`](Self::item) for the other items.
    ///
    /// # Errors
    /// The errors of the output.
    pub fn unselected(&mut self, item: &Item) -> io::Result<()> {
        let Item::Event(event) = item else { return Ok(()) };
        if self.format.needs().threads == ThreadDetail::None {
            return Ok(());
        }
        let (_, is_of_kernel) = self.classes.role(event);
        if is_of_kernel {
            let thread = self.sources.of_event(event);
            self.format.unselected(event, thread, &self.sources)?;
        }
        let Some(states) = &mut self.states else { return Ok(()) };
        if !(is_of_kernel || states.has_begun()) {
            return Ok(());
        }
        if !std::mem::replace(&mut self.has_begun, true) {
            self.format.begin(event.time_ns)?;
        }
        let thread = self.sources.of_event(event);
        self.spans.goes_on_until(event.time_ns);
        states.event(event, (None, is_of_kernel), thread, &self.sources, &mut self.format)
    }

    /// Ends the export: spans that are still open are written as open. Returns the format, and the counts.
    ///
    /// # Errors
    /// The errors of the output.
    pub fn finish(mut self) -> io::Result<(F, Summary)> {
        let states = self.states.as_mut();
        let mut out = ToFormat { format: &mut self.format, summary: &mut self.summary, states };
        self.spans.finish(&mut self.sources, &mut out)?;
        if let Some(states) = &mut self.states {
            states.finish(self.spans.last_ns(), &self.sources, &mut self.format)?;
            states.count(&mut self.summary);
        }
        self.format.count(&mut self.summary);
        let guesses = self.spans.guesses();
        self.summary.outside += guesses.outside;
        (self.summary.guessed_parents, self.summary.parents_given_up) = (guesses.parents, guesses.given_up);
        self.format.finish(&self.summary, &self.sources)?;
        Ok((self.format, self.summary))
    }

    fn begin(&mut self, first_ns: i64) -> io::Result<()> {
        if std::mem::replace(&mut self.has_begun, true) { Ok(()) } else { self.format.begin(first_ns) }
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.begin(event.time_ns)?;
        let thread = self.sources.of_event(event);
        self.threads
            .entry(Arc::as_ptr(&event.stream) as usize)
            .and_modify(|(_, last)| *last = thread)
            .or_insert_with(|| (Arc::clone(&event.stream), thread));
        let summary = &mut self.summary;
        summary.events += 1;
        let (first, last) = summary.range.unwrap_or((event.time_ns, event.time_ns));
        summary.range = Some((first.min(event.time_ns), last.max(event.time_ns)));
        self.spans.goes_on_until(event.time_ns);
        let needs = self.format.needs();
        let (role, is_of_kernel) = if needs.spans { self.classes.role(event) } else { (Role::Other, false) };
        if let Some(states) = &mut self.states {
            let part = match role {
                Role::Begin { .. } => Some(SpanPart::Begin),
                Role::End(_) => Some(SpanPart::End),
                Role::Other => None,
            };
            states.event(event, (part, is_of_kernel), thread, &self.sources, &mut self.format)?;
        }
        let (sources, spans) = (&mut self.sources, &mut self.spans);
        let mut out = ToFormat { format: &mut self.format, summary, states: self.states.as_mut() };
        match role {
            Role::Begin { name, is_async, is_poll, is_root_without_parent, end_channels } => {
                let end_channels = &end_channels;
                let kind = Kind { name: &name, is_async, is_poll, is_root_without_parent, end_channels };
                out.format.span_event(event, SpanPart::Begin, thread, sources)?;
                spans.begin(event, kind, thread, sources, &mut out)
            }
            Role::End(name) => {
                out.format.span_event(event, SpanPart::End, thread, sources)?;
                spans.end(event, &name, thread, sources, &mut out)
            }
            Role::Other => {
                out.summary.others += 1;
                if out.format.needs().inside > 0 && !spans.inside(event, thread, sources) {
                    out.summary.outside += 1;
                }
                out.format.event(event, thread, sources)
            }
        }
    }

    fn loss(&mut self, loss: &Loss) -> io::Result<()> {
        self.begin(loss.from_ns)?;
        let thread = match self.threads.get(&(Arc::as_ptr(&loss.stream) as usize)) {
            Some((_, thread)) => *thread,
            None => self.sources.of_stream(&loss.stream),
        };
        let states = self.states.as_mut();
        let mut out = ToFormat { format: &mut self.format, summary: &mut self.summary, states };
        self.spans.interrupt(thread, loss.stream.class.id, &mut self.sources, &mut out)?;
        let report = LossReport::new(loss, thread);
        match report.events {
            Some(events) => self.summary.lost_events = self.summary.lost_events.saturating_add(events),
            None => self.summary.losses_of_unknown_size += 1,
        }
        if let Some(states) = &mut self.states {
            states.loss(&report, &self.sources, &mut self.format)?;
        }
        self.format.loss(&report, &self.sources)
    }
}

/// Passes spans to a format, and counts them.
struct ToFormat<'a, F> {
    format: &'a mut F,
    summary: &'a mut Summary,
    states: Option<&'a mut States>,
}

impl<F: Format> Output for ToFormat<'_, F> {
    fn span(&mut self, span: &Span<'_>, sources: &Sources) -> io::Result<()> {
        let count = match (span.begin, span.end) {
            (Some(_), SpanEnd::Ended(..)) => &mut self.summary.spans_closed,
            (Some(_), SpanEnd::Open) => &mut self.summary.spans_open,
            (Some(_), SpanEnd::Forgotten) => &mut self.summary.spans_forgotten,
            (None, _) => &mut self.summary.spans_without_begin,
        };
        *count += 1;
        let time = self.states.as_mut().and_then(|states| states.time_of(span, sources));
        self.format.span(&Span { time: time.as_ref(), ..*span }, sources)
    }

    fn times(&mut self, process: u32, path: u32, times: TimeTree, sources: &Sources) -> io::Result<()> {
        self.format.times(process, path, times, sources)
    }
}
