//! Prints the selected items.

use crate::failure::{Failure, Outcome};
use crate::message::{self, counted};
use crate::output;
use crate::selection::TimeRange;
use serde_json::json;
use std::io::Write;
use std::ops::ControlFlow;
use tracepoint_reader::Item;
use tracepoint_reader::json::write_item;
use tracepoint_reader::text::{TextOptions, TextWriter};
use tracepoint_session_spec::TraceFilter;

/// The selection of events to print. Losses and damage between them are printed as well.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// By name, level and fields.
    pub(crate) filter: TraceFilter,
    pub(crate) times: TimeRange,
    /// Maximum number of events.
    pub(crate) head: Option<u64>,
}

impl Selection {
    /// True if an item is selected. Damage always is; losses are selected by time.
    pub(crate) fn includes(&mut self, item: &Item) -> bool {
        let (from, to) = match item {
            Item::Event(event) => (event.time_ns, event.time_ns),
            Item::Loss(loss) => (loss.from_ns, loss.to_ns),
            _ => return true,
        };
        self.times.includes(from, to) && !matches!(item, Item::Event(event) if !self.filter.accepts(event))
    }

    /// Returns whether items are still wanted after an item that is not selected.
    pub(crate) fn wanted_after(&self, item: &Item) -> ControlFlow<()> {
        match item {
            Item::Event(event) if self.times.is_over(event.time_ns) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

pub(super) struct Printer {
    out: output::Raw,
    /// `None` for JSON.
    text: Option<TextWriter>,
    pub(super) selection: Selection,
    printed: u64,
    outcome: Outcome,
}

impl Printer {
    /// Prints text, or JSON without options for text.
    pub(super) fn new(text: Option<TextOptions>, selection: Selection) -> Self {
        let outcome = Outcome::Success;
        Self { out: output::raw(), text: text.map(TextWriter::new), selection, printed: 0, outcome }
    }

    /// Prints an item, if it is selected.
    pub(super) fn item(&mut self, item: &Item) -> Result<ControlFlow<()>, Failure> {
        if self.is_full() {
            return Ok(ControlFlow::Break(()));
        }
        if !self.selection.includes(item) {
            return Ok(self.selection.wanted_after(item));
        }
        self.print(item)?;
        self.printed += u64::from(matches!(item, Item::Event(_)));
        Ok(if self.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn is_full(&self) -> bool {
        self.selection.head.is_some_and(|head| self.printed >= head)
    }

    fn print(&mut self, item: &Item) -> Result<(), Failure> {
        if let Item::Damage(damage) = item {
            // Events before the damage appear before its message.
            self.out.flush()?;
            message::error(&format!("{damage}; not shown"));
            self.outcome = Outcome::Incomplete;
        }
        match (&mut self.text, item) {
            (None, _) => write_item(&mut self.out, item)?,
            (Some(_), Item::Damage(_)) => {}
            (Some(text), _) => text.write_item(&mut self.out, item)?,
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }

    /// Prints final notes: the number of packets without a checksum, and of events left out because they were late.
    pub(super) fn finish(mut self, unchecked: u64, late: u64) -> Result<Outcome, Failure> {
        if self.text.is_none() && unchecked > 0 {
            writeln!(self.out, "{}", json!({ "type": "unchecked", "packets": unchecked }))?;
        }
        if self.text.is_none() && late > 0 {
            writeln!(self.out, "{}", json!({ "type": "late", "events": late }))?;
        }
        self.out.flush()?;
        if unchecked > 0 {
            message::note_unchecked(unchecked);
        }
        if late > 0 {
            let events = counted(late, "event");
            message::error(&format!(
                "{events} arrived after later ones were shown, and were left out; the stored trace has them"
            ));
            self.outcome = Outcome::Incomplete;
        }
        Ok(self.outcome)
    }
}
