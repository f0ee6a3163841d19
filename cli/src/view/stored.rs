//! The events of traces in files.

use super::clocks;
use super::printer::Printer;
use super::{Time, View, unfinished};
use crate::failure::{Failure, VerbResult};
use crate::interrupt::Interrupt;
use crate::message::{self, counted};
use crate::open::open;
use crate::run_directory;
use crate::time_point::Context;
use std::collections::{HashSet, VecDeque};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;
use tracepoint_reader::{DtSummary, DtTrace, Follow, Item, PollResult};
use tracepoint_session_spec::check_fields;

/// Pause before files are polled again.
const PAUSE: Duration = Duration::from_millis(50);

impl View {
    pub(super) fn stored(&self) -> VerbResult {
        let trace = open(&self.paths)?;
        if self.clocks {
            return clocks::write(clocks::all(&trace), self.json);
        }
        for note in clocks::far_off(&trace) {
            message::note(&note);
        }
        // The headers of all packets are read only if needed to resolve relative times.
        let range = self.times.refers_to_the_trace() || self.time == Time::Relative;
        let context = Context { range: if range { trace.range() } else { None }, utc: self.is_utc() };
        let metadata = || trace.metadata().map(|(_, metadata)| metadata);
        let hosts: HashSet<_> = metadata().map(|metadata| metadata.env_value("hostname")).collect();
        let mut printer = self.printer(&context, hosts.len() > 1)?;
        if !self.follow {
            printer.selection.filter.check(metadata())?;
            check_fields(self.fields.as_deref().unwrap_or_default(), metadata())?;
        }
        // The last events before a given time, or of a given kind, can be anywhere in the trace.
        let is_anywhere = printer.selection.times.until.is_some() || !printer.selection.filter.selects_all();
        let tail = self.tail.filter(|_| !is_anywhere).and_then(|count| trace.tail(count));
        let begin = printer.selection.times.since.max(tail).unwrap_or(i64::MIN);
        if self.follow {
            let noted = trace.metadata_damage().map(|damage| damage.file).collect();
            return self.follow(begin, printer, noted);
        }
        let mut tail = self.tail.map(Tail::new);
        let mut items = trace.items_since(begin);
        for item in items.by_ref() {
            let wanted = match &mut tail {
                Some(tail) if printer.selection.includes(&item) => tail.add(item),
                Some(_) => printer.selection.wanted_after(&item),
                None => printer.item(&item)?,
            };
            if wanted.is_break() {
                break;
            }
        }
        tail.map_or(Ok(()), |tail| tail.print(&mut printer))?;
        let outcome = printer.finish(items.unchecked(), 0)?;
        trace.dt_files().try_for_each(note_contents)?;
        Ok(outcome.max(unfinished::report(&trace)))
    }

    /// Follows files that are still being written. Damage in the metadata of `noted` files was already reported.
    fn follow(&self, begin: i64, mut printer: Printer, mut noted: HashSet<PathBuf>) -> VerbResult {
        let stop = Interrupt::once()?;
        let mut tail = self.tail.map(Tail::new);
        let mut follow = Follow::open(&self.paths, begin)?;
        if let Some(run_directory) = run_directory::path() {
            follow = follow.run_directory(&run_directory);
        }
        while !stop.is_requested() {
            if follow.has_caught_up() {
                tail.take().map_or(Ok(()), |tail| tail.print(&mut printer))?;
            }
            let polled = follow.poll()?;
            for damage in follow.take_metadata_damage() {
                if noted.insert(damage.file.clone()) {
                    message::note(&damage.to_string());
                }
            }
            let wanted = match (polled, &mut tail) {
                (PollResult::Item(item), Some(tail)) if printer.selection.includes(&item) => tail.add(item),
                (PollResult::Item(item), Some(_)) => printer.selection.wanted_after(&item),
                (PollResult::Item(item), None) => printer.item(&item)?,
                (PollResult::Ended, _) => ControlFlow::Break(()),
                _ => {
                    printer.flush()?;
                    sleep(PAUSE);
                    ControlFlow::Continue(())
                }
            };
            if wanted.is_break() {
                break;
            }
        }
        tail.map_or(Ok(()), |tail| tail.print(&mut printer))?;
        printer.finish(follow.unchecked(), follow.late())
    }
}

/// The last events, with the losses and the damage between them.
struct Tail {
    count: u64,
    events: u64,
    items: VecDeque<Item>,
}

impl Tail {
    fn new(count: u64) -> Self {
        Self { count, events: 0, items: VecDeque::new() }
    }

    fn add(&mut self, item: Item) -> ControlFlow<()> {
        self.events += u64::from(matches!(item, Item::Event(_)));
        self.items.push_back(item);
        while self.events > self.count || (self.count == 0 && !self.items.is_empty()) {
            let removed = self.items.pop_front();
            self.events -= u64::from(matches!(removed, Some(Item::Event(_))));
        }
        ControlFlow::Continue(())
    }

    fn print(self, printer: &mut Printer) -> Result<(), Failure> {
        self.items.iter().try_for_each(|item| printer.item(item).map(drop))
    }
}

/// Prints a note on the part of its trace that a dt file holds.
fn note_contents(file: &DtTrace) -> Result<(), Failure> {
    let summary = file.summary()?;
    let DtSummary { slots, packets, streams, gone_packets, gone_events, .. } = summary;
    let path = file.path().display();
    let (packets, streams, slots) = (counted(packets, "packet"), counted(streams, "stream"), counted(slots, "slot"));
    let mut parts = vec![format!("{path}: {packets} of {streams} in {slots}")];
    if gone_packets > 0 {
        let (packets, events) = (counted(gone_packets, "packet"), counted(gone_events, "event"));
        parts.push(format!("{packets} before that, with {events}, overwritten or not written"));
    }
    let lost: Vec<_> = summary.lost.iter().map(|(reason, count)| format!("{count} ({reason})")).collect();
    if !lost.is_empty() {
        parts.push(format!("events lost before that: {}", lost.join(", ")));
    }
    if !summary.complete {
        parts.push("the session is still running, or was killed, so that its account is incomplete".to_owned());
    }
    message::note(&parts.join("; "));
    if file.has_changed()? {
        message::note(&format!("{path} changed while it was read; packets that were overwritten then are not shown"));
    }
    Ok(())
}
