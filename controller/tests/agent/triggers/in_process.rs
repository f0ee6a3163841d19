//! Conditions that traced processes detect themselves: matching events, full rings and losses, panics, signals and the end of the process.

use super::watched::until;
use super::{flight, snapshots, status};
use crate::common::{Outcome, again, part, ready, until_ready, view};
use crate::traced::{PATIENCE, Place, is_traced, tick};
use rustix::process::{Pid, Signal, kill_process};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tracepoint_controller::trigger::{TriggerOptions, trigger_remove, trigger_set};
use tracepoint_run_dir::TriggerAck;
use tracepoint_session::sinks::{NewEvents, Packet, Sink, SinkError, StreamInfo};
use tracepoint_session::{Agent, Channel, Session, SessionBuilder};
use tracepoint_session_spec::{Rule, State, TriggerAction, TriggerCondition};

/// Maximum time to wait for an action of the process.
const DEADLINE: Duration = Duration::from_secs(60);

fn metadata_of(snapshot: &Path) -> Result<String, std::io::Error> {
    let dir = if snapshot.join("metadata").exists() {
        snapshot.to_owned()
    } else {
        let first = fs::read_dir(snapshot)?.next().ok_or(std::io::ErrorKind::NotFound)??;
        first.path()
    };
    fs::read_to_string(dir.join("metadata"))
}

/// The number in an entry of the environment block.
fn number(metadata: &str, name: &str) -> Option<u64> {
    let (_, rest) = metadata.split_once(&format!("{name} = "))?;
    rest.split(';').next()?.parse().ok()
}

/// The trigger is set before the process starts, so it sees each event: two have this value.
#[test]
fn each_event_that_matches_is_an_occurrence() -> Outcome {
    const TEST: &str = "triggers::in_process::each_event_that_matches_is_an_occurrence";
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let session = flight(&place, "flight");
    let out = place.out("flight");
    let rule = Rule::new("traced:t*").filter("half == 20 && n > 1");
    trigger_set(
        &session,
        TriggerCondition::Event(rule),
        TriggerAction::Snapshot(out.clone()),
        &TriggerOptions::default(),
    )?;
    let child = place.start(TEST);
    let state = until(&session, |state| state.fired == 2 && state.snapshots.len() == 2);
    place.until_recorded(&session, 100);
    assert_eq!((state.occurred, state.suppressed, state.failed), (2, 0, 0), "{state:?}");
    // `tock` has no such field.
    assert_eq!(place.acks(&session)[0].triggers["t1"], TriggerAck::Events(1));
    for (snapshot, n) in state.snapshots.iter().zip([40, 41]) {
        let metadata = metadata_of(&snapshot.path)?;
        assert_eq!(number(&metadata, "field_n"), Some(n), "{metadata}");
        let half = (number(&metadata, "field_half"), number(&metadata, "trigger_pid"));
        assert_eq!(half, (Some(20), Some(child.id().into())));
        for part in ["trigger_event = \"traced:tick\";", "trigger_session = \"flight\";", "half == 20"] {
            assert!(metadata.contains(part), "{part} is not in {metadata}");
        }
        assert_eq!(view(&[&snapshot.path]).count(&format!("{{ n = {n}, half")), 1, "the event itself is in it");
    }
    assert!(child.end());
    Ok(())
}

/// Events that occur faster than actions are done are counted, and a policy counts them as well.
#[test]
fn occurrences_without_a_slot_are_counted() -> Outcome {
    const TEST: &str = "triggers::in_process::occurrences_without_a_slot_are_counted";
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let session = flight(&place, "flight");
    let mut options = TriggerOptions::default();
    options.every = Some(100);
    let rule = Rule::new("traced:tick").filter("n < 3000");
    trigger_set(&session, TriggerCondition::Event(rule), TriggerAction::Snapshot(place.out("flight")), &options)?;
    let child = until_ready(again(TEST, "traced").env("TRACEPOINT_RUN_DIR", place.run_dir()).env("TEST_PAUSE", "1"));
    let state = until(&session, |state| state.occurred == 3000);
    assert!((1..=30).contains(&state.fired), "{state:?}");
    let state = until(&session, |state| state.snapshots.len() == usize::try_from(state.fired.min(10)).unwrap_or(0));
    assert_eq!(state.fired + state.suppressed, 3000, "{state:?}");
    assert!(child.end());
    Ok(())
}

