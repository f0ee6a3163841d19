//! Triggers: a client written only from the tables of `docs/format-notify.md`, the listener, firing without a listener, and failing
//! actions.

#![expect(clippy::host_endian_bytes, reason = "messages have the byte order of the host")]

mod by_hand;
mod in_process;
mod later;
mod watched;

use crate::common::{Outcome, again_mounted, fill_up, names, part, view};
use crate::traced::{PATIENCE, Place, is_traced, spec};
use by_hand::{Client, Listening, core_dump, message};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use tracepoint_controller::NamedSession;
use tracepoint_controller::trigger::{
    CoreDump, FireOutcome, Listener, TriggerError, TriggerOptions, TriggerStatus, Watchers, trigger_fire,
    trigger_remove, trigger_set,
};
use tracepoint_run_dir::RunDir;
use tracepoint_session_spec::{State, TriggerAction, TriggerCondition};

/// A session without a sink that keeps the newest events.
fn flight<'a>(place: &'a Place, name: &str) -> NamedSession<'a> {
    let mut spec = spec(&["traced:*"], &[]);
    "overwrite".clone_into(&mut spec.channel.policy);
    place.controller.create(name, &spec).expect("a session")
}

fn socket(place: &Place) -> PathBuf {
    place.run_dir().join("notify")
}

fn core(pid: u32) -> CoreDump {
    CoreDump::new(pid, 1000, 1001, "apache2", "box")
}

fn fire(place: &Place, core: &CoreDump) -> Result<FireOutcome, TriggerError> {
    trigger_fire(TriggerCondition::CoreDump, Some(&socket(place)), core)
}

/// Returns the only trigger of a session.
fn status(session: &NamedSession<'_>) -> TriggerStatus {
    session.triggers().expect("triggers").pop().expect("there is one")
}

/// Returns the snapshots in a directory, including temporary ones.
fn snapshots(dir: &Path) -> Vec<PathBuf> {
    if dir.exists() { names(dir).iter().map(|name| dir.join(name)).collect() } else { Vec::new() }
}

#[test]
fn bytes_written_by_hand_are_answered() -> Outcome {
    let place = Place::new();
    let _listening = Listening::start(&place.run_dir());
    let mut client = Client::connect(&socket(&place))?;
    let plain = core_dump(42, 1000, 1000, b"apache2", b"A_HOST_NAME");
    assert_eq!(plain.len(), 522);
    let padded = [&plain[..], &[0xAA; 2]].concat();
    for payload in [&plain, &padded] {
        client.send(&message(1, payload))?;
        assert_eq!(client.answer()?, Some(0));
    }
    for byte in message(1, &padded) {
        client.send(&[byte])?;
    }
    assert_eq!(client.answer()?, Some(0), "in fragments");
    let several =
        [message(1, &plain), message(2, b"garbage"), message(1, &padded), message(1, &[]), message(1, &plain)];
    client.send(&several.concat())?;
    let answers: Result<Vec<_>, _> = several.iter().map(|_| client.answer()).collect();
    assert_eq!(answers?, [Some(0), Some(-95), Some(0), Some(-22), Some(0)], "coalesced, with garbage between");
    client.send(&message(u32::MAX, &vec![1; 65_536]))?;
    assert_eq!(client.answer()?, Some(-95), "64 KiB are skipped");
    client.send(&message(1, &plain))?;
    assert_eq!(client.answer()?, Some(0), "what follows is a message");
    client.send(&[1_u32.to_ne_bytes(), 65_537_u32.to_ne_bytes()].concat())?;
    assert_eq!(client.answer()?, None, "more closes the connection");

    // Names without a NUL, and of arbitrary bytes.
    let mut client = Client::connect(&socket(&place))?;
    client.send(&message(1, &core_dump(1, 2, 3, &[0xFF; 255], &[b'/'; 255])))?;
    assert_eq!(client.answer()?, Some(0));
    client.send(&message(1, &plain)[..100])?;
    client.shut();
    assert_eq!(client.answer()?, None, "a part of a message is no message");
    Ok(())
}

