//! One pass over the events of traces, in the order of their times, into the data of the page.
//!
//! Memory and the size of the page are bounded, however many events there are: counts are kept for each slice of time, and of spans and
//! events a [`Sample`].

use super::data::{Data, EventRow, LossRow, SpanRow};
use super::kinds::Kinds;
use super::sample::{Sample, scattered};
use super::slices::Slices;
use super::text::cut;
use super::tracks::Tracks;
use crate::failure::Failure;
use crate::progress::LiveLine;
use crate::statistics::{Input, Seen};
use std::collections::HashMap;
use tracepoint_reader::text::{Style, TextOptions, TextWriter};
use tracepoint_reader::{Event, Item, Loss, LossKind, Paired, SpanPairs, Trace};

/// The spans and the events that are in the file at most.
const SPANS: usize = 1 << 14;
const EVENTS: usize = 1 << 14;
/// The parts of the time from which they are taken evenly; with 256 tracks, or as many kinds, one from each.
const PARTS: usize = 64;
const MOST_CELLS: usize = SPANS / PARTS;
/// The losses that are in the file at most.
const LOSSES: usize = 2000;
/// The names of them at most; further ones share the last.
const NAMES: usize = 4096;
/// Damage that is named at most; the messages of the verb have all.
const DAMAGE: usize = 100;
/// Spans that are open at the same time at most.
const OPEN: usize = 100_000;

struct Gathering<'t> {
    tracks: Tracks,
    kinds: Kinds<'t>,
    parts: Slices,
    pairs: SpanPairs,
    spans: Sample<Span>,
    events: Sample<(i64, EventRow)>,
    losses: Vec<(Loss, Option<u64>)>,
    names: Names,
    text: TextWriter,
    count: u64,
}

/// Texts that rows refer to by their index.
#[derive(Default)]
struct Names {
    all: Vec<String>,
    indices: HashMap<String, usize>,
}

impl Names {
    fn index(&mut self, name: &str) -> usize {
        if let Some(index) = self.indices.get(name) {
            return *index;
        }
        if self.all.len() == NAMES {
            return NAMES - 1;
        }
        let name_shown = if self.all.len() + 1 == NAMES { "(further names)".to_owned() } else { cut(name) };
        self.indices.insert(name.to_owned(), self.all.len());
        self.all.push(name_shown);
        self.all.len() - 1
    }
}

struct Span {
    begin: i64,
    row: SpanRow,
}

pub(super) fn gather(input: &Input<'_>, trace: &Trace) -> Result<(Data, Seen), Failure> {
    let (first, last) = trace.range().unwrap_or_default();
    let times = input.time_range(trace)?;
    let (first, last) =
        (times.since.map_or(first, |since| since.max(first)), times.until.map_or(last, |until| until.min(last)));
    let range = (first, last.max(first));
    let mut gathering = Gathering {
        tracks: Tracks::new(range),
        kinds: Kinds::new(trace, range),
        parts: Slices::new(range, PARTS),
        pairs: SpanPairs::new(OPEN),
        spans: Sample::new(SPANS),
        events: Sample::new(EVENTS),
        losses: Vec::new(),
        names: Names::default(),
        text: TextWriter::new(TextOptions::from(Style::Compact)),
        count: 0,
    };
    let mut line = LiveLine::new();
    let mut damage = Vec::new();
    let seen = input.in_order(trace, |item| match item {
        Item::Event(event) => {
            gathering.event(event);
            if gathering.count.is_multiple_of(1 << 14) {
                line.show(gathering.count, || "read".to_owned());
            }
        }
        Item::Loss(loss) => gathering.loss(loss),
        Item::Damage(found) if damage.len() < DAMAGE => damage.push(cut(&found.to_string())),
        _ => {}
    })?;
    let mut data = gathering.finish(range);
    (data.losses.lost, data.losses.lost_more) = (seen.lost, seen.lost_more);
    data.damage = damage;
    Ok((data, seen))
}

impl Gathering<'_> {
    fn event(&mut self, event: &Event) {
        let (track, kind) = (self.tracks.add(event), self.kinds.add(event));
        self.count += 1;
        let part = self.parts.index(event.time_ns);
        let (text, names, time) = (&mut self.text, &mut self.names, event.time_ns);
        self.events.offer(kind.min(MOST_CELLS - 1) * PARTS + part, scattered(self.count), || {
            (time, EventRow { track, name: names.index(event.name()), at: 0, text: fields(text, event) })
        });
        if let Paired::End(Some(begin)) = self.pairs.take(event) {
            self.span(&begin, event.time_ns, false);
        }
    }

    fn span(&mut self, begin: &Event, end: i64, open: bool) {
        let track = self.tracks.track(begin);
        let length = end.abs_diff(begin.time_ns);
        let (text, names, time) = (&mut self.text, &mut self.names, begin.time_ns);
        self.spans.offer(track * PARTS + self.parts.index(time), length, || {
            let name = names.index(begin.class.span().map_or(begin.name(), |(name, _)| name));
            Span { begin: time, row: SpanRow { track, name, at: 0, length, open, text: fields(text, begin) } }
        });
    }

    fn loss(&mut self, loss: &Loss) {
        let events = match loss.kind {
            LossKind::Events(events) | LossKind::Packets { events, .. } => events,
            _ => None,
        };
        self.losses.push((loss.clone(), events));
        if self.losses.len() == 2 * LOSSES {
            self.trim_losses();
        }
    }

    /// Keeps the largest, and those of unknown size before them.
    fn trim_losses(&mut self) {
        self.losses.sort_by_key(|(_, events)| std::cmp::Reverse(events.unwrap_or(u64::MAX)));
        self.losses.truncate(LOSSES);
    }

    fn finish(mut self, (first, last): (i64, i64)) -> Data {
        let mut data = Data { count: self.count, ..Data::default() };
        let counts = self.pairs.counts();
        let pairs = std::mem::replace(&mut self.pairs, SpanPairs::new(0));
        for begin in pairs.into_open() {
            self.span(&begin, last, true);
        }
        data.begin_ns = first.to_string();
        data.length_ns = last.abs_diff(first);
        let since = |time: i64| if time < first { 0 } else { time.abs_diff(first) };
        (data.spans.all, data.spans.unmatched) = (self.spans.offered(), counts.unmatched);
        data.spans.unpaired = counts.no_room + counts.replaced;
        let spans = self.spans.finish().into_iter();
        data.spans.rows = spans.map(|span| SpanRow { at: since(span.begin), ..span.row }).collect();
        data.spans.rows.sort_by(|a, b| (a.track, a.at, b.length).cmp(&(b.track, b.at, a.length)));
        data.events.all = self.events.offered();
        let events = self.events.finish().into_iter();
        data.events.rows = events.map(|(time, row)| EventRow { at: since(time), ..row }).collect();
        data.events.rows.sort_by_key(|row| (row.at, row.track));
        let all = self.losses.len();
        self.losses.sort_by_key(|(loss, _)| loss.from_ns);
        data.losses.further = all.saturating_sub(LOSSES) as u64;
        data.losses.rows = self
            .losses
            .iter()
            .take(LOSSES)
            .map(|(loss, events)| LossRow {
                track: self.tracks.of_file(&loss.stream.file),
                from: since(loss.from_ns),
                to: since(loss.to_ns),
                events: *events,
                text: described(loss),
            })
            .collect();
        data.names = self.names.all;
        (data.kinds, data.further_kinds, data.histograms, data.further_fields) = self.kinds.finish();
        (data.processes, data.tracks) = self.tracks.finish();
        data
    }
}

/// What is missing, in words.
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
