//! Sinks added to and removed from a running recording.

use crate::common::{Outcome, Recording, Shared, alone, assert_balances, channel, place, view};
use std::path::Path;
use std::time::Duration;
use tracepoint_reader::account::Account;
use tracepoint_reader::{Item, LossKind, Trace};
use tracepoint_sinks::{CtfSink, DtSink, TextSink};

tracepoint::define_trace! {
    provider = "changing";
    pub step(n: u64) { n: u64 = n }
    pub other(n: u64) { n: u64 = n }
}

fn fire(numbers: std::ops::Range<u64>) {
    numbers.for_each(|n| tracepoint::trace!(step(n)));
}

/// Fires events on another thread, which ends.
fn fire_elsewhere(numbers: std::ops::Range<u64>) -> Outcome {
    std::thread::spawn(move || fire(numbers)).join().map_err(|_| "a panic")?;
    Ok(())
}

/// Moves everything that is in the rings.
fn move_all(recording: &mut Recording) {
    recording.drain.flush(Duration::ZERO);
    recording.drain.drain();
}

/// Returns the numbers in the events of a trace, in order, and the number of events lost before their ring. Other losses and damage are errors.
fn read(path: &Path) -> Result<(Vec<u64>, u64), Box<dyn std::error::Error>> {
    let (mut numbers, mut lost) = (Vec::new(), 0);
    for item in Trace::open(path)?.items() {
        match item {
            Item::Event(event) => {
                let n = event.fields.as_ref().and_then(|fields| fields.get("n")?.as_u64());
                numbers.push(n.ok_or("an event without a number")?);
            }
            Item::Loss(missing) => match missing.kind {
                LossKind::Events(Some(events)) => lost += events,
                kind => return Err(format!("{kind:?}").into()),
            },
            Item::Damage(damage) => return Err(damage.into()),
            _ => {}
        }
    }
    numbers.sort_unstable();
    Ok((numbers, lost))
}

fn numbers(path: &Path) -> Result<Vec<u64>, Box<dyn std::error::Error>> {
    let (numbers, lost) = read(path)?;
    if lost == 0 { Ok(numbers) } else { Err(format!("{lost} events were lost").into()) }
}

#[test]
fn a_sink_gets_the_events_recorded_while_it_is_attached() -> Outcome {
    let _alone = alone();
    let place = place();
    let (whole, part) = (place.path().join("whole"), place.path().join("part"));
    let mut recording = Recording::start(channel(), vec![Box::new(CtfSink::create(&whole)?)])?;
    fire(0..100);
    fire_elsewhere(100..150)?;
    move_all(&mut recording);
    // Losses before the sink is added do not count for it, once a packet has counted them.
    fire(1_000_000..1_010_000);
    move_all(&mut recording);
    fire(0..1);
    move_all(&mut recording);
    let id = recording.drain.add_sink(Box::new(CtfSink::create(&part)?))?;
    fire(200..300);
    fire_elsewhere(300..320)?;
    let report = recording.drain.remove_sink(id).ok_or("no such sink")?;
    assert!(report.error.is_none() && report.id == id);
    assert!(recording.drain.remove_sink(id).is_none(), "it is gone");
    // The output is complete when the sink is removed, and nothing is written to it afterwards.
    assert_eq!(numbers(&part)?, (200..320).collect::<Vec<_>>());
    assert_balances(&part);
    let account = Account::open(&part)?;
    assert!(account.complete);
    let chunk = account.chunk.ok_or("it is a part of the trace")?;
    assert!(chunk.detached && !chunk.last && chunk.removed.events > 150, "{chunk:?}");
    fire(400..500);
    recording.finish();
    assert_eq!(numbers(&part)?.len(), 120);
    assert_balances(&part);
    assert_balances(&whole);
    let lines = view(&part).0;
    assert_eq!(lines.lines().count(), 120);
    Ok(())
}

