//! Windows around the occurrence, programs, and notifications.

use super::by_hand::{Client, Listening, core_dump, message};
use super::watched::until;
use super::{core, fire, flight, socket, status};
use crate::common::{Outcome, view};
use crate::traced::{Place, is_traced};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, SystemTime};
use tracepoint_controller::trigger::{
    FireOutcome, FireRequest, Occurrence, Subscription, TriggerError, TriggerOptions, trigger_report, trigger_set,
};
use tracepoint_session_spec::{State, TriggerAction, TriggerCondition};

const SUBSCRIBE: u32 = 0x7470_0002;
const NOTIFICATION: u32 = 0x7470_0004;

/// The numbers of the events `tick` in a trace.
fn ticks(trace: &Path) -> Vec<u64> {
    let number = |line: &String| {
        let (_, rest) = line.split_once("traced:tick")?;
        rest.split_once("n = ")?.1.split(',').next()?.trim().parse().ok()
    };
    view(&[trace]).lines.iter().filter_map(number).collect()
}

fn shell(script: String) -> TriggerAction {
    TriggerAction::Run(vec!["/bin/sh".to_owned(), "-c".to_owned(), script])
}

/// A snapshot with `--before` has only the newest events, and one with `--after` also has later ones; a listener that ends does not wait.
#[test]
fn windows_cut_and_delay_snapshots() -> Outcome {
    const TEST: &str = "triggers::later::windows_cut_and_delay_snapshots";
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let (cut, later) = (flight(&place, "cut"), flight(&place, "later"));
    let child = place.start(TEST);
    let mut options = TriggerOptions::default();
    options.before = Some(Duration::from_millis(300));
    trigger_set(&cut, TriggerCondition::CoreDump, TriggerAction::Snapshot(place.out("cut")), &options)?;
    options.before = None;
    options.after = Some(Duration::from_millis(1500));
    trigger_set(&later, TriggerCondition::CoreDump, TriggerAction::Snapshot(place.out("later")), &options)?;
    place.until_recorded(&cut, 100);
    sleep(Duration::from_secs(1));
    place.until_recorded(&cut, 100);

    let listening = Listening::start(&place.run_dir());
    let began = SystemTime::now();
    assert_eq!(fire(&place, &core(7))?, FireOutcome::ByListener);
    let whole = tempfile::tempdir_in("/dev/shm")?;
    let summary = cut.snapshot(whole.path().join("whole"))?;
    let all = ticks(&summary.path);
    let snapshot = &status(&cut).state.snapshots[0].path;
    let newest = ticks(snapshot);
    assert_eq!(all[0], 0, "the ring has everything");
    // The first one is not the first of all, and in most cases not the first of a packet; none is missing from there on.
    assert!(newest.len() > 20 && newest[0] > 100, "{} of {}, from {}", newest.len(), all.len(), newest[0]);
    assert!(newest.windows(2).all(|pair| pair[1] == pair[0] + 1), "one is missing");
    let report = tracepoint_reader::verify(snapshot)?;
    assert!(report.passed(), "{:?}", report.failures().collect::<Vec<_>>());

    let before = status(&later).state;
    assert_eq!((before.fired, before.last.len()), (1, 0), "it waits: {before:?}");
    let state = until(&later, |state| !state.last.is_empty());
    assert!(began.elapsed()? >= Duration::from_millis(1500));
    assert!(ticks(&state.snapshots[0].path).last() > all.last(), "it has the time after");
    fire(&place, &core(8))?;
    drop(listening);
    assert_eq!(status(&later).state.snapshots.len(), 2, "the listener has ended");

    // Without a listener the snapshot is taken immediately, and its result contains a note.
    let FireOutcome::Here(fired) = fire(&place, &core(9))? else { panic!("there is no listener") };
    let note = fired.iter().find(|fired| fired.session == "later").and_then(|fired| fired.actions[0].note.clone());
    assert!(note.as_ref().is_some_and(|note| note.contains("tracectl listen")), "{note:?}");
    assert!(child.end());
    Ok(())
}

