//! `tracectl trigger`, `triggers`, `untrigger` and `listen`.

#![expect(clippy::host_endian_bytes, reason = "messages have the byte order of the host")]

use super::{DIES, Outcome, Place, Traced, is_traced, kill, program, viewed};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

/// `tracectl listen --json`; killed on drop.
struct Listener {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Listener {
    fn start(place: &Place) -> Result<Self, Box<dyn std::error::Error>> {
        let mut child = place.command(&["listen", "--json"]).stdout(Stdio::piped()).spawn()?;
        let lines = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut listener = Self { child, lines };
        assert_eq!(listener.next()?["type"], "listening");
        Ok(listener)
    }

    fn next(&mut self) -> Result<Value, Box<dyn std::error::Error>> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends the message of a foreign core-dump helper, and returns the answer.
fn core_dump(place: &Place, pid: u32) -> std::io::Result<i32> {
    let mut payload = vec![0; 524];
    payload[..4].copy_from_slice(&pid.to_ne_bytes());
    payload[12..19].copy_from_slice(b"apache2");
    let mut socket = UnixStream::connect(place.path("run/notify"))?;
    socket.set_read_timeout(Some(Duration::from_secs(60)))?;
    socket.write_all(&[&1_u32.to_ne_bytes()[..], &524_u32.to_ne_bytes(), &payload].concat())?;
    let mut answer = [0; 4];
    socket.read_exact(&mut answer)?;
    Ok(i32::from_ne_bytes(answer))
}

/// Unwatched conditions are named; a subscriber gets notifications.
#[test]
fn a_listener_watches_and_notifies() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let refused = place.refused(&["notifications"]);
    assert!(refused.contains("no process listens") && refused.contains("tracectl listen"), "{refused}");
    place.well(&["create", "flight", "-e", "shop:*", "--wait", "--start"]);
    let (code, _, err) = place.tracectl(&["trigger", "killed", "notify", "stop"]);
    assert!(code == Some(0) && err.contains("note: trigger t1 of flight: its condition is noticed by"), "{err}");
    assert!(triggers(&place)["triggers"][0]["missing"].as_str().is_some_and(|text| text.contains("tracectl listen")));
    let mut dies = place.start("triggers::a_listener_watches_and_notifies");
    // A trigger that could never act is refused, unless it is for later processes.
    for (words, said) in [
        (&["event", "shop:pad"][..], "no event of the process matches `shop:pad`; did you mean shop:paid?"),
        (&["event", "shop:*", "--level", "==emerg"], "has a level `==emerg`"),
        (&["event", "shop:*", "--exe", "*/nothing"], "no traced process takes part"),
        (&["event", "shop:paid", "--filter", "cent > 3"], "no field is called `cent`; did you mean cents?"),
    ] {
        let refused = place.refused(&[&["trigger", "--id", "never"], words, &["notify"]].concat());
        assert!(refused.contains(said) && refused.contains("--wait"), "{refused}");
    }
    assert_eq!(triggers(&place)["triggers"].as_array().map(Vec::len), Some(1));
    let (code, _, err) = place.tracectl(&["trigger", "--id", "later", "event", "shop:pad", "notify", "--wait"]);
    assert_eq!(code, Some(0), "{err}");
    place.well(&["untrigger", "later"]);
    place.well(&["status", "flight"]);
    let mut listener = Listener::start(&place)?;
    assert_eq!(triggers(&place)["triggers"][0]["missing"], Value::Null);
    let (code, _, err) = place.tracectl(&["trigger", "killed", "notify", "--id", "again"]);
    assert!(code == Some(0) && !err.contains("note:"), "{err}");

    let mut notifications = place.command(&["notifications", "--json", "-s", "flight"]);
    let mut subscriber = notifications.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let lines = BufReader::new(subscriber.stdout.take().ok_or("no output")?);
    let mut subscriber = Listener { child: subscriber, lines };
    assert_eq!(subscriber.next()?["type"], "subscribed");
    assert_eq!(listener.next()?["type"], "subscriber");
    dies.0.kill()?;
    let notification = subscriber.next()?;
    let occurrence = &notification["occurrence"];
    assert_eq!((&notification["trigger"], &occurrence["condition"]), (&"t1".into(), &"killed".into()));
    assert_eq!((&occurrence["pid"], &occurrence["entries"]["killed_signal"]), (&dies.0.id().into(), &9.into()));
    let report = listener.next()?;
    assert_eq!((&report["type"], &report["session"]), (&"occurred".into(), &"flight".into()));
    // The first trigger stops the session, after the same occurrence has also fired the other one.
    let action = |trigger: usize, action: usize| report["triggers"][trigger]["actions"][action]["action"].clone();
    assert_eq!([action(0, 0), action(0, 1), action(1, 0)], ["notify", "stop", "notify"], "{report:#}");
    assert_eq!(subscriber.next()?["trigger"], "again");

