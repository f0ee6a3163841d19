//! The effects of sessions in the processes.

use crate::common::{Outcome, assert_balances, names, view};
use crate::traced::{PATIENCE, Place, is_traced, spec, traces};
use std::time::Duration;
use tracepoint_run_dir::{AckState, RuleAck};
use tracepoint_session_spec::{ChannelSpec, Rule, SinkSpec, State};

#[test]
fn a_running_process_is_recorded() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let child = place.start("sessions::a_running_process_is_recorded");
    let session = place.record("one", &["traced:*", "!*:tock"]);
    let acks = place.until_recorded(&session, 50);
    assert_eq!(acks.len(), 1);
    assert_eq!((acks[0].state, acks[0].events), (AckState::Recording, 1));
    assert_eq!(acks[0].rules, [Some(RuleAck::Events(2)), Some(RuleAck::Events(1))]);
    assert_eq!(place.on(), ["traced:tick"]);

    let removed = session.destroy(PATIENCE, false)?;
    assert!(removed.silent.is_empty() && removed.dead.is_empty(), "{removed:?}");
    assert_eq!(removed.acks[0].state, AckState::Ended);
    assert_eq!(removed.acks[0].outputs, traces(&place.out("one")));
    assert_eq!(place.on(), [""; 0]);
    assert_eq!(names(&place.run_dir().join("sessions")), [""; 0]);

    let traces = traces(&place.out("one"));
    assert_eq!(traces.len(), 1);
    assert_balances(&traces[0]);
    let viewed = view(&[&traces[0]]);
    assert_eq!(viewed.warnings, "");
    assert_eq!(viewed.count(" traced:tick:") as u64, removed.acks[0].counters.recorded);
    assert!(child.end());
    Ok(())
}

#[test]
fn rules_change_in_the_same_trace() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _child = place.start("sessions::rules_change_in_the_same_trace");
    let session = place.record("rules", &["traced:tick"]);
    place.until_recorded(&session, 10);
    let swap = |from: &str, to: &str| {
        session.change("swap", |spec| {
            assert_eq!(spec.remove_rule(&Rule::new(from)), 1);
            spec.add_rule(&Rule::new(to)).expect("a rule");
            Ok(())
        })
    };
    assert_eq!(swap("traced:tick", "traced:tock")?, 2);
    place.until_recorded(&session, 10);
    assert_eq!(place.on(), ["traced:tock"]);
    assert_eq!(swap("traced:tock", "nothing:*")?, 3);
    let acks = place.acks(&session);
    assert_eq!((acks[0].state, acks[0].events), (AckState::Waiting, 0));
    assert_eq!(place.on(), [""; 0]);
    assert_eq!(swap("nothing:*", "traced:t*")?, 4);
    place.until_recorded(&session, 10);
    // A call that changes nothing does not count as a change.
    assert_eq!(session.change("nothing", |_| Ok(()))?, 4);

    let log = session.log()?;
    assert_eq!(log.lines().count(), 4, "{log}");
    assert!(log.lines().nth(1).is_some_and(|line| line.contains("generation 2") && line.ends_with(": swap")), "{log}");
    session.destroy(PATIENCE, false)?;
    let traces = traces(&place.out("rules"));
    assert_eq!(traces.len(), 1, "{traces:?}");
    assert_balances(&traces[0]);
    let viewed = view(&[&traces[0]]);
    assert_eq!(viewed.warnings, "");
    assert!(viewed.count(" traced:tick:") > 10 && viewed.count(" traced:tock:") > 10);
    Ok(())
}

#[test]
fn a_session_applies_to_later_processes_and_outlives_them() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let test = "sessions::a_session_applies_to_later_processes_and_outlives_them";
    let session = place.record("waiting", &["traced:tick"]);
    assert!(session.acks()?.is_empty());
    let unmatched = place.controller.unmatched(&session.spec()?)?;
    assert_eq!((unmatched.len(), unmatched[0].processes), (1, 0));
    let first = place.start(test);
    place.until_recorded(&session, 5);
    assert!(place.controller.unmatched(&session.spec()?)?.is_empty());
    assert!(first.end());
    let acks = session.acks()?;
    assert_eq!(acks[0].state, AckState::Ended);
    assert!(acks[0].counters.recorded >= 5);
    let second = place.start(test);
    // The process that has ended does not update its acknowledgement any more.
    while !session.acks()?.iter().any(|ack| ack.process.pid == second.id() && ack.counters.recorded >= 5) {
        place.controller.refresh(PATIENCE)?;
    }
    let removed = session.destroy(PATIENCE, false)?;
    assert_eq!(removed.acks.len(), 2);
    let traces = traces(&place.out("waiting"));
    assert_eq!(traces.len(), 2);
    for trace in &traces {
        assert_balances(trace);
    }
    Ok(())
}