#[test]
fn a_core_dump_takes_a_snapshot() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let child = place.start("triggers::a_core_dump_takes_a_snapshot");
    let session = flight(&place, "flight");
    place.until_recorded(&session, 20);
    let out = place.out("flight");
    let id = trigger_set(
        &session,
        TriggerCondition::CoreDump,
        TriggerAction::Snapshot(out.clone()),
        &TriggerOptions::default(),
    )?;
    assert_eq!(id, "t1");
    assert_eq!(status(&session).state.occurred, 0);
    let listening = Listening::start(&place.run_dir());

    let mut client = Client::connect(&socket(&place))?;
    client.send(&message(1, &core_dump(4242, 7, 8, b"../a \"b\"\n", b"\xFFbox")))?;
    assert_eq!(client.answer()?, Some(0));
    let [first] = &snapshots(&out)[..] else { panic!("{:?}", snapshots(&out)) };
    assert!(first.to_string_lossy().ends_with("Z-4242"), "{first:?}");
    assert_eq!(fs::metadata(first)?.permissions().mode() & 0o777, 0o700);
    let viewed = view(&[first]);
    assert!(viewed.count("traced:tick") >= 20, "{:?}", viewed.lines.len());
    let details = Command::new("babeltrace2").arg(first).args(["-c", "sink.text.details"]).output()?;
    let details = String::from_utf8_lossy(&details.stdout).into_owned();
    for part in [
        "core_pid: 4242",
        "core_uid: 7",
        "core_gid: 8",
        "core_exe: ../a \"b\"",
        "core_host: \u{FFFD}box",
        "core_time: 2",
    ] {
        assert!(details.contains(part), "{part} is not in {}", &details[..details.len().min(4000)]);
    }

    // The signal is sent in a separate message, and is passed through the listener as well.
    let mut with_signal = core(child.id());
    with_signal.signal = Some(11);
    assert_eq!(fire(&place, &with_signal)?, FireOutcome::ByListener);
    let state = status(&session).state;
    let second = state.snapshots[1].path.clone();
    assert!(fs::read_to_string(second.join("metadata"))?.contains("core_signal = 11;"));
    assert_eq!((state.occurred, state.fired, state.failed, state.snapshots.len()), (2, 2, 0, 2));
    assert_eq!(state.last[0].output.as_deref(), Some(&*second));
    assert!(state.snapshots.iter().all(|snapshot| snapshot.bytes > 4096), "{state:?}");
    assert_eq!(Watchers::of(&place.run_dir()).listener, Some(std::process::id()));
    drop(listening);
    assert_eq!(Watchers::of(&place.run_dir()).listener, None);

    // The process continues, and destroying the session removes all files of its triggers except the snapshots.
    place.until_recorded(&session, 5);
    trigger_remove(&session, "t1")?;
    assert!(matches!(trigger_remove(&session, "t1"), Err(TriggerError::NoTrigger { .. })));
    trigger_set(&session, TriggerCondition::CoreDump, TriggerAction::Stop, &TriggerOptions::default())?;
    assert_eq!(status(&session).state.fired, 0, "it is a new one");
    session.destroy(PATIENCE, true)?;
    assert!(!place.run_dir().join("sessions/flight").exists());
    assert_eq!(snapshots(&out).len(), 2);
    assert!(child.end());
    Ok(())
}

#[test]
fn without_a_listener_the_one_who_fires_acts() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    assert_eq!(fire(&place, &core(1))?, FireOutcome::Here(Vec::new()), "there is no session");
    let child = place.start("triggers::without_a_listener_the_one_who_fires_acts");
    let (one, two) = (flight(&place, "one"), flight(&place, "two"));
    place.until_recorded(&one, 5);
    place.until_recorded(&two, 5);
    let out = place.out("both");
    let mut options = TriggerOptions::default();
    options.keep = Some(3);
    for session in [&one, &two] {
        trigger_set(session, TriggerCondition::CoreDump, TriggerAction::Snapshot(out.clone()), &options)?;
    }
    let before = one.spec()?.generation;
    trigger_set(&one, TriggerCondition::CoreDump, TriggerAction::Snapshot(out.clone()), &options)?;
    assert_eq!((one.spec()?.generation, one.triggers()?.len()), (before, 1), "it is set already");

    // Eight at once, of the same process.
    let fired: Vec<_> = thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|_| scope.spawn(|| fire(&place, &core(4242)))).collect();
        all.into_iter().map(|one| one.join().expect("no panic")).collect()
    });
    for fired in fired {
        let FireOutcome::Here(fired) = fired? else { panic!("there is no listener") };
        let of: Vec<_> = fired.iter().map(|fired| fired.session.as_str()).collect();
        assert_eq!(of, ["one", "two"]);
    }
    for session in [&one, &two] {
        let state = status(session).state;
        assert_eq!((state.fired, state.failed, state.snapshots.len(), state.removed), (8, 0, 3, 5), "{state:?}");
        for snapshot in &state.snapshots {
            assert!(view(&[&snapshot.path]).count("traced:tick") > 0);
        }
    }
    assert_eq!(snapshots(&out).len(), 6, "{:?}", snapshots(&out));
    assert!(child.end());
    Ok(())
}