/// A handler is installed while the trigger exists; the signal is deadly before and after.
#[test]
fn a_signal_is_noticed_and_its_handler_removed() -> Outcome {
    const TEST: &str = "triggers::in_process::a_signal_is_noticed_and_its_handler_removed";
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let mut child = place.start(TEST);
    let session = flight(&place, "flight");
    place.until_recorded(&session, 20);
    let pid = Pid::from_raw(child.id().try_into()?).ok_or("no process")?;
    let catches = || -> Result<bool, Box<dyn std::error::Error>> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).ok_or("no mask")?;
        Ok(u64::from_str_radix(line.trim(), 16)? & (1 << (Signal::USR2.as_raw() - 1)) != 0)
    };
    assert!(!catches()?, "no handler without a trigger");
    let id = trigger_set(
        &session,
        TriggerCondition::Signal("USR2".to_owned()),
        TriggerAction::Snapshot(place.out("flight")),
        &TriggerOptions::default(),
    )?;
    assert_eq!(place.acks(&session)[0].triggers[&id], TriggerAck::Watched);
    assert!(catches()?);
    for count in 1..=3 {
        kill_process(pid, Signal::USR2)?;
        let state = until(&session, |state| state.occurred == count && state.snapshots.len() as u64 == count);
        let metadata = metadata_of(&state.snapshots.last().ok_or("none")?.path)?;
        assert_eq!(number(&metadata, "trigger_signal"), u64::try_from(Signal::USR2.as_raw()).ok());
    }
    trigger_remove(&session, &id)?;
    assert!(place.acks(&session)[0].triggers.is_empty());
    assert!(!catches()?, "the signal is as it was");
    place.until_recorded(&session, 20);
    child.kill();
    Ok(())
}

#[test]
fn panics_and_exits_are_noticed() -> Outcome {
    const TEST: &str = "triggers::in_process::panics_and_exits_are_noticed";
    let act = |with: &dyn Fn()| {
        let _agent = Agent::start().expect("an agent");
        for n in 0..10 {
            tracepoint::trace!(tick(n, 7));
        }
        with();
    };
    match part().as_str() {
        "panics" => {
            let body = || {
                tracepoint::trace!(tick(4711, 7));
                panic!("it broke");
            };
            act(&|| {
                let thread = std::thread::Builder::new().name("engine".to_owned()).spawn(body).expect("a thread");
                assert!(thread.join().is_err());
                ready();
            });
            return Ok(());
        }
        "exits" => act(&|| {
            tracepoint::trace!(tick(4712, 7));
            std::process::exit(0)
        }),
        "returns" => {
            act(&|| tracepoint::trace!(tick(4713, 7)));
            return Ok(());
        }
        _ => {}
    }
    let place = Place::new();
    let session = flight(&place, "flight");
    trigger_set(
        &session,
        TriggerCondition::Panic,
        TriggerAction::Snapshot(place.out("panic")),
        &TriggerOptions::default(),
    )?;
    let start = |part: &str| {
        let mut command = again(TEST, part);
        command.env("TRACEPOINT_RUN_DIR", place.run_dir());
        command
    };
    let child = until_ready(&mut start("panics"));
    let state = status(&session).state;
    assert_eq!((state.fired, state.failed), (1, 0), "the thread waited: {state:?}");
    let metadata = metadata_of(&state.snapshots[0].path)?;
    for part in [
        "panic_message = \"it broke\";",
        "panic_thread = \"engine\";",
        "in_process.rs",
        "trigger_condition = \"panic\";",
    ] {
        assert!(metadata.contains(part), "{part} is not in {metadata}");
    }
    assert_eq!(view(&[&state.snapshots[0].path]).count("n = 4711"), 1);
    assert!(child.end());

    trigger_remove(&session, "t1")?;
    trigger_set(
        &session,
        TriggerCondition::Exit,
        TriggerAction::Snapshot(place.out("exit")),
        &TriggerOptions::default(),
    )?;
    for (count, (part, last)) in [("exits", "n = 4712"), ("returns", "n = 4713")].into_iter().enumerate() {
        assert!(start(part).output()?.status.success());
        let state = status(&session).state;
        assert_eq!((state.fired, state.failed), (count as u64 + 1, 0), "{state:?}");
        let snapshot = &state.snapshots[count].path;
        assert_eq!(view(&[snapshot]).count(last), 1, "its rings were still there");
    }
    Ok(())
}