#[test]
fn stopped_sessions_have_complete_traces_and_start_new_ones() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _child = place.start("sessions::stopped_sessions_have_complete_traces_and_start_new_ones");
    let session = place.record("twice", &["traced:tick"]);
    let to = |state| {
        session.change("state", |spec| {
            spec.state = state;
            Ok(())
        })
    };
    place.until_recorded(&session, 5);
    to(State::Stopped)?;
    assert_eq!(place.acks(&session)[0].state, AckState::Ended);
    assert_eq!(place.on(), [""; 0]);
    assert_balances(&traces(&place.out("twice"))[0]);
    to(State::Active)?;
    place.until_recorded(&session, 5);
    let removed = session.destroy(PATIENCE, false)?;
    let traces = traces(&place.out("twice"));
    assert_eq!(traces.len(), 2);
    for trace in &traces {
        assert_balances(trace);
    }
    let events = view(&[&traces[0], &traces[1]]).count(" traced:tick:") as u64;
    assert_eq!(events, removed.acks[0].counters.recorded);
    Ok(())
}

#[test]
fn several_sessions_share_a_tracepoint() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _child = place.start("sessions::several_sessions_share_a_tracepoint");
    let sessions: Vec<_> = ["a", "b", "c"].map(|name| place.record(name, &["traced:tick"])).into();
    for session in &sessions {
        place.until_recorded(session, 5);
    }
    sessions[1].destroy(PATIENCE, false)?;
    assert_eq!(place.on(), ["traced:tick"]);
    place.until_recorded(&sessions[0], 5);
    sessions[0].destroy(PATIENCE, false)?;
    sessions[2].destroy(PATIENCE, false)?;
    assert_eq!(place.on(), [""; 0]);
    for name in ["a", "b", "c"] {
        assert_balances(&traces(&place.out(name))[0]);
    }
    Ok(())
}

#[test]
fn a_snapshot_is_taken_from_the_rings() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _child = place.start("sessions::a_snapshot_is_taken_from_the_rings");
    let mut spec = spec(&["traced:tick"], &[]);
    assert!(spec.check().is_err(), "what is discarded is not kept");
    spec.channel = ChannelSpec::overwrite(64 << 10);
    let session = place.controller.create("flight", &spec)?;
    place.until_recorded(&session, 20);
    let snapshot = |name: &str| tracepoint_reader::recover(&session.path(), &place.temp.path().join(name));
    assert!(snapshot("running")?.processes[0].records >= 20);
    session.change("stop", |spec| {
        spec.state = State::Stopped;
        Ok(())
    })?;
    let acks = place.acks(&session);
    assert_eq!(acks[0].state, AckState::Waiting);
    assert!(acks[0].rings.is_some());
    // The session is stopped: the snapshot has as many events as were recorded.
    assert_eq!(snapshot("stopped")?.processes[0].records, acks[0].counters.recorded);
    assert_eq!(view(&[&place.temp.path().join("stopped")]).lines.len() as u64, acks[0].counters.recorded);
    session.destroy(PATIENCE, false)?;
    Ok(())
}

#[test]
fn rules_choose_processes() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let test = "sessions::rules_choose_processes";
    let (one, other) = (place.start(test), place.start(test));
    let mut spec = spec(&[], &[SinkSpec::ctf(place.out("choice")).into()]);
    let mut rule = Rule::new("traced:tick");
    rule.process = Some(place.controller.process(one.id())?.info().key());
    spec.add_rule(&rule)?;
    spec.add_rule(&Rule::new("traced:tock").exe("no-such-program"))?;
    let session = place.controller.create("choice", &spec)?;
    let states: Vec<_> = place.acks(&session).into_iter().map(|ack| (ack.process.pid, ack.events, ack.rules)).collect();
    let mut expected = [(one.id(), 1, vec![Some(RuleAck::Events(1)), None]), (other.id(), 0, vec![None, None])];
    expected.sort_by_key(|(pid, ..)| *pid);
    assert_eq!(states, expected);
    assert_eq!(place.controller.unmatched(&session.spec()?)?.len(), 1);
    Ok(())
}

#[test]
fn the_output_of_a_session_is_bounded() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let child = place.start("sessions::the_output_of_a_session_is_bounded");
    let spec = spec(&["traced:tick"], &[SinkSpec::ctf(place.out("small")).max_size(4096).into()]);
    let session = place.controller.create("small", &spec)?;
    while !place.acks(&session)[0].counters.lost.contains_key("sink") {
        std::thread::sleep(Duration::from_millis(20));
    }
    let removed = session.destroy(PATIENCE, false)?;
    assert!(removed.acks[0].error.as_ref().is_some_and(|error| error.contains("max_size")), "{removed:?}");
    assert!(removed.acks[0].counters.bytes <= 8192);
    assert_balances(&traces(&place.out("small"))[0]);
    drop(child);
    Ok(())
}
