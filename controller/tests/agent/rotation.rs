//! Sessions that rotate their traces, on request, by time and by size; and the chunks that remain after a kill.

use crate::common::{Outcome, assert_balances, memory_place, view};
use crate::traced::{PATIENCE, Place, is_traced, spec, traces};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracepoint_reader::{Item, Trace, Value};
use tracepoint_session_io::ControlError;
use tracepoint_session_io::store::Rotation;
use tracepoint_session_spec::SinkSpec;

/// The numbers of the ticks of a trace, in its order.
fn ticks(trace: &Path) -> Result<Vec<u64>, Box<dyn std::error::Error>> {
    let mut numbers = Vec::new();
    for item in Trace::open(trace)?.items() {
        if let Item::Event(event) = item {
            numbers.extend(event.fields.as_ref().and_then(|fields| fields.get("n")).and_then(Value::as_u64));
        }
    }
    Ok(numbers)
}

fn chunks(trace: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(trace).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// Each number once, from the first to the last.
fn assert_no_gap(numbers: &[u64]) {
    assert!(!numbers.is_empty());
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
}

#[test]
fn chunks_are_closed_on_demand() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let child = place.start("rotation::chunks_are_closed_on_demand");
    let session = place.record("cut", &["traced:tick"]);
    let mut closed = Vec::new();
    for round in 1..5 {
        place.until_recorded(&session, round * 20);
        let generation = session.rotate()?.generation;
        let acknowledged = session.wait(generation, PATIENCE)?;
        let rotated = acknowledged.acks[0].rotated.clone().ok_or("nothing was rotated")?;
        assert_eq!((rotated.number, rotated.error), (round, None));
        closed.extend(rotated.chunks);
    }
    assert_eq!(closed.len(), 4);
    // Closed chunks can be read while the rest is written.
    for chunk in &closed {
        assert_balances(chunk);
        assert_eq!(view(&[chunk]).warnings, "");
    }
    place.until_recorded(&session, 100);
    session.destroy(PATIENCE, false)?;
    drop(child);
    let trace = traces(&place.out("cut")).remove(0);
    assert_eq!(chunks(&trace)[..4], closed);
    assert_balances(&trace);
    let numbers = ticks(&trace)?;
    assert_no_gap(&numbers);
    let viewed = view(&[&trace]);
    assert_eq!((viewed.lines.len(), viewed.warnings.as_str()), (numbers.len(), ""));
    let one_by_one: usize = chunks(&trace).iter().map(|chunk| view(&[chunk]).lines.len()).sum();
    assert_eq!(one_by_one, numbers.len());
    Ok(())
}

#[test]
fn chunks_rotate_by_time_and_the_oldest_are_removed() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _child = place.start("rotation::chunks_rotate_by_time_and_the_oldest_are_removed");
    let spec = spec(
        &["traced:tick"],
        &[SinkSpec::ctf(place.out("timed")).rotate_every(Duration::from_millis(1)).keep(3).into()],
    );
    let session = place.controller.create("timed", &spec)?;
    let notice = loop {
        let ack = place.acks(&session).remove(0);
        if let Some(notice) = ack.notices.first() {
            break notice.clone();
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(notice.to_string().contains("older chunks were removed, with "), "{notice}");
    session.destroy(PATIENCE, false)?;
    let trace = traces(&place.out("timed")).remove(0);
    assert_eq!(chunks(&trace).len(), 3);
    assert_balances(&trace);
    assert_no_gap(&ticks(&trace)?);
    Ok(())
}

/// The oldest chunks are removed by the limit on bytes or on chunks, whichever is reached first.
#[test]
fn the_oldest_chunks_are_removed_beyond_the_size_limit() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _child = place.start("rotation::the_oldest_chunks_are_removed_beyond_the_size_limit");
    let bounded = SinkSpec::ctf(place.out("small")).max_size(20 << 10);
    let mut wanted = spec(&["traced:tick"], &[bounded.clone().rotate_size(4 << 10).keep(1000).into()]);
    wanted.channel.ring_size = Some(16 << 10);
    let session = place.controller.create("small", &wanted)?;
    let acks = place.until_recorded(&session, 5000);
    assert_eq!(acks[0].counters.total_lost(), 0, "{:?}", acks[0]);
    assert!(acks[0].notices[0].to_string().contains("older chunks were removed, with "), "{:?}", acks[0].notices);
    session.destroy(PATIENCE, false)?;
    let trace = traces(&place.out("small")).remove(0);
    assert!((2..=6).contains(&chunks(&trace).len()), "{:?}", chunks(&trace));
    assert_balances(&trace);
    assert_no_gap(&ticks(&trace)?);

    // If no chunk can be removed, the acknowledgement reports that no event is written.
    wanted = wanted.another();
    wanted.sinks = vec![bounded.into()];
    let session = place.controller.create("full", &wanted)?;
    while !place.acks(&session)[0].notices.iter().any(|notice| notice.to_string().contains("`max_size`")) {
        std::thread::sleep(Duration::from_millis(20));
    }
    session.destroy(PATIENCE, false)?;
    Ok(())
}

