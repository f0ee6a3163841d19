//! State dumps of remotely controlled processes.

use crate::common::{Outcome, again, assert_balances, part, until_ready, view};
use crate::traced::{PATIENCE, Place, spec, traces};
use std::io::stdin;
use std::time::Duration;
use tracepoint_controller::NamedSession;
use tracepoint_run_dir::Ack;
use tracepoint_session::{Agent, StateDump};
use tracepoint_session_spec::{Rule, SinkSpec, State};

tracepoint::define_trace! {
    provider = "held";

    /// There is a connection.
    #[level(Info)]
    pub connection(id: u64, peer: &str) { id: u64 = id, peer: str = peer }

    /// There is a file.
    #[level(Info)]
    pub file(id: u64) { id: u64 = id }
}

fn register(agent: &Agent, name: &str, word: &str) -> StateDump {
    let word = word.to_owned();
    agent.state_dump(name, move |_| {
        tracepoint::trace!(connection(1, &word));
        tracepoint::trace!(file(2));
        assert_ne!(word, "panic", "as the test wants it");
    })
}

/// The part of the process that a test starts: registers a dump, and another one on request. Returns `false` in the test itself.
fn is_stateful() -> bool {
    if part() != "stateful" {
        return false;
    }
    let agent = Agent::start().expect("an agent");
    let _first = register(&agent, "first", "anna");
    println!("ready");
    let mut more = Vec::new();
    for line in stdin().lines().map_while(Result::ok) {
        more.push(register(&agent, "more", &line));
    }
    true
}

/// Returns the acknowledgement of the process once it has run this many dumps to their end, or to a panic.
fn until_dumped(place: &Place, session: &NamedSession<'_>, times: u64) -> Ack {
    loop {
        let ack = place.acks(session).remove(0);
        if ack.state_dumps.iter().map(|dump| dump.ran + dump.panicked).sum::<u64>() >= times {
            return ack;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_late_session_gets_the_state_dump() -> Outcome {
    if is_stateful() {
        return Ok(());
    }
    let place = Place::new();
    let test = "state::a_late_session_gets_the_state_dump";
    let mut child = until_ready(again(test, "stateful").env("TRACEPOINT_RUN_DIR", place.run_dir()));

    let one = place.record("one", &["held:connection"]);
    let ack = until_dumped(&place, &one, 1);
    assert_eq!((ack.events, ack.counters.recorded, ack.notices.len()), (1, 3, 0));
    assert_eq!(place.on(), ["held:connection"], "what is ours is not listed");

    // A later rule: the whole state is dumped again, for this session.
    let two = place.record("two", &["held:file"]);
    until_dumped(&place, &two, 1);
    one.change("enable", |spec| {
        spec.add_rule(&Rule::new("held:file")).expect("a rule");
        Ok(())
    })?;
    assert_eq!(until_dumped(&place, &one, 2).counters.recorded, 3 + 4);
    // A change that enables no further event does not run dumps again.
    one.change("the same", |spec| {
        spec.add_rule(&Rule::new("held:con*")).expect("a rule");
        Ok(())
    })?;
    assert_eq!(until_dumped(&place, &one, 2).counters.recorded, 7);
    assert_eq!(until_dumped(&place, &two, 1).counters.recorded, 3, "the other one does not dump again");

    // A dump that is registered later runs alone, for both sessions, without a bell.
    child.say("bert")?;
    assert_eq!(until_dumped(&place, &one, 3).counters.recorded, 7 + 4);
    assert_eq!(until_dumped(&place, &two, 2).counters.recorded, 3 + 3);
    child.say("panic")?;
    let ack = until_dumped(&place, &one, 4);
    let dumps: Vec<_> = ack.state_dumps.iter().map(|dump| (dump.name.as_str(), dump.ran, dump.panicked)).collect();
    assert_eq!(dumps, [("first", 2, 0), ("more", 1, 0), ("more", 0, 1)]);

    // Another start is another trace, with the whole state.
    for state in [State::Stopped, State::Active] {
        two.change("again", |spec| {
            spec.state = state;
            Ok(())
        })?;
        place.acks(&two);
    }
    assert_eq!(until_dumped(&place, &two, 3).state_dumps.len(), 3);
    for session in [&one, &two] {
        let removed = session.destroy(PATIENCE, false)?;
        assert!(removed.silent.is_empty() && removed.acks[0].state_dumps.len() == 3, "{removed:?}");
    }
    let trace = &traces(&place.out("one"))[0];
    assert_balances(trace);
    let viewed = view(&[trace]);
    assert_eq!(viewed.warnings, "");
    assert_eq!((viewed.count("tracepoint:state_begin:"), viewed.count("tracepoint:state_end:")), (4, 4));
    assert_eq!((viewed.count("\"anna\""), viewed.count("held:file:"), viewed.count("panicked = 1")), (2, 3, 1));
    assert_eq!(traces(&place.out("two")).len(), 2);
    for trace in traces(&place.out("two")) {
        assert_balances(&trace);
    }
    assert!(child.end());
    Ok(())
}

/// A process that starts after the session runs its dump, even if the dump is registered after the agent was started.
#[test]
fn a_later_process_runs_its_state_dumps() -> Outcome {
    if is_stateful() {
        return Ok(());
    }
    let place = Place::new();
    let session = place.controller.create("early", &spec(&["held:*"], &[SinkSpec::ctf(place.out("early")).into()]))?;
    let test = "state::a_later_process_runs_its_state_dumps";
    let child = until_ready(again(test, "stateful").env("TRACEPOINT_RUN_DIR", place.run_dir()));
    let ack = until_dumped(&place, &session, 1);
    assert_eq!(ack.counters.recorded, 4);
    session.destroy(PATIENCE, false)?;
    let trace = &traces(&place.out("early"))[0];
    assert_balances(trace);
    assert_eq!(view(&[trace]).lines.len(), 4);
    assert!(child.end());
    Ok(())
}