#[test]
fn programs_are_told_what_occurred() -> Outcome {
    const TEST: &str = "triggers::later::programs_are_told_what_occurred";
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let session = flight(&place, "flight");
    let child = place.start(TEST);
    place.until_recorded(&session, 5);
    let told = place.temp.path().join("told");
    let mut options = TriggerOptions::default();
    options.then = vec![
        shell(format!("env > {0}.new; pwd >> {0}.new; mv {0}.new {0}; exit 3", told.display())),
        TriggerAction::Run(vec!["/no/such/program".to_owned()]),
        TriggerAction::Stop,
    ];
    trigger_set(&session, TriggerCondition::CoreDump, TriggerAction::Snapshot(place.out("flight")), &options)?;
    let listening = Listening::start(&place.run_dir());
    let mut core = core(4242);
    core.executable = "$(touch /tmp/never); x".into();
    let error = fire(&place, &core).expect_err("one program is missing");
    assert!(matches!(&error, TriggerError::ListenerAction { source } if source.raw_os_error() == Some(2)), "{error:?}");
    let state = until(&session, |state| state.last.get(1).is_some_and(|result| result.ended.is_some()));
    let errors: Vec<_> = state.last.iter().map(|result| result.error.as_deref().unwrap_or_default()).collect();
    assert_eq!((errors[0], errors[1], errors[3]), ("", "its program ended with exit status 3", ""), "{state:?}");
    assert!(errors[2].contains("/no/such/program"), "{state:?}");
    assert_eq!((state.failed, session.spec()?.state), (2, State::Stopped));
    let text = fs::read_to_string(&told)?;
    let snapshot = &state.snapshots[0].path;
    for line in [
        "TRACEPOINT_TRIGGER_SESSION=flight".to_owned(),
        "TRACEPOINT_TRIGGER_ID=t1".to_owned(),
        "TRACEPOINT_TRIGGER_CONDITION=OnAnyCoreDump".to_owned(),
        "TRACEPOINT_TRIGGER_PID=4242".to_owned(),
        "TRACEPOINT_TRIGGER_CORE_EXE=$(touch /tmp/never); x".to_owned(),
        format!("TRACEPOINT_TRIGGER_SNAPSHOT={}", snapshot.display()),
        format!("TRACEPOINT_RUN_DIR={}", place.run_dir().display()),
        "/".to_owned(),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
    }
    drop(listening);
    // No child is left: the traced process is the only child of this process.
    let pid = std::process::id();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    assert!(!children.split_whitespace().any(is_zombie), "{children}");
    assert!(child.end());
    Ok(())
}

fn is_zombie(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')))
}

/// A trigger of a stopped session acts if it starts that session.
#[test]
fn a_trigger_starts_its_session() -> Outcome {
    let place = Place::new();
    let session = flight(&place, "flight");
    session.change("stop", |spec| {
        spec.state = State::Stopped;
        Ok(())
    })?;
    trigger_set(&session, TriggerCondition::CoreDump, TriggerAction::Start, &TriggerOptions::default())?;
    fire(&place, &core(1))?;
    assert_eq!((session.spec()?.state, status(&session).state.fired), (State::Active, 1));
    Ok(())
}

/// A client written only from the table of the format.
struct Subscriber(Client);

impl Subscriber {
    fn new(path: &Path, session: &[u8]) -> std::io::Result<Self> {
        let mut client = Client::connect(path)?;
        client.send(&message(SUBSCRIBE, session))?;
        assert_eq!(client.answer()?, Some(0));
        Ok(Self(client))
    }

    fn next(&mut self) -> Result<serde_json::Value, Box<dyn std::error::Error>> {
        let header = self.0.bytes(8)?;
        let number = |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().expect("4 bytes"));
        assert_eq!(number(0), NOTIFICATION);
        Ok(serde_json::from_slice(&self.0.bytes(number(4) as usize)?)?)
    }
}

