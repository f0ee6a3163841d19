//! One pass over the events of traces, in time order, which produces the data of the page.
//!
//! Memory and the size of the page are bounded regardless of the number of events: each slice of time has counts, and spans and events are kept
//! in a [`Sample`].

use super::data::{Data, EventRow, LossRow, SpanRow};
use super::kinds::Kinds;
use super::names::Names;
use super::sample::{Sample, scattered};
use super::states::StateSample;
use super::text::cut;
use super::tracks::Tracks;
use crate::failure::Failure;
use crate::progress::LiveLine;
use crate::slices::Slices;
use crate::statistics::{Input, PassSummary};
use std::io;
use tracepoint_export::{
    Exporter, Format, LossReport, Needs, Sources, Span, SpanEnd, Summary, ThreadDetail, ThreadId, ThreadState,
};
use tracepoint_reader::text::{Style, TextOptions, TextWriter};
use tracepoint_reader::{Damage, Event, Item, Loss, Trace};

/// Maximum number of spans in the page, and of events.
const SPANS: usize = 1 << 14;
const EVENTS: usize = 1 << 14;
/// Number of equal time slices from which they are sampled; with 256 tracks, or as many kinds, the sample keeps at least one per cell.
const PARTS: usize = 64;
const MAX_CELLS: usize = SPANS / PARTS;
/// Maximum number of losses in the page.
const LOSSES: usize = 2000;
/// Maximum number of damage messages in the page; the verb prints all of them.
const DAMAGE: usize = 100;

struct ReportBuilder<'t> {
    tracks: Tracks,
    kinds: Kinds<'t>,
    parts: Slices,
    spans: Sample<(i64, SpanRow)>,
    states: StateSample,
    events: Sample<(i64, EventRow)>,
    losses: Sample<(Loss, Option<u64>)>,
    damage: Vec<String>,
    names: Names,
    text: TextWriter,
    count: u64,
    /// The end of the selected time; spans without an end are cut there.
    last: i64,
}

pub(super) fn gather(input: &Input<'_>, trace: &Trace) -> Result<(Data, PassSummary), Failure> {
    let (first, last) = trace.range().unwrap_or_default();
    let times = input.time_range(trace)?;
    let (first, last) =
        (times.since.map_or(first, |since| since.max(first)), times.until.map_or(last, |until| until.min(last)));
    let range = (first, last.max(first));
    let mut exporter = Exporter::new(ReportBuilder {
        tracks: Tracks::new(range),
        kinds: Kinds::new(trace, range),
        parts: Slices::new(range, PARTS),
        spans: Sample::new(SPANS),
        states: StateSample::new(range),
        events: Sample::new(EVENTS),
        losses: Sample::new(LOSSES),
        damage: Vec::new(),
        names: Names::default(),
        text: TextWriter::new(TextOptions::from(Style::Compact)),
        count: 0,
        last: range.1,
    });
    let mut line = LiveLine::new();
    let mut outcome = Ok(());
    let seen = input.all_in_order(trace, |item, is_selected| {
        if !is_selected {
            if outcome.is_ok() {
                outcome = exporter.unselected(item);
            }
            return;
        }
        if let Item::Event(event) = item {
            let gathering = exporter.format_mut();
            gathering.count(event);
            if gathering.count.is_multiple_of(1 << 14) {
                line.show("events", gathering.count, || "read".to_owned());
            }
        }
        if outcome.is_ok() {
            outcome = exporter.item(item);
        }
    })?;
    let (gathering, summary) = outcome.and_then(|()| exporter.finish())?;
    let mut data = gathering.into_data(range.0, &summary);
    (data.losses.lost, data.losses.lost_more) = (seen.lost, seen.lost_more);
    Ok((data, seen))
}