    // The text, and the end of the listener.
    kill(&listener.child, "TERM")?;
    assert!(listener.child.wait()?.success());
    let mut err = String::new();
    subscriber.child.stderr.take().ok_or("no messages")?.read_to_string(&mut err)?;
    assert!(!subscriber.child.wait()?.success() && err.contains("the listener has ended"), "{err}");
    let (_, shown, _) = place.tracectl(&["triggers"]);
    assert!(shown.contains("last: notify done\n"), "{shown}");
    Ok(())
}

/// Without a listener, a recorder acts for the triggers of its session.
#[test]
fn a_recorder_watches_its_session() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let mut dies = place.start("triggers::a_recorder_watches_its_session");
    let mut record = place.command(&["record", "-e", "shop:*", "-o", "trace"]);
    let mut record = Traced(record.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
    let session = format!("record-{}", record.0.id());
    // It watches before it has an output. Ends of processes before that are not occurrences.
    let _ = until(|| fs::read_dir(place.path("trace")).ok()?.next());
    let mark = place.path("mark");
    let run =
        ["trigger", "-s", &session, "killed", "run", "--", "/bin/sh", "-c", "echo $TRACEPOINT_TRIGGER_PID > \"$0\""];
    let (code, _, err) = place.tracectl(&[&run[..], &[mark.to_str().ok_or("no text")?]].concat());
    assert!(code == Some(0) && !err.contains("note:"), "{err}");
    dies.0.kill()?;
    let text = until(|| fs::read_to_string(&mark).ok().filter(|text| !text.is_empty()));
    assert_eq!(text.trim(), dies.0.id().to_string());
    kill(&record.0, "INT")?;
    record.0.wait()?;
    Ok(())
}

/// Waits until `found` returns a value.
fn until<T>(found: impl Fn() -> Option<T>) -> T {
    let began = std::time::Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "it did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The output of `triggers --json`.
fn triggers(place: &Place) -> Value {
    serde_json::from_str(&place.well(&["triggers", "--json"])).expect("JSON")
}

#[test]
fn a_core_dump_is_received_and_a_snapshot_taken() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let test = "triggers::a_core_dump_is_received_and_a_snapshot_taken";
    let healthy = place.start(test);
    place.well(&["create", "flight", "-e", "shop:*", "--start"]);
    let (code, _, err) =
        place.tracectl(&["trigger", "OnAnyCoreDump", "snapshot", "stop", "-o", "crashes", "--keep", "2"]);
    assert_eq!(code, Some(0));
    let crashes = place.path("crashes");
    let said = format!("trigger t1 of flight: OnAnyCoreDump: snapshot into {}, then stop\n", crashes.display());
    assert!(err.starts_with(&said), "{err}");
    let state = &triggers(&place)["triggers"][0]["state"];
    assert_eq!((&state["occurred"], &state["last_ns"]), (&0.into(), &Value::Null));

    // A second process of the session dies, and its last events are in its rings.
    let mut dies = program(test, 50);
    dies.env(DIES, "1").env("TRACEPOINT_RUN_DIR", place.path("run")).stdout(Stdio::null()).stderr(Stdio::null());
    let mut dies = dies.spawn()?;
    assert!(!dies.wait()?.success());

    let mut listener = Listener::start(&place)?;
    let refused = place.refused(&["listen"]);
    assert!(refused.contains(&format!("process {} listens", listener.child.id())), "{refused}");
    assert_eq!(core_dump(&place, dies.id())?, 0);
    let report = listener.next()?;
    assert_eq!(
        (&report["type"], &report["pid"], &report["answer"]),
        (&"core_dump".into(), &dies.id().into(), &0.into())
    );
    let actions = &report["triggers"][0]["actions"];
    assert_eq!((&actions[0]["action"], &actions[1]["action"]), (&"snapshot".into(), &"stop".into()));
    let output = actions[0]["output"].as_str().ok_or("no output")?;
    assert!(output.starts_with(crashes.to_str().ok_or("no text")?), "{output}");
    assert!(viewed(output.as_ref(), "{ cents = 49 }") >= 1);
    let traces: Vec<_> = fs::read_dir(output)?.flatten().map(|entry| entry.file_name().into_string()).collect();
    let has = |pid: u32| traces.iter().flatten().any(|name| name.starts_with(&format!("{pid}-")));
    assert!(has(dies.id()) && has(healthy.0.id()), "{traces:?}");

    // The session is stopped, so another core dump is only counted.
    assert!(place.well(&["status", "flight"]).contains("flight: stopped"));
    assert_eq!(core_dump(&place, 1)?, 0);
    assert!(listener.next()?["triggers"][0]["suppressed"].as_str().is_some_and(|reason| reason.contains("stopped")));
    let now = triggers(&place);
    assert_eq!(now["listener"], listener.child.id());
    let state = &now["triggers"][0]["state"];
    let counts = ["occurred", "fired", "suppressed", "failed"].map(|count| state[count].as_u64());
    assert_eq!(counts, [Some(2), Some(1), Some(1), Some(0)]);
    let (_, shown, _) = place.tracectl(&["triggers"]);
    assert!(shown.contains(&format!("last: snapshot {output}\n")) && shown.contains("last: stop done\n"), "{shown}");
    assert!(shown.contains("keeps 2 snapshots within 1.00 GiB"), "{shown}");

    // It is killed and restarted, and then ends cleanly.
    kill(&listener.child, "KILL")?;
    listener.child.wait()?;
    assert!(core_dump(&place, 1).is_err());
    let mut listener = Listener::start(&place)?;
    assert_eq!(core_dump(&place, 1)?, 0);
    kill(&listener.child, "TERM")?;
    assert!(listener.child.wait()?.success());
    assert!(!place.path("run/notify").exists());
    Ok(())
}

/// An event that matches: the snapshot has its fields, a program and a subscriber are notified, and a process whose fields do not fit the
/// filter is named.
#[test]
fn an_event_that_matches_is_acted_on() -> Outcome {
    const TEST: &str = "triggers::an_event_that_matches_is_acted_on";
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    place.well(&["create", "flight", "-e", "shop:*", "--wait", "--start"]);
    let set = |words: &[&str]| {
        let (code, _, err) = place.tracectl(&[&["trigger", "-s", "flight"], words].concat());
        assert_eq!(code, Some(0), "{err}");
    };
    let _listener = Listener::start(&place)?;
    let told = place.path("told");
    let script = format!("env | grep ^TRACEPOINT_TRIGGER_ | sort > {}", told.display());
    set(&[
        "event",
        "shop:paid",
        "--filter",
        "cents == 30",
        "snapshot",
        "-o",
        "out",
        "run",
        "--",
        "/bin/sh",
        "-c",
        &script,
    ]);
    set(&["event", "shop:*", "--filter", "price > 3", "stop"]);
    let process = place.start(TEST);
    let began = std::time::Instant::now();
    let state = loop {
        let state = triggers(&place)["triggers"][0]["state"].clone();
        if state["last"][1]["ended"].is_string() {
            break state;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{state}");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!((&state["occurred"], &state["failed"]), (&1.into(), &0.into()), "{state}");
    let output = state["last"][0]["output"].as_str().ok_or("no snapshot")?;
    assert_eq!(viewed(output.as_ref(), "{ cents = 30 }"), 1);
    let told = fs::read_to_string(told)?;
    for part in [
        "TRACEPOINT_TRIGGER_CONDITION=event\n",
        "TRACEPOINT_TRIGGER_FIELD_CENTS=30\n",
        &format!("TRACEPOINT_TRIGGER_SNAPSHOT={output}\n"),
    ] {
        assert!(told.contains(part), "{part} is not in {told}");
    }
    let all = triggers(&place);
    let watched = &all["processes"][0];
    assert_eq!(
        (&watched["pid"], &watched["triggers"]["t1"]),
        (&process.0.id().into(), &serde_json::json!({ "events": 1 }))
    );
    let (_, _, err) = place.tracectl(&["triggers"]);
    assert!(err.contains("trigger t2 of flight: process") && err.contains("price"), "{err}");
    Ok(())
}

#[test]
fn triggers_belong_to_their_session() -> Outcome {
    let place = Place::new();
    let refused = place.refused(&["trigger", "OnAnyCoreDump", "stop"]);
    assert!(refused.contains("there is no session"), "{refused}");
    for name in ["one", "two"] {
        place.well(&["create", name, "-e", "nothing:*", "--wait"]);
    }
    let refused = place.refused(&["trigger", "OnAnyCoreDump", "stop"]);
    assert!(refused.contains("one, two") && refused.contains("-s NAME"), "{refused}");
    // A missing directory `$XDG_STATE_HOME` is created, and never replaced by another one.
    let snapshot = |state: &Path| {
        let mut command = place.command(&["trigger", "-s", "two", "panic", "snapshot", "--id", "state"]);
        let output = command.env("XDG_STATE_HOME", state).output()?;
        Ok::<_, std::io::Error>((output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned()))
    };
    let state = place.path("state");
    let (code, said) = snapshot(&state)?;
    assert!(
        code == Some(0) && state.is_dir() && said.contains(&format!("snapshot into {}/", state.display())),
        "{said}"
    );
    place.well(&["untrigger", "-s", "two", "state"]);
    let (code, said) = snapshot(Path::new("/proc/nowhere"))?;
    assert!(code == Some(3) && said.contains("cannot use `$XDG_STATE_HOME`: /proc/nowhere cannot be made"), "{said}");
    let statistic = ["trigger", "-s", "two", "statistic", "p99 of hist(size) > 5", "stop"];
    let refused = place.refused(&statistic);
    assert!(
        refused.contains("the session two does not compute `hist(size)`") && refused.contains("it computes none"),
        "{refused}"
    );
    place.well(&["enable", "two", "-e", "nothing:*", "--statistic", "hist(sizes)", "--wait"]);
    let refused = place.refused(&statistic);
    assert!(refused.contains("it computes `hist(sizes)`; did you mean hist(sizes)?"), "{refused}");
    let set = |more: &[&str]| {
        let (code, _, err) = place.tracectl(&[&["trigger", "-s", "one", "OnAnyCoreDump"], more].concat());
        assert_eq!(code, Some(0), "{err}");
        err
    };
    // Its default directory is the user's, and is determined now.
    let command =
        place.command(&["trigger", "-s", "two", "OnAnyCoreDump", "snapshot"]).env("XDG_STATE_HOME", "/tmp").output()?;
    let said = String::from_utf8(command.stderr)?;
    assert!(said.contains("snapshot into /tmp/tracepoint/snapshots/two\n"), "{said}");
    set(&["stop", "--every", "3", "--limit", "2/h"]);
    set(&["stop", "--id", "mine"]);
    for (words, said) in [
        (
            &["event", "shop:*", "--filter", "status >= 500", "snapshot", "-o", "/a", "--before", "10s", "--id", "e"][..],
            "trigger e of two: event `shop:*` --filter 'status >= 500': snapshot into /a\n",
        ),
        (&["size", "1K", "rotate", "notify", "--id", "s"], "trigger s of two: size 1024: rotate, then notify\n"),
        (
            &["signal", "SIGUSR2", "run", "--id", "r", "--", "/bin/true", "-x"],
            "trigger r of two: signal USR2: run /bin/true -x\n",
        ),
    ] {
        let (code, _, err) = place.tracectl(&[&["trigger", "-s", "two"], words].concat());
        assert!(code == Some(0) && err.contains(said), "{err}");
    }
    place.well(&["untrigger", "-s", "two", "e", "s", "r"]);
    let refused = place.refused(&["trigger", "-s", "one", "OnAnyCoreDump", "stop", "--id", "mine"]);
    assert!(refused.contains("untrigger mine"), "{refused}");
    for wrong in [
        &["OnFullMoon", "stop"][..],
        &["OnAnyCoreDump", "howl"],
        &["OnAnyCoreDump"],
        &["signal", "KILL", "stop"],
        &["ring-full", "80%"],
        &["lost", "run"],
        &["lost", "stop", "--filter", "a == 1"],
    ] {
        assert_eq!(place.tracectl(&[&["trigger", "-s", "one"], wrong].concat()).0, Some(2), "{wrong:?}");
    }

    // They are saved, loaded, and removed.
    place.well(&["save", "one", "one.toml"]);
    place.well(&["load", "three", "one.toml"]);
    let of = |session: &str| {
        let (code, out, err) = place.tracectl(&["triggers", "-s", session, "--json"]);
        assert_eq!(code, Some(0), "{err}");
        let all: Value = serde_json::from_str(&out).expect("JSON");
        let ids = all["triggers"].as_array().expect("a list").iter().map(|one| one["id"].as_str().map(str::to_owned));
        ids.collect::<Option<Vec<_>>>().expect("ids")
    };
    assert_eq!((of("three"), of("two")), (vec!["t1".to_owned(), "mine".to_owned()], vec!["t1".to_owned()]));
    place.well(&["untrigger", "-s", "three", "t1", "mine"]);
    assert_eq!((of("three").len(), of("one").len()), (0, 2));
    let refused = place.refused(&["untrigger", "-s", "one", "t7"]);
    assert!(refused.contains("there are: t1, mine"), "{refused}");
    // A trigger of a newer version is named, and kept.
    let file = place.path("run/sessions/one/session.toml");
    let newer = "\n[[trigger]]\nid = \"new\"\nwhen = \"OnFullMoon\"\nactions = [\"stop\"]\n";
    fs::write(&file, fs::read_to_string(&file)? + newer)?;
    let (code, _, err) = place.tracectl(&["triggers", "-s", "one"]);
    assert!(code == Some(0) && err.contains("trigger `new` is not supported"), "{err}");
    set(&["stop"]);
    assert!(fs::read_to_string(&file)?.contains("OnFullMoon"));
    place.well(&["untrigger", "-s", "one", "new"]);
    Ok(())
}