#[test]
fn actions_are_done_in_order_although_one_fails() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let child = place.start("triggers::actions_are_done_in_order_although_one_fails");
    let session = flight(&place, "flight");
    place.until_recorded(&session, 5);
    let file = place.temp.path().join("file");
    fs::write(&file, "")?;
    let mut options = TriggerOptions::default();
    options.then = vec![TriggerAction::Stop];
    trigger_set(&session, TriggerCondition::CoreDump, TriggerAction::Snapshot(file.join("x")), &options)?;
    // The listener reports the failure by a negative answer, the function by an error, and it is stored in the state.
    let listening = Listening::start(&place.run_dir());
    let error = fire(&place, &core(1)).expect_err("the place is a file");
    assert!(
        matches!(&error, TriggerError::ListenerAction { source } if source.raw_os_error() == Some(20)),
        "{error:?}"
    );
    drop(listening);
    assert_eq!(session.spec()?.state, State::Stopped);
    let state = status(&session).state;
    assert_eq!((state.fired, state.failed, state.last.len()), (1, 1, 2));
    assert!(state.last[0].error.as_ref().is_some_and(|error| error.contains("Not a directory")), "{state:?}");
    assert_eq!((state.last[1].action.as_str(), &state.last[1].error), ("stop", &None));
    assert!(session.log()?.contains("stop by trigger t1"), "{}", session.log()?);

    // A stopped session is not affected.
    let FireOutcome::Here(fired) = fire(&place, &core(1))? else { panic!("there is no listener") };
    assert!(fired[0].suppressed.as_ref().is_some_and(|reason| reason.contains("stopped")), "{fired:?}");
    let state = status(&session).state;
    assert_eq!((state.occurred, state.fired, state.suppressed), (2, 1, 1));
    assert!(child.end());
    Ok(())
}

#[test]
fn a_full_disk_is_reported_and_nothing_is_left() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    if part() != "full" {
        let out = crate::common::place();
        let Some(mut test) =
            again_mounted("triggers::a_full_disk_is_reported_and_nothing_is_left", "full", out.path(), "256k")
        else {
            return Ok(());
        };
        assert!(test.env("TEST_OUT", out.path()).status()?.success());
        return Ok(());
    }
    let out = PathBuf::from(std::env::var_os("TEST_OUT").ok_or("no place")?);
    let place = Place::new();
    let child = place.start("triggers::a_full_disk_is_reported_and_nothing_is_left");
    let session = flight(&place, "flight");
    place.until_recorded(&session, 5);
    trigger_set(
        &session,
        TriggerCondition::CoreDump,
        TriggerAction::Snapshot(out.clone()),
        &TriggerOptions::default(),
    )?;
    let ballast = fill_up(&out)?;
    let error = fire(&place, &core(1)).expect_err("the disk is full");
    assert!(matches!(&error, TriggerError::Action { errno: 28, .. }), "{error:?}");
    assert_eq!(snapshots(&out), std::slice::from_ref(&ballast));
    assert_eq!(status(&session).state.failed, 1);
    fs::remove_file(ballast)?;
    place.until_recorded(&session, 5);
    // A snapshot that exceeds the limit alone is removed.
    let mut options = TriggerOptions::default();
    options.max_size = Some(1);
    trigger_set(&session, TriggerCondition::CoreDump, TriggerAction::Snapshot(out.clone()), &options)?;
    let error = fire(&place, &core(1)).expect_err("it is too large").to_string();
    assert!(error.contains("trigger t2") && error.contains("--max-size"), "{error}");
    assert_eq!(snapshots(&out).len(), 1, "that of the other trigger");
    assert!(child.end());
    Ok(())
}

