//! Checks the file of a program that was killed.

use crate::Round;
use crate::victim::{HANDED_OVER, TRACE};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use tracepoint_reader::convert::{ConvertOptions, convert};
use tracepoint_reader::{DtTrace, Event, Item, LossKind, Trace, Value};

/// The statistics of the rounds.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Number of rounds with a file at the time of the kill.
    pub(crate) files: usize,
    /// Number of rounds whose file had wrapped.
    pub(crate) wrapped: usize,
    /// Number of rounds that were also checked with babeltrace2.
    pub(crate) converted: usize,
    pub(crate) events: u64,
}

impl Seen {
    pub(crate) fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.wrapped += other.wrapped;
        self.converted += other.converted;
        self.events += other.events;
    }
}

/// The remaining part of a stream.
#[derive(Debug, Default)]
struct Kept {
    /// The next number.
    next: u64,
    /// Number of missing numbers that are allowed: events that were lost before the drain ran, and are reported.
    discarded: u64,
    /// Number of events up to here, including overwritten ones.
    recorded: u64,
    events: u64,
}

pub(crate) fn judge(directory: &Path, round: Round, convert_too: bool) -> Result<Seen, String> {
    let handed_over = std::fs::read(directory.join(HANDED_OVER)).map_err(|error| error.to_string())?;
    let path = directory.join(TRACE);
    if !path.exists() {
        return if handed_over.is_empty() { Ok(Seen::default()) } else { Err("the file is missing".to_owned()) };
    }
    let trace = Trace::open(&path).map_err(|error| error.to_string())?;
    let mut kept: BTreeMap<u64, Kept> = BTreeMap::new();
    for item in trace.items() {
        match item {
            Item::Event(event) => count(&event, kept.entry(event.stream.instance.unwrap_or(u64::MAX)).or_default())?,
            Item::Loss(loss) => {
                let kept = kept.entry(loss.stream.instance.unwrap_or(u64::MAX)).or_default();
                match loss.kind {
                    LossKind::Packets { events: Some(events), .. } if kept.recorded == 0 => {
                        (kept.next, kept.recorded) = (events, events);
                    }
                    LossKind::Events(Some(events)) => kept.discarded += events,
                    kind => return Err(format!("a gap after event {}: {kind:?}", kept.next)),
                }
            }
            Item::Damage(damage) => return Err(damage.to_string()),
            other => return Err(format!("{other:?}")),
        }
    }
    let mut told_packets = 0;
    for (stream, handed_over) in handed_over.chunks_exact(16).enumerate() {
        let word = |at: usize| u64::from_le_bytes(handed_over[at..at + 8].try_into().expect("eight bytes"));
        let (events, packets) = (word(0), word(8));
        told_packets += packets;
        // A stream without remaining packets was overwritten by others.
        if let Some(kept) = kept.get(&(stream as u64)).filter(|kept| kept.recorded < events) {
            return Err(format!("stream {stream}: {events} events were handed over, and it ends at {}", kept.recorded));
        }
    }
    let summary = trace.dt().map(DtTrace::summary).ok_or("it is no dt file")?.map_err(|error| error.to_string())?;
    // The slot that is being overwritten is lost.
    let least = told_packets.min(u64::from(round.slots) - 1);
    if summary.packets < least || summary.packets > u64::from(round.slots) {
        return Err(format!("{} packets are left of {told_packets}", summary.packets));
    }
    let events = kept.values().map(|kept| kept.events).sum();
    if convert_too {
        compare(&path, &directory.join("converted"), events)?;
    }
    let wrapped = usize::from(told_packets > u64::from(round.slots));
    Ok(Seen { files: 1, wrapped, converted: usize::from(convert_too), events })
}

/// Checks that names, types and values are the traced ones, in order, except for those that are reported as lost.
fn count(event: &Event, kept: &mut Kept) -> Result<(), String> {
    let wrong = || format!("{}: {:?} comes after {kept:?}", event.name(), event.fields);
    let fields = event.fields.as_ref().ok_or_else(wrong)?;
    let number = |name: &str| fields.get(name).and_then(Value::as_u64);
    let text = fields.get("text").and_then(Value::as_bytes) == Some(b"counting");
    let n = number("n").ok_or_else(wrong)?;
    let missing = n.checked_sub(kept.next).filter(|missing| *missing <= kept.discarded).ok_or_else(wrong)?;
    if event.name() != "dt_kills:counted" || number("twice") != Some(n.wrapping_mul(2)) || !text {
        return Err(wrong());
    }
    kept.next = n + 1;
    kept.discarded -= missing;
    kept.recorded += 1;
    kept.events += 1;
    Ok(())
}

/// Checks that babeltrace2 lists the same number of events for the directory that was converted from the file.
fn compare(path: &Path, directory: &Path, events: u64) -> Result<(), String> {
    let converted = convert(path, directory, ConvertOptions::default(), |_| {}).map_err(|error| error.to_string())?;
    if converted.packets == 0 {
        return Ok(());
    }
    let output =
        Command::new("babeltrace2").arg(directory).output().expect("babeltrace2 is installed (see scripts/setup.sh)");
    let lines =
        String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.contains("dt_kills:counted")).count();
    if !output.status.success() || lines as u64 != events {
        return Err(format!(
            "babeltrace2 lists {lines} of {events} events: {}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    Ok(())
}
