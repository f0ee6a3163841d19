//! Failures that are reported: damaged files, removed directories, thousands of rules, killed controllers.

use crate::common::{Outcome, again, assert_balances, memory_place, part, process_dirs, until_ready};
use crate::seed;
use crate::traced::{PATIENCE, Place, go_on, is_traced, spec, stop, traces};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};
use tracepoint_controller::Controller;
use tracepoint_run_dir::{AckState, RuleAck, RunDir};
use tracepoint_session_io::ControlError;
use tracepoint_session_spec::{Rule, SessionSpec, SinkSpec};

/// Wakes the agents, and waits until they have read the sessions.
fn ring(place: &Place) -> Outcome {
    assert!(place.controller.refresh(PATIENCE)?.is_empty());
    Ok(())
}

#[test]
fn damaged_sessions_are_refused_and_the_old_version_stays() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _child = place.start("failures::damaged_sessions_are_refused_and_the_old_version_stays");
    let session = place.record("s", &["traced:tick"]);
    place.until_recorded(&session, 5);
    let file = session.path().join("session.toml");
    let text = fs::read_to_string(&file)?;
    for (damaged, part) in [
        (text[..text.find("[[sink]]").ok_or("it has a sink")?].to_owned(), "without a sink"),
        (format!("mood = 1\n{text}"), "unknown field `mood`"),
        (text.replace("version = 1", "version = 9"), "versions up to 1"),
        (String::new(), "`format`"),
    ] {
        fs::write(&file, damaged)?;
        ring(&place)?;
        let ack = session.acks()?.remove(0);
        assert!(ack.error.as_ref().is_some_and(|error| error.contains(part)), "{part}: {ack:?}");
        assert_eq!(place.on(), ["traced:tick"]);
        assert!(matches!(session.change("try", |_| Ok(())), Err(ControlError::SessionDamaged { .. })));
    }
    // A pipe, which would block the process that opens it.
    fs::remove_file(&file)?;
    mknodat(CWD, &file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    ring(&place)?;
    assert_eq!(place.on(), ["traced:tick"]);
    fs::remove_file(&file)?;
    fs::write(&file, &text)?;
    place.until_recorded(&session, 5);
    assert_eq!(place.acks(&session)[0].error, None);
    session.destroy(PATIENCE, false)?;
    assert_balances(&traces(&place.out("s"))[0]);
    Ok(())
}

#[test]
fn an_unknown_rule_alone_is_unsupported() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _child = place.start("failures::an_unknown_rule_alone_is_unsupported");
    let session = place.record("s", &["traced:tick"]);
    let file = session.path().join("session.toml");
    let newer = fs::read_to_string(&file)?.replace("generation = 1", "generation = 2");
    fs::write(&file, newer + "\n[[rule]]\nevent = \"traced:tock\"\nsampled = 10\n")?;
    ring(&place)?;
    let ack = place.acks(&session).remove(0);
    let [Some(RuleAck::Events(1)), Some(RuleAck::Unsupported(reason))] = &ack.rules[..] else {
        return Err(format!("{ack:?}").into());
    };
    assert!(reason.contains("sampled"), "{reason}");
    assert_eq!(place.on(), ["traced:tick"]);
    // Other controllers may change the parts that they understand; the unknown rule stays in the file.
    session.change("enable", |spec| {
        spec.add_rule(&Rule::new("traced:tock")).expect("a rule");
        Ok(())
    })?;
    assert_eq!(place.acks(&session)[0].rules.len(), 3);
    assert_eq!(place.on(), ["traced:tick", "traced:tock"]);
    Ok(())
}

/// Removes a directory in which agents write meanwhile: retries if a file is added while it is emptied.
fn remove_by_hand(dir: impl AsRef<Path>) -> std::io::Result<()> {
    loop {
        match fs::remove_dir_all(&dir) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
            done => return done,
        }
    }
}

#[test]
fn a_session_whose_directory_is_removed_ends() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let child = place.start("failures::a_session_whose_directory_is_removed_ends");
    let session = place.record("s", &["traced:tick"]);
    place.until_recorded(&session, 5);
    remove_by_hand(session.path())?;
    assert!(matches!(session.spec(), Err(ControlError::NoSession { .. })));
    assert!(matches!(session.destroy(PATIENCE, false), Err(ControlError::NoSession { .. })));
    assert_eq!(place.on(), [""; 0]);
    assert_balances(&traces(&place.out("s"))[0]);
    // A new session of the same name is a different session.
    fs::remove_dir_all(place.out("s"))?;
    let session = place.record("s", &["traced:tick"]);
    place.until_recorded(&session, 5);
    session.destroy(PATIENCE, false)?;
    assert_balances(&traces(&place.out("s"))[0]);
    // The whole run directory: living processes are not found any more, but continue.
    place.record("t", &["traced:tick"]);
    remove_by_hand(place.run_dir())?;
    assert!(child.end());
    Ok(())
}