#[test]
fn clients_do_not_harm_each_other() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let child = place.start("triggers::clients_do_not_harm_each_other");
    let session = flight(&place, "flight");
    place.until_recorded(&session, 5);
    let out = place.out("flight");
    let mut options = TriggerOptions::default();
    options.keep = Some(100);
    trigger_set(&session, TriggerCondition::CoreDump, TriggerAction::Snapshot(out.clone()), &options)?;
    let _listening = Listening::start(&place.run_dir());
    // Clients that send nothing, stall within a message, or never read an answer.
    let silent: Vec<_> = (0..10).map(|_| Client::connect(&socket(&place))).collect::<Result<_, _>>()?;
    let mut stalled = Client::connect(&socket(&place))?;
    stalled.send(&message(1, &core_dump(1, 2, 3, b"a", b"b"))[..200])?;
    let mut deaf = Client::connect(&socket(&place))?;
    deaf.send(&(0..2000).flat_map(|_| message(99, b"")).collect::<Vec<_>>())?;
    // 50 processes crash at once; every fifth helper ends before it is answered.
    thread::scope(|scope| {
        for pid in 1..=50 {
            let place = &place;
            scope.spawn(move || {
                let mut client = Client::connect(&socket(place)).expect("a listener");
                client.send(&message(1, &core_dump(pid, 0, 0, b"crash", b"box"))).expect("sent");
                if pid % 5 != 0 {
                    assert_eq!(client.answer().expect("an answer"), Some(0));
                }
            });
        }
    });
    let mut state = status(&session).state;
    while state.snapshots.len() < 50 {
        thread::sleep(std::time::Duration::from_millis(10));
        state = status(&session).state;
    }
    assert_eq!((state.fired, state.failed, state.snapshots.len()), (50, 0, 50));
    let of_pid =
        |pid: u32| snapshots(&out).iter().filter(|path| path.to_string_lossy().ends_with(&format!("-{pid}"))).count();
    assert!((1..=50).all(|pid| of_pid(pid) == 1), "{:?}", snapshots(&out));
    drop((silent, stalled, deaf));
    assert!(child.end());
    Ok(())
}

#[test]
fn a_killed_listener_is_replaced_and_a_second_one_refused() -> Outcome {
    let place = Place::new();
    if part() == "listen" {
        let run_dir = PathBuf::from(std::env::var_os("TRACEPOINT_RUN_DIR").ok_or("no run directory")?);
        let _listening = Listening::start(&run_dir);
        crate::common::ready();
        return Ok(());
    }
    let test = "triggers::a_killed_listener_is_replaced_and_a_second_one_refused";
    let mut other =
        crate::common::until_ready(crate::common::again(test, "listen").env("TRACEPOINT_RUN_DIR", place.run_dir()));
    let bind = || Listener::bind(RunDir::at(&place.run_dir())?);
    let error = bind().expect_err("there is one");
    assert!(matches!(&error, TriggerError::Listening { pid, .. } if *pid == other.id()), "{error:?}");
    assert_eq!(fire(&place, &core(1))?, FireOutcome::ByListener);
    other.kill();
    assert!(socket(&place).exists(), "it was killed");
    assert_eq!(fire(&place, &core(1))?, FireOutcome::Here(Vec::new()));
    let listening = Listening::start(&place.run_dir());
    assert_eq!(fire(&place, &core(1))?, FireOutcome::ByListener);
    assert_eq!(fs::metadata(socket(&place))?.permissions().mode() & 0o777, 0o600);
    drop(listening);
    assert!(!socket(&place).exists());
    // A listener that was stopped after it had received a message, or ends before it answers: the message is not lost.
    let deaf = std::os::unix::net::UnixListener::bind(socket(&place))?;
    let accepted = thread::spawn(move || drop(deaf.accept()));
    assert_eq!(fire(&place, &core(1))?, FireOutcome::Here(Vec::new()));
    accepted.join().expect("accepted");
    Ok(())
}