/// A failure is reported in the state, the next action is done, and the process continues.
#[test]
fn failures_do_not_disturb_the_process() -> Outcome {
    const TEST: &str = "triggers::in_process::failures_do_not_disturb_the_process";
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let child = place.start(TEST);
    let session = flight(&place, "flight");
    place.until_recorded(&session, 20);
    let file = place.temp.path().join("file");
    fs::write(&file, "")?;
    let mut options = TriggerOptions::default();
    options.then = vec![
        TriggerAction::Run(vec!["/no/such/program".to_owned()]),
        TriggerAction::Notify,
        TriggerAction::Snapshot(place.out("flight")),
    ];
    options.once_after = Some(1);
    let any = TriggerCondition::Event(Rule::new("traced:tick"));
    trigger_set(&session, any.clone(), TriggerAction::Snapshot(file.join("x")), &options)?;
    let state = until(&session, |state| state.last.len() == 4);
    let failed: Vec<_> = state.last.iter().map(|result| result.error.is_some()).collect();
    assert_eq!((failed, state.failed), (vec![true, true, true, false], 3), "{state:?}");
    place.until_recorded(&session, 100);

    // A session that is destroyed while its trigger acts continuously.
    trigger_remove(&session, "t1")?;
    trigger_set(&session, any, TriggerAction::Snapshot(place.out("often")), &TriggerOptions::default())?;
    until(&session, |state| state.fired > 2);
    session.destroy(PATIENCE, true)?;
    let other = flight(&place, "other");
    place.until_recorded(&other, 100);
    assert!(child.end());
    Ok(())
}

/// An event starts a stopped session; the process watches for it although nothing is recorded.
#[test]
fn an_event_starts_a_stopped_session() -> Outcome {
    const TEST: &str = "triggers::in_process::an_event_starts_a_stopped_session";
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let session = flight(&place, "flight");
    session.change("stop", |spec| {
        spec.state = State::Stopped;
        Ok(())
    })?;
    let child = place.start(TEST);
    assert!(place.on().is_empty());
    let mut options = TriggerOptions::default();
    options.once_after = Some(1);
    trigger_set(&session, TriggerCondition::Event(Rule::new("traced:tick")), TriggerAction::Start, &options)?;
    until(&session, |state| state.fired == 1 && !state.last.is_empty());
    place.until_recorded(&session, 50);
    assert!(child.end());
    Ok(())
}

/// The acknowledgement contains the triggers that this version does not understand, like rules.
#[test]
fn unknown_triggers_are_unsupported() -> Outcome {
    const TEST: &str = "triggers::in_process::unknown_triggers_are_unsupported";
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let session = flight(&place, "flight");
    trigger_set(
        &session,
        TriggerCondition::Event(Rule::new("traced:tick").filter("no_such_field > 1")),
        TriggerAction::Stop,
        &TriggerOptions::default(),
    )?;
    let file = place.run_dir().join("sessions/flight/session.toml");
    let newer = "\n[[trigger]]\nid = \"new\"\nwhen = { moon = \"full\" }\nactions = [\"howl\"]\n";
    fs::write(&file, fs::read_to_string(&file)? + newer)?;
    let child = place.start(TEST);
    let acks = session.acks()?;
    for (id, part) in [("new", "not supported by this version"), ("t1", "no_such_field")] {
        let TriggerAck::Unsupported(reason) = &acks[0].triggers[id] else { panic!("{:?}", acks[0].triggers) };
        assert!(reason.contains(part), "{reason}");
    }
    assert!(child.end());
    Ok(())
}