#[test]
fn thousands_of_rules_are_applied() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _child = place.start("failures::thousands_of_rules_are_applied");
    let mut spec = spec(&[], &[SinkSpec::ctf(place.out("many")).into()]);
    for n in 0..9_998 {
        spec.add_rule(&Rule::new(format!("other{n}:*")))?;
    }
    spec.add_rule(&Rule::new("*:tick"))?;
    spec.add_rule(&Rule::new("*:tock"))?;
    assert!(spec.add_rule(&Rule::new("one:more")).is_err());
    let began = Instant::now();
    let session = place.controller.create("many", &spec)?;
    let ack = place.acks(&session).remove(0);
    println!("10,000 rules were acknowledged in {:?}", began.elapsed());
    assert_eq!((ack.events, ack.rules.len()), (2, 10_000));
    Ok(())
}

/// The process that is killed: changes a session repeatedly.
fn change_for_ever(run_dir: &Path) -> Outcome {
    let controller = Controller::at(RunDir::at(run_dir)?)?;
    let session = controller.session("s")?;
    println!("ready");
    for n in 0_u64.. {
        session.change("toggle", |spec| {
            let rule = Rule::new(format!("traced:t{}", ["ick", "ock"][(n % 2) as usize]));
            if spec.remove_rule(&rule) == 0 {
                spec.add_rule(&rule).expect("a rule");
            }
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn a_controller_that_is_killed_leaves_a_valid_session() -> Outcome {
    let test = "failures::a_controller_that_is_killed_leaves_a_valid_session";
    if let Some(dir) = part().strip_prefix("change ") {
        return change_for_ever(Path::new(dir));
    }
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _child = place.start(test);
    let session = place.record("s", &["traced:tick"]);
    let mut generation = 1;
    let mut seed = seed::or(7);
    for round in 0..20 {
        let mut changer = until_ready(&mut again(test, &format!("change {}", place.run_dir().display())));
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        sleep(Duration::from_micros(seed >> 49));
        changer.kill();
        let spec = session.spec().map_err(|error| format!("round {round}: {error}"))?;
        assert!(spec.generation >= generation, "round {round}");
        generation = session.change("after", |spec| {
            spec.tag = None;
            spec.limits.keep_dead += 1;
            Ok(())
        })?;
        assert_eq!(generation, spec.generation + 1);
        assert_eq!(place.acks(&session)[0].generation, generation);
    }
    println!("{generation} changes");
    // The log contains all changes, and at most one more for each killed controller.
    let lines = session.log()?.lines().count() as u64;
    assert!((generation..=generation + 20).contains(&lines), "{lines} lines");
    session.destroy(PATIENCE, false)?;
    assert_balances(&traces(&place.out("s"))[0]);
    Ok(())
}

#[test]
fn a_killed_process_is_recovered_and_its_session_continues() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let test = "failures::a_killed_process_is_recovered_and_its_session_continues";
    let (mut dies, stays) = (place.start(test), place.start(test));
    let session = place.record("s", &["traced:tick"]);
    place.until_recorded(&session, 20);
    dies.kill();
    let dead = session.rings_of_dead()?;
    assert_eq!(dead.len(), 1);
    let removed = session.destroy(PATIENCE, false)?;
    assert_eq!(removed.dead, dead);
    let states: Vec<_> = removed.acks.iter().map(|ack| (ack.process.pid == stays.id(), ack.state)).collect();
    assert!(states.contains(&(true, AckState::Ended)) && states.contains(&(false, AckState::Dead)), "{states:?}");
    // The remains are not a session.
    assert!(place.controller.sessions()?.is_empty());
    assert_eq!(process_dirs(&place.run_dir().join("sessions/s")), dead);
    let out = place.temp.path().join("recovered");
    assert!(tracepoint_reader::recover(&dead[0], &out)?.processes[0].records >= 20);
    assert_balances(&out);
    // A session of that name finds the directory, and can remove it with its own.
    let session = place.record("s", &["nothing:*"]);
    assert!(session.destroy(PATIENCE, true)?.dead.is_empty());
    assert!(!place.run_dir().join("sessions/s").exists());
    Ok(())
}

/// A process stays listed, and publishes its description again, whatever happens to its files.
#[test]
fn a_damaged_description_is_written_again() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let child = place.start("failures::a_damaged_description_is_written_again");
    let session = place.record("s", &["traced:tick"]);
    let process = place.controller.processes()?.remove(0);
    let file = place.run_dir().join("apps").join(process.name()).join("process.json");
    let text = fs::read_to_string(&file)?;
    let other = text.replace(&format!("\"pid\":{}", child.id()), "\"pid\":4194999");
    assert_ne!(other, text);
    for damaged in ["", "{", &other] {
        // A running process may read the file, and repair it, before it is read here.
        stop(&child)?;
        fs::write(&file, damaged)?;
        let processes = place.controller.processes()?;
        let [process] = &processes[..] else { return Err(format!("{damaged}: {processes:?}").into()) };
        assert!(process.is_damaged() && process.info().pid == child.id(), "{process:?}");
        go_on(&child)?;
        // Woken, it repairs the file.
        assert!(place.controller.refresh(PATIENCE)?.is_empty());
        assert_eq!(fs::read_to_string(&file)?, text);
        assert!(!place.controller.processes()?[0].is_damaged());
    }
    fs::remove_file(&file)?;
    let patience = Instant::now() + PATIENCE;
    while place.controller.processes()?.is_empty() {
        assert!(Instant::now() < patience, "it is listed again");
    }
    assert_eq!(fs::read_to_string(&file)?, text);
    place.until_recorded(&session, 5);
    session.destroy(PATIENCE, false)?;
    Ok(())
}

#[test]
fn rings_on_a_disk_are_refused() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    // On a disk, rings would stall the program, and are refused.
    let temp = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let run_dir = temp.path().join("run");
    let test = "failures::rings_on_a_disk_are_refused";
    let _child = until_ready(again(test, "traced").env("TRACEPOINT_RUN_DIR", &run_dir));
    let controller = Controller::at(RunDir::at(&run_dir)?)?;
    // The disk may be fuller than the limit for traces.
    let out = memory_place();
    let session = controller.create("s", &spec(&["traced:*"], &[SinkSpec::ctf(out.path().join("out")).into()]))?;
    let waited = session.wait(1, PATIENCE)?;
    let [ack] = &waited.acks[..] else { return Err(format!("{waited:?}").into()) };
    assert_eq!(ack.state, AckState::Refused);
    assert!(ack.error.as_ref().is_some_and(|error| error.contains("is on a disk")), "{ack:?}");
    Ok(())
}

/// Concurrent controllers lose no changes.
#[test]
fn successive_changes_are_all_applied() -> Outcome {
    let temp = memory_place();
    let place = temp.path().join("run");
    let controller = || Controller::at(RunDir::at(&place).expect("a run directory")).expect("a controller");
    let mut spec = SessionSpec::new();
    spec.sinks.push(SinkSpec::ctf("/nowhere").into());
    controller().create("s", &spec)?;
    scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                let controller = controller();
                let session = controller.session("s").expect("a session");
                for n in 0..25 {
                    let add = |spec: &mut SessionSpec| {
                        spec.add_rule(&Rule::new(format!("t{thread}:n{n}"))).expect("a rule");
                        Ok(())
                    };
                    session.change("add", add).expect("a change");
                }
            });
        }
    });
    let controller = controller();
    let session = controller.session("s")?;
    assert_eq!((session.spec()?.generation, session.spec()?.rules().count()), (101, 100));
    Ok(())
}

/// The queue of a bell is full: a later request is repeated, and answered.
#[test]
fn a_full_bell_is_rung_again() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let child = place.start("failures::a_full_bell_is_rung_again");
    let process = place.controller.process(child.id())?;
    stop(&child)?;
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.connect(place.run_dir().join("apps").join(process.name()).join("bell"))?;
    let full = loop {
        if let Err(error) = socket.send(b"") {
            break error;
        }
    };
    assert_eq!(full.kind(), ErrorKind::WouldBlock);
    assert_eq!(place.controller.refresh(Duration::from_millis(20))?.len(), 1);
    let silent = scope(|scope| {
        let asks = scope.spawn(|| place.controller.refresh(PATIENCE));
        sleep(Duration::from_millis(20));
        go_on(&child).expect("goes on");
        asks.join().expect("no panic")
    })?;
    assert!(silent.is_empty(), "{silent:?}");
    assert!(child.end());
    Ok(())
}