#[test]
fn only_this_user_and_root_are_served() -> Outcome {
    const USERS: [u32; 2] = [65_530, 65_531];
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).ok_or("no place");
    match part().as_str() {
        "listen" => {
            let _listening = Listening::start(&variable("TRACEPOINT_RUN_DIR")?);
            crate::common::ready();
            return Ok(());
        }
        "fire" => {
            let path = variable("TRACEPOINT_RUN_DIR")?.join("notify");
            let error =
                trigger_fire(TriggerCondition::CoreDump, Some(&path), &core(1)).expect_err("it is another user's");
            assert!(matches!(error, TriggerError::NotPermitted { .. }), "{error:?}");
            let mut client = Client::connect(&path)?;
            // The connection may be closed already.
            let _ = client.send(&message(1, &core_dump(1, 2, 3, b"a", b"b")));
            assert_eq!(client.answer()?, Some(-1));
            return Ok(());
        }
        _ => {}
    }
    assert!(rustix::process::geteuid().is_root(), "this test plays several users: run it as root");
    let place = Place::new();
    let run_dir = place.temp.path().join("theirs");
    fs::create_dir(&run_dir)?;
    let open = |path: &Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode));
    open(place.temp.path(), 0o755)?;
    open(&run_dir, 0o700)?;
    std::os::unix::fs::chown(&run_dir, Some(USERS[0]), Some(USERS[0]))?;
    let program = place.temp.path().join("program");
    fs::copy(std::env::current_exe()?, &program)?;
    open(&program, 0o755)?;
    let as_user = |user: u32, part: &str| {
        let mut command = Command::new("setpriv");
        command.args([format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".to_owned()]).arg(&program);
        command.args(["--exact", "triggers::only_this_user_and_root_are_served", "--quiet", "--nocapture"]);
        command.env("TEST_PART", part).env("TRACEPOINT_RUN_DIR", &run_dir).stdin(std::process::Stdio::piped());
        command
    };
    let listening = crate::common::until_ready(&mut as_user(USERS[0], "listen"));
    let path = run_dir.join("notify");
    assert_eq!(trigger_fire(TriggerCondition::CoreDump, Some(&path), &core(1))?, FireOutcome::ByListener, "root");
    // Another user cannot reach the socket. If it were open to all, the listener would refuse.
    let mut client = as_user(USERS[1], "fire");
    assert!(!client.output()?.status.success());
    open(&run_dir, 0o711)?;
    open(&path, 0o666)?;
    let output = client.output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(listening.end());
    Ok(())
}

/// A session in code: its process has written its triggers next to its rings, and does nothing else for them.
#[test]
fn a_session_in_code_has_triggers() -> Outcome {
    use tracepoint_session::{Channel, Session};
    let out = |place: &Path| place.join("out");
    let flight = |dir: &Path| {
        Session::builder("code")
            .events("traced:*")
            .channel(Channel::overwrite(1 << 20))
            .trigger(TriggerCondition::CoreDump, TriggerAction::Snapshot(out(dir)))
    };
    if part() == "code" {
        let session = flight(&PathBuf::from(std::env::var_os("TEST_OUT").ok_or("no place")?)).start()?;
        crate::traced::fire();
        session.stop()?;
        return Ok(());
    }
    let place = Place::new();
    let start = || {
        let mut command = crate::common::again("triggers::a_session_in_code_has_triggers", "code");
        let process = crate::common::until_ready(
            command.env("TRACEPOINT_RUN_DIR", place.run_dir()).env("TEST_OUT", place.temp.path()),
        );
        thread::sleep(std::time::Duration::from_millis(50));
        process
    };
    let mut dies = start();
    let FireOutcome::Here(fired) = fire(&place, &core(1))? else { panic!("there is no listener") };
    assert_eq!((fired.len(), fired[0].session.as_str()), (1, "code"), "any core dump, while it lives: {fired:?}");
    assert!(view(&[fired[0].actions[0].output.as_deref().ok_or("no output")?]).count("traced:tick") > 0);

    // It dies of a core dump: its rings remain. Core dumps of other processes no longer concern it.
    dies.kill();
    let FireOutcome::Here(fired) = fire(&place, &core(dies.id()))? else { panic!("there is no listener") };
    assert_eq!((fired.len(), fired[0].actions[0].error.as_ref()), (1, None), "{fired:?}");
    assert_eq!(fire(&place, &core(1))?, FireOutcome::Here(Vec::new()));
    let [(session, process, status)] = &place.controller.triggers_of_processes()[..] else { panic!("there is one") };
    assert_eq!((session.as_str(), process.pid), ("code", dies.id()));
    assert_eq!((status.state.fired, status.state.snapshots.len(), snapshots(&out(place.temp.path())).len()), (2, 2, 2));

    // With the rings, all files are removed.
    let ends = start();
    assert_eq!(place.controller.triggers_of_processes().len(), 2);
    fire(&place, &core(ends.id()))?;
    assert!(ends.end());
    assert_eq!(place.controller.triggers_of_processes().len(), 1);
    assert_eq!(fs::read_dir(place.run_dir().join("sessions/code/rings"))?.count(), 1);

    for builder in [
        flight(Path::new("/x")).trigger(TriggerCondition::CoreDump, TriggerAction::Stop),
        flight(Path::new("not absolute")),
        flight(Path::new("/x")).in_memory(),
        flight(Path::new("/x")).dir(place.temp.path()),
    ] {
        let error = builder.start().expect_err("it is refused").to_string();
        assert!(error.contains("trigger"), "{error}");
    }
    Ok(())
}