/// A sink that blocks while the lock is held.
#[derive(Clone, Debug, Default)]
struct Blocking(Arc<Mutex<()>>);

impl Sink for Blocking {
    fn name(&self) -> String {
        "blocking".to_owned()
    }

    fn describe(&mut self, _: &NewEvents<'_>) -> Result<(), SinkError> {
        Ok(())
    }

    fn packet(&mut self, _: &StreamInfo, _: &Packet<'_>) -> Result<(), SinkError> {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }
}

fn code(sink: &Blocking, place: &Path) -> SessionBuilder {
    Session::builder("code")
        .events("traced:tick")
        .channel(Channel::discard(64 << 10).max_rings(1))
        .sink(sink.clone())
        .trigger(TriggerCondition::RingFull(80), TriggerAction::Snapshot(place.join("full")))
        .trigger(TriggerCondition::Lost, TriggerAction::Snapshot(place.join("lost")))
        .trigger(
            TriggerCondition::Event(Rule::new("traced:tick").filter("n == 5")),
            TriggerAction::Snapshot(place.join("five")),
        )
        .trigger(
            TriggerCondition::Statistic("count of count > 2".parse().expect("a threshold")),
            TriggerAction::Snapshot(place.join("counted")),
        )
}

/// The same in code: a ring is full, then events are lost. An event that matches just before the end is acted on.
#[test]
fn a_session_in_code_watches_itself() -> Outcome {
    if part() == "code" {
        let place = PathBuf::from(env::var_os("TEST_OUT").ok_or("no place")?);
        let has = |name: &str| {
            let began = Instant::now();
            // A snapshot that is being written has a name that begins with a dot.
            while crate::common::names(&place.join(name)).iter().all(|name| name.starts_with('.')) {
                assert!(began.elapsed() < DEADLINE, "{name}");
                sleep(Duration::from_millis(5));
            }
        };
        let sink = Blocking::default();
        let session = code(&sink, &place).start()?;
        let blocked = sink.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fill = |most: u64| (10..most).for_each(|n| tracepoint::trace!(tick(n, 0)));
        fill(20_000);
        has("full");
        has("lost");
        drop(blocked);
        session.flush()?;
        // A statistic that is added later is watched, too.
        session.enable(Rule::new("traced:tick").statistic("count"))?;
        fill(13);
        has("counted");
        tracepoint::trace!(tick(5, 0));
        session.stop()?;
        has("five");
        assert_eq!(snapshots(&place.join("five")).len(), 1);
        return Ok(());
    }
    let place = Place::new();
    let test = "triggers::in_process::a_session_in_code_watches_itself";
    let output =
        again(test, "code").env("TRACEPOINT_RUN_DIR", place.run_dir()).env("TEST_OUT", place.temp.path()).output()?;
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata = |name: &str| metadata_of(&snapshots(&place.temp.path().join(name))[0]);
    assert!(number(&metadata("full")?, "trigger_percent") >= Some(80));
    assert!(number(&metadata("lost")?, "trigger_lost") > Some(0));
    assert_eq!(number(&metadata("five")?, "field_n"), Some(5));
    for (builder, part) in [
        (
            code(&Blocking::default(), Path::new("/x")).trigger(TriggerCondition::Exit, TriggerAction::Notify),
            "the condition `exit`",
        ),
        (
            code(&Blocking::default(), Path::new("/x")).trigger(TriggerCondition::Panic, TriggerAction::Rotate),
            "the action `rotate`",
        ),
    ] {
        let error = builder.start().expect_err("it is refused").to_string();
        assert!(error.contains(part), "{error}");
    }
    Ok(())
}