#[test]
fn sinks_that_cannot_rotate_are_reported() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _child = place.start("rotation::sinks_that_cannot_rotate_are_reported");
    let text =
        |error: Result<Rotation, ControlError>| error.map_err(|error| error.to_string()).err().unwrap_or_default();
    let mut lines = spec(&["traced:tick"], &[SinkSpec::text(place.temp.path().join("lines")).into()]);
    let session = place.controller.create("lines", &lines)?;
    assert!(text(session.rotate()).contains("no CTF output"), "{:?}", session.rotate());
    session.destroy(PATIENCE, false)?;
    lines.sinks = vec![SinkSpec::ctf(place.out("stopped")).into()];
    lines.state = tracepoint_session_spec::State::Stopped;
    let session = place.controller.create("stopped", &lines.another())?;
    assert!(text(session.rotate()).contains("`tracectl start stopped`"));
    Ok(())
}

/// A process is killed at any time, also during rotations: every chunk can be read, and with the rings the trace is complete.
#[test]
fn a_kill_during_rotation_loses_no_event() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let mut spec = spec(&["traced:tick"], &[]);
    for round in 0..6_u64 {
        let name = format!("killed{round}");
        let mut child = place.start("rotation::a_kill_during_rotation_loses_no_event");
        let mut sink = SinkSpec::ctf(place.out(&name));
        // By itself, repeatedly, or by a command that arrives at the same time as the end.
        if round % 2 == 0 {
            sink.rotate_every_ms = Some(1);
        }
        spec.sinks = vec![sink.into()];
        let session = place.controller.create(&name, &spec.another())?;
        place.until_recorded(&session, 50);
        if round % 2 == 1 {
            session.rotate()?;
        }
        std::thread::sleep(Duration::from_micros(round * 700));
        child.kill();
        let trace = traces(&place.out(&name)).remove(0);
        let parts: Vec<PathBuf> = Trace::open(&trace)?.metadata().map(|(directory, _)| directory.to_owned()).collect();
        for part in &parts {
            assert_eq!(view(&[part]).warnings, "");
        }
        let rings = session.rings_of_dead()?;
        assert_eq!(rings.len(), 1);
        let recovered = memory_place();
        let out = recovered.path().join("out");
        tracepoint_reader::recover(&rings[0], &out)?;
        assert_balances(&out);
        let numbers = ticks(&out)?;
        assert_no_gap(&numbers);
        // A kill in the first rotation can leave the metadata in two places: read alone, the outer part includes the inner ones.
        let kept = ticks(&trace)?;
        assert!(
            numbers.starts_with(&kept),
            "round {round}: the trace has {} events, {:?} to {:?}; recovered are {}, {:?} to {:?}; its parts are {parts:?}",
            kept.len(),
            kept.first(),
            kept.last(),
            numbers.len(),
            numbers.first(),
            numbers.last()
        );
        session.destroy(PATIENCE, false)?;
    }
    Ok(())
}