#[test]
fn a_sink_that_stays_has_the_end_of_the_trace() -> Outcome {
    let _alone = alone();
    let place = place();
    let (first, late, dt) = (place.path().join("first"), place.path().join("late"), place.path().join("late.dt"));
    let mut recording = Recording::start(channel(), vec![Box::new(CtfSink::create(&first)?)])?;
    fire(0..100);
    fire_elsewhere(100..150)?;
    move_all(&mut recording);
    fire(150..160);
    let text = Shared::default();
    recording.drain.add_sink(Box::new(CtfSink::create(&late)?))?;
    recording.drain.add_sink(Box::new(DtSink::create(&dt, 3)?))?;
    recording.drain.add_sink(Box::new(TextSink::new(text.clone())))?;
    fire(160..300);
    fire_elsewhere(300..320)?;
    for round in 0..5 {
        move_all(&mut recording);
        fire(1000 + round * 10..1000 + (round + 1) * 10);
    }
    let reports = recording.finish();
    // Events that were still in the rings when the sink was added belong to it.
    let expected: Vec<u64> = (150..320).chain(1000..1050).collect();
    assert_eq!(numbers(&late)?, expected);
    assert_eq!(text.lines().len(), expected.len(), "{}", text.text());
    for path in [&first, &late, &dt] {
        assert_balances(path);
    }
    // Sinks present from the beginning have the whole trace.
    assert_eq!(reports[0].account.chunk, None);
    let removed = reports[1].account.chunk.as_ref().ok_or("a part of the trace")?.removed;
    assert_eq!((removed.chunks, removed.events), (1, 150));
    // Verifying the parent directory compares the parts with each other.
    assert!(tracepoint_reader::verify(place.path())?.passed());
    Ok(())
}

#[test]
fn the_trace_of_an_added_sink_can_rotate() -> Outcome {
    let _alone = alone();
    let place = place();
    let (stays, goes) = (place.path().join("stays"), place.path().join("goes"));
    let mut recording = Recording::start(channel(), Vec::new())?;
    fire(0..90);
    // A thread whose stream has begun, and gets no further packet.
    fire_elsewhere(90..100)?;
    move_all(&mut recording);
    recording.drain.add_sink(Box::new(CtfSink::create(&stays)?.keep(2)))?;
    let id = recording.drain.add_sink(Box::new(CtfSink::create(&goes)?.rotate_size(1 << 10)))?;
    for round in 1..6 {
        fire(round * 100..round * 100 + 100);
        recording.drain.rotate()?;
    }
    fire(600..610);
    recording.drain.remove_sink(id).ok_or("no such sink")?;
    fire(610..620);
    recording.finish();
    for path in [&stays, &goes] {
        assert_balances(path);
    }
    assert_eq!(numbers(&goes)?, (100..610).collect::<Vec<_>>());
    assert_eq!(numbers(&stays)?, (500..620).collect::<Vec<_>>());
    Ok(())
}

/// A sink that was added before the first event has the whole trace, even if another sink was removed before.
#[test]
fn an_empty_stream_has_no_missed_events() -> Outcome {
    let _alone = alone();
    let place = place();
    let (unused, used) = (place.path().join("unused"), place.path().join("used"));
    let mut recording = Recording::start(channel(), Vec::new())?;
    let id = recording.drain.add_sink(Box::new(CtfSink::create(&unused)?))?;
    recording.drain.add_sink(Box::new(CtfSink::create(&used)?))?;
    recording.drain.remove_sink(id);
    fire(0..10);
    let reports = recording.finish();
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0].account.chunk, None);
    assert_eq!(numbers(&used)?, (0..10).collect::<Vec<_>>());
    assert!(numbers(&unused)?.is_empty());
    assert_balances(&used);
    assert_balances(&unused);
    // A sink that cannot begin is not added.
    let mut recording = Recording::start(channel(), Vec::new())?;
    let (dt, second) = (place.path().join("x.dt"), DtSink::create(place.path().join("x.dt"), 3)?);
    std::fs::write(dt, "taken")?;
    assert!(recording.drain.add_sink(Box::new(second)).is_err());
    assert!(recording.finish().is_empty());
    Ok(())
}