#[test]
fn subscribers_are_notified() -> Outcome {
    let place = Place::new();
    let sessions = ["one", "two"].map(|name| flight(&place, name));
    for session in &sessions {
        trigger_set(session, TriggerCondition::CoreDump, TriggerAction::Notify, &TriggerOptions::default())?;
    }
    // Without a listener there are no subscribers.
    assert!(matches!(Subscription::new(Some(&socket(&place)), None), Err(TriggerError::NoListener { .. })));
    let error = fire(&place, &core(1)).expect_err("nobody passes it on").to_string();
    assert!(error.contains("tracectl listen"), "{error}");

    let listening = Listening::start(&place.run_dir());
    let mut all = Subscriber::new(&socket(&place), b"")?;
    let mut of_two = Subscriber::new(&socket(&place), b"two")?;
    let mut in_code = Subscription::new(Some(&socket(&place)), Some("one"))?;
    // These never read; the last one sends something.
    let mut deaf: Vec<_> = (0..20).map(|_| Subscriber::new(&socket(&place), b"")).collect::<Result<_, _>>()?;
    deaf[0].0.send(b"x")?;
    assert_eq!(deaf[0].0.answer()?, None, "a subscriber says nothing more");
    fire(&place, &core(42))?;
    let [first, second] = [all.next()?, all.next()?];
    assert_eq!((&first["session"], &second["session"]), (&"one".into(), &"two".into()));
    assert_eq!(of_two.next()?, second);
    let occurrence = &second["occurrence"];
    assert_eq!((&occurrence["condition"], &occurrence["pid"]), (&"OnAnyCoreDump".into(), &42.into()));
    assert_eq!(occurrence["entries"]["core_exe"], "apache2");
    assert_eq!(in_code.next()?.ok_or("the listener goes on")?.session, "one");

    // More than fits: clients that read get all notifications, the others miss some and get their number.
    let mut hundred = Client::connect(&socket(&place))?;
    for pid in 0..1500 {
        hundred.send(&message(1, &core_dump(pid, 0, 0, &[b'x'; 254], b"box")))?;
        assert_eq!(hundred.answer()?, Some(0));
        assert_eq!(of_two.next()?["occurrence"]["pid"], pid);
    }
    let mut seen = 0;
    let missed = loop {
        match deaf[1].next()?["missed"].as_u64() {
            Some(0) => seen += 1,
            missed => break missed,
        }
        if seen == 600 {
            // There is space again.
            fire(&place, &core(43))?;
        }
    };
    assert!(missed.is_some_and(|missed| missed > 0), "{seen} were read, then {missed:?}");
    drop(listening);
    while in_code.next()?.is_some() {}
    Ok(())
}

/// A report of a traced process: the listener acts; without a listener, the process itself performs the actions that it can.
#[test]
fn a_report_of_a_process_is_acted_on() -> Outcome {
    let place = Place::new();
    let session = flight(&place, "flight");
    let mark = place.temp.path().join("mark");
    let mut options = TriggerOptions::default();
    options.then = vec![TriggerAction::Stop];
    let id = trigger_set(&session, TriggerCondition::Panic, shell(format!("touch {}", mark.display())), &options)?;
    let occurrence = Occurrence::new(&TriggerCondition::Panic, 77, SystemTime::now());
    let request = FireRequest::new("flight", &id, occurrence.clone());
    let error = trigger_report(&place.run_dir(), &request).expect_err("a traced process starts no program");
    assert!(matches!(error, TriggerError::Action { .. }) && error.to_string().contains("tracectl listen"), "{error}");
    assert_eq!(session.spec()?.state, State::Stopped, "the next action was done");
    session.change("start", |spec| {
        spec.state = State::Active;
        Ok(())
    })?;
    let _listening = Listening::start(&place.run_dir());
    assert_eq!(trigger_report(&place.run_dir(), &request)?, FireOutcome::ByListener);
    until(&session, |state| state.last[0].ended.is_some());
    assert!(mark.exists());
    // A missing trigger is not an error: it was removed meanwhile.
    assert_eq!(
        trigger_report(&place.run_dir(), &FireRequest::new("flight", "t9", occurrence))?,
        FireOutcome::ByListener
    );
    let mut client = Client::connect(&socket(&place))?;
    for (payload, answer) in [(&b"{}"[..], -22), (b"\xFF", -22), (b"", -22)] {
        client.send(&message(0x7470_0003, payload))?;
        assert_eq!(client.answer()?, Some(answer));
    }
    let _: PathBuf = mark;
    Ok(())
}