impl Format for ReportBuilder<'_> {
    fn needs(&self) -> Needs {
        let mut needs = Needs::SLICES;
        needs.threads = ThreadDetail::Spans;
        needs
    }

    /// Counts every event as it is read, including those of spans.
    fn event(&mut self, _: &Event, _: ThreadId, _: &Sources) -> io::Result<()> {
        Ok(())
    }

    fn span(&mut self, span: &Span<'_>, _: &Sources) -> io::Result<()> {
        if let (Some(begin), SpanEnd::Ended(..) | SpanEnd::Open) = (span.begin, span.end) {
            let track = self.tracks.track(begin);
            let (end, open) = span.end_ns.map_or((self.last, true), |end| (end, false));
            let length = end.abs_diff(span.begin_ns);
            let (text, names, states) = (&mut self.text, &mut self.names, &mut self.states);
            self.spans.offer(track * PARTS + self.parts.index(span.begin_ns), length, || {
                let (name, text) = (names.index(span.name), fields(text, begin));
                let (division, waits) = span.time.map(|time| states.divide(time)).unwrap_or_default();
                (span.begin_ns, SpanRow { track, name, at: 0, length, open, text, division, waits })
            });
        }
        Ok(())
    }

    fn thread_state(&mut self, state: &ThreadState<'_>, sources: &Sources) -> io::Result<()> {
        self.states.offer(state, sources);
        Ok(())
    }

    fn loss(&mut self, report: &LossReport<'_>, _: &Sources) -> io::Result<()> {
        // The largest are kept; a loss of unknown size may be the largest.
        let priority = report.events.unwrap_or(u64::MAX);
        self.losses.offer(0, priority, || (report.loss.clone(), report.events));
        Ok(())
    }

    fn damage(&mut self, damage: &Damage) -> io::Result<()> {
        if self.damage.len() < DAMAGE {
            self.damage.push(cut(&damage.to_string()));
        }
        Ok(())
    }

    fn finish(&mut self, _: &Summary, _: &Sources) -> io::Result<()> {
        Ok(())
    }
}

impl ReportBuilder<'_> {
    fn count(&mut self, event: &Event) {
        let (track, kind) = (self.tracks.add(event), self.kinds.add(event));
        self.count += 1;
        let part = self.parts.index(event.time_ns);
        let (text, names, time) = (&mut self.text, &mut self.names, event.time_ns);
        self.events.offer(kind.min(MAX_CELLS - 1) * PARTS + part, scattered(self.count), || {
            (time, EventRow { track, name: names.index(event.name()), at: 0, text: fields(text, event) })
        });
    }

    fn into_data(mut self, first: i64, summary: &Summary) -> Data {
        let mut data = Data { count: self.count, damage: self.damage, ..Data::default() };
        data.begin_ns = first.to_string();
        data.length_ns = self.last.abs_diff(first);
        let since = |time: i64| if time < first { 0 } else { time.abs_diff(first) };
        (data.spans.all, data.spans.unmatched) = (self.spans.offered, summary.spans_without_begin);
        data.spans.unpaired = summary.spans_forgotten;
        let spans = self.spans.finish().into_iter();
        data.spans.rows = spans.map(|(begin, row)| SpanRow { at: since(begin), ..row }).collect();
        data.spans.rows.sort_by(|a, b| (a.track, a.at, b.length).cmp(&(b.track, b.at, a.length)));
        data.states = self.states.finish(&mut self.tracks, since);
        if data.states.all == 0 {
            // Nothing is known of threads.
            for span in &mut data.spans.rows {
                (span.division, span.waits) = (Vec::new(), Vec::new());
            }
        }
        data.events.all = self.events.offered;
        let events = self.events.finish().into_iter();
        data.events.rows = events.map(|(time, row)| EventRow { at: since(time), ..row }).collect();
        data.events.rows.sort_by_key(|row| (row.at, row.track));
        let all_losses = self.losses.offered;
        let mut losses = self.losses.finish();
        losses.sort_by_key(|(loss, _)| loss.from_ns);
        data.losses.further = all_losses - losses.len() as u64;
        let row = |(loss, events): &(Loss, Option<u64>)| LossRow {
            track: self.tracks.of_file(&loss.stream.file),
            from: since(loss.from_ns),
            to: since(loss.to_ns),
            events: *events,
            text: described(loss),
        };
        data.losses.rows = losses.iter().map(row).collect();
        data.names = self.names.all;
        (data.kinds, data.further_kinds, data.histograms, data.further_fields) = self.kinds.finish();
        (data.processes, data.tracks) = self.tracks.finish();
        data
    }
}

/// The loss in words.
fn described(loss: &Loss) -> String {
    let mut line = Vec::new();
    let mut text = TextWriter::new(TextOptions::from(Style::Compact));
    // Writing to memory cannot fail.
    let _ = text.write_item(&mut line, &Item::Loss(loss.clone()));
    let line = String::from_utf8_lossy(&line);
    cut(line.split_once("[lost: ").map_or(&*line, |(_, rest)| rest.trim_end().trim_end_matches(']')))
}

/// The fields of an event, as `tracectl view` shows them.
fn fields(text: &mut TextWriter, event: &Event) -> String {
    let mut line = Vec::new();
    let _ = text.write_item(&mut line, &Item::Event(event.clone()));
    let line = String::from_utf8_lossy(&line);
    cut(line.split_once(event.name()).map_or("", |(_, fields)| fields.trim()))
}
