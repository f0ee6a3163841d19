//! `tracectl list`, `record` and the verbs of sessions. The traced processes are further instances of this test program.
#![deny(unsafe_code)]

#[path = "../../../tracepoint/tests/common/fixture.rs"]
mod fixture;
#[path = "../prometheus/mod.rs"]
mod prometheus;
#[path = "../../../tests/support/seed.rs"]
mod seed;
#[path = "../../../tests/support/skip.rs"]
mod skip;
#[path = "../tmux/mod.rs"]
mod tmux;

mod bandwidth;
mod channels;
mod crashed;
mod exit_codes;
mod hostile_names;
mod identity;
mod in_code;
mod kernel;
mod leftover;
mod lossless;
mod many_processes;
mod many_sessions;
mod memcheck;
mod memory;
mod namespaces;
mod other_users;
mod outputs;
mod recorder_load;
mod remote_recording;
mod statistics;
mod top;
mod triggers;

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;
use tracepoint_session::Agent;

tracepoint::define_trace! {
    provider = "shop";

    /// Somebody paid.
    #[level(Info)]
    pub paid(cents: u64) { cents: u64 = cents }

    /// Somebody looked.
    #[level(Debug)]
    pub looked(n: u64) { n: u64 = n }
}

/// Set in a process that a test starts in order to trace it: the number of events it fires; 0: until its input ends.
const TRACED: &str = "TEST_TRACED";

/// Number of threads of that process that fire without a pause.
const BUSY: &str = "TEST_BUSY";

/// Memory that process allocates before it is traced, in MiB.
const BALLAST: &str = "TEST_BALLAST";

/// Pause of that process between two events, in milliseconds.
const PAUSE: &str = "TEST_PAUSE";

/// Set if that process aborts after its events.
const DIES: &str = "TEST_DIES";

/// Set to the status with which that process calls `exit` after its events, while its agent and a firing thread are still running.
const EXITS: &str = "TEST_EXITS";

/// Set if that process executes another program after its events.
const BECOMES: &str = "TEST_BECOMES";

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// In a traced process, fires the events and returns `true`; in the test itself, returns `false`.
fn is_traced() -> bool {
    let Ok(times) = env::var(TRACED) else { return false };
    let times: u64 = times.parse().expect("a number");
    let ballast: usize = env::var(BALLAST).map_or(0, |mib| mib.parse().expect("a number"));
    let _ballast = std::hint::black_box(vec![1_u8; ballast << 20]);
    let _agent = Agent::start().expect("an agent");
    identity::change();
    println!("ready");
    if let Some(threads) = env::var(BUSY).ok().and_then(|threads| threads.parse().ok()) {
        for _ in 0..threads {
            std::thread::spawn(|| {
                for n in 0.. {
                    tracepoint::trace!(paid(n));
                }
            });
        }
        let _ = std::io::stdin().lines().count();
    } else if times == 0 {
        let pause = env::var(PAUSE).map_or(0, |pause| pause.parse().expect("a number"));
        std::thread::spawn(move || {
            for n in 0.. {
                fire(n);
                std::thread::sleep(Duration::from_millis(pause));
            }
        });
        let _ = std::io::stdin().lines().count();
    } else {
        (0..times).for_each(fire);
        if env::var_os(BECOMES).is_some() {
            let error = program(&path_of_test(), 0).env_remove(BECOMES).stdout(Stdio::null()).exec();
            panic!("{error}");
        }
        if let Ok(status) = env::var(EXITS) {
            std::thread::spawn(|| {
                for n in 0.. {
                    fire(n);
                }
            });
            std::process::exit(status.parse().expect("a number"));
        }
        if env::var_os(DIES).is_some() {
            std::process::abort();
        }
    }
    true
}

/// The full name of this test.
fn path_of_test() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

fn fire(n: u64) {
    tracepoint::trace!(paid(n));
    tracepoint::trace!(looked(n));
    std::thread::sleep(Duration::from_micros(100));
}

/// This program as a traced process of a test.
fn program(test: &str, times: u64) -> Command {
    let mut command = Command::new(env::current_exe().expect("a path"));
    command.args(["--exact", test, "--quiet", "--nocapture"]).env(TRACED, times.to_string());
    command
}

/// A traced process, killed on drop.
struct Traced(Child);

impl Drop for Traced {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a traced process, and waits until it has its agent.
fn ready(mut command: Command) -> Traced {
    let mut traced = Traced(command.spawn().expect("the test's own program"));
    let output = BufReader::new(traced.0.stdout.take().expect("a pipe"));
    assert!(output.lines().any(|line| line.is_ok_and(|line| line.ends_with("ready"))), "it ended too soon");
    traced
}

/// A temporary directory with a run directory for one test.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir_in("/dev/shm").expect("a directory in memory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn start(&self, test: &str) -> Traced {
        self.start_as(program(test, 0))
    }

    fn start_as(&self, mut command: Command) -> Traced {
        command.env("TRACEPOINT_RUN_DIR", self.path("run")).stdin(Stdio::piped()).stdout(Stdio::piped());
        ready(command)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tracectl"));
        command.args(arguments).env("TRACEPOINT_RUN_DIR", self.path("run")).current_dir(self.0.path());
        command
    }

    fn tracectl(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = self.command(arguments).output().expect("tracectl");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    /// Runs `tracectl`, requires success without messages, and returns the output.
    fn well(&self, arguments: &[&str]) -> String {
        let (code, out, err) = self.tracectl(arguments);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{arguments:?} says {out}");
        out
    }

    /// Requires that the account of a trace balances, and that each packet has its checksum.
    fn verifies(&self, trace: &str) {
        let (code, _, err) = self.tracectl(&["verify", trace]);
        assert!(code == Some(0) && !err.contains("no checksum"), "{trace}: {err}");
    }

    /// Runs `tracectl`, requires exit code 3 without output, and returns the message.
    fn refused(&self, arguments: &[&str]) -> String {
        let (code, out, err) = self.tracectl(arguments);
        assert_eq!((code, out.as_str()), (Some(3), ""), "{arguments:?} says {err}");
        err
    }

    /// The tracepoints that are on in any process.
    fn on(&self) -> Vec<String> {
        let listed: serde_json::Value = serde_json::from_str(&self.well(&["list", "--json"])).expect("JSON");
        let processes = listed["processes"].as_array().expect("a list");
        let tracepoints = processes.iter().flat_map(|process| process["tracepoints"].as_array().expect("a list"));
        let on = tracepoints.filter(|tracepoint| tracepoint["on"] == true);
        on.map(|tracepoint| tracepoint["name"].as_str().expect("a name").to_owned()).collect()
    }
}

/// The state and the counters of the only process in the output of `status`.
fn counters(status: &str) -> Vec<String> {
    let mut lines = status.lines().skip_while(|line| !line.starts_with("  PROCESS "));
    let heading: Vec<_> = lines.next().expect("a table").split_whitespace().collect();
    let expected = "PROCESS STATE EVENTS ON RECORDED FILTERED SUPPRESSED LOST SIZE";
    assert_eq!(heading.join(" "), expected, "{status}");
    lines.next().expect("a process").split_whitespace().skip(2).map(str::to_owned).collect()
}

/// The number of lines that contain `text` in the output of babeltrace2.
fn viewed(dir: &Path, text: &str) -> usize {
    let output =
        Command::new("babeltrace2").arg(dir).output().expect("babeltrace2 is installed (see scripts/setup.sh)");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && err.is_empty(), "{err}");
    String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.contains(text)).count()
}

/// The time of the first event of a trace.
fn first(dir: &Path) -> Result<SystemTime, Box<dyn std::error::Error>> {
    let output = Command::new("babeltrace2").arg("--clock-seconds").arg(dir).output()?;
    let text = String::from_utf8(output.stdout)?;
    let seconds = text.strip_prefix('[').and_then(|text| text.split(']').next()).ok_or("no time")?;
    Ok(UNIX_EPOCH + Duration::from_secs_f64(seconds.parse()?))
}

/// The time until a process records is printed but not checked.
#[test]
fn a_process_is_listed_recorded_and_switched_off_again() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let traced = place.start("a_process_is_listed_recorded_and_switched_off_again");
    let pid = traced.0.id().to_string();
    let listed = place.well(&["list"]);
    assert!(listed.contains(&pid) && !listed.contains("sites: "), "{listed}");
    let details = place.well(&["list", "-v"]);
    for part in ["sites: ", "boot ", "clock", file!(), "Somebody paid."] {
        assert!(details.contains(part), "{part}: {details}");
    }
    let offered = place
        .command(&["--", "tracectl", "record", "--pid", ""])
        .envs([("TRACECTL_COMPLETE", "bash"), ("_CLAP_COMPLETE_INDEX", "3")])
        .output()?;
    assert!(String::from_utf8_lossy(&offered.stdout).lines().any(|line| line.trim() == pid), "{offered:?}");
    let line = listed.lines().find(|line| line.contains("shop:paid")).ok_or("it is not listed")?;
    assert_eq!(
        line.split_whitespace().collect::<Vec<_>>(),
        ["off", "shop:paid", "Info", "cents:", "u64", "Somebody", "paid."]
    );
    assert!(!listed.contains('\u{1b}'), "no colours in a pipe");

    let began = SystemTime::now();
    let report =
        place.well(&["record", "-e", "shop:*", "-e", "!*:looked", "-p", &pid, "--duration", "300ms", "-o", "out"]);
    assert!(report.contains(" events of 1 process, ") && report.contains("babeltrace2 "), "{report}");
    let recorded: usize = report.split_whitespace().next().ok_or("nothing")?.parse()?;
    assert!(recorded > 100, "{report}");
    assert_eq!(viewed(&place.path("out"), " shop:paid: "), recorded);
    println!(
        "{:?} from the start of the command to the first event",
        first(&place.path("out"))?.duration_since(began)?
    );
    place.verifies("out");
    assert_eq!(place.on(), [""; 0]);
    assert_eq!(fs::read_dir(place.path("run/sessions"))?.count(), 0);
    Ok(())
}

#[test]
fn a_command_is_recorded_from_its_first_event() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let other = place.start("a_command_is_recorded_from_its_first_event");
    let me = env::current_exe()?;
    let arguments = ["record", "-e", "shop:paid", "-o", "out", "--json", "--", "env", "TEST_TRACED=100"];
    let output = place
        .command(&arguments)
        .arg(&me)
        .args(["--exact", "a_command_is_recorded_from_its_first_event", "--quiet"])
        .output()?;
    assert!(output.status.success(), "{output:?}");
    // The report comes after the output of the command.
    let text = String::from_utf8(output.stdout)?;
    let report: serde_json::Value = serde_json::from_str(text.lines().last().ok_or("no report")?)?;
    assert_eq!(report["counters"]["recorded"], 100);
    assert_eq!(report["processes"].as_array().map(Vec::len), Some(1), "process {} has no part in it", other.0.id());
    assert_eq!(viewed(&place.path("out"), " shop:paid: "), 100);

    let mut record = place.command(&["record", "-e", "shop:paid", "--duration", "10s", "-o", "soon"]).spawn()?;
    until(|| {
        assert!(record.try_wait().is_ok_and(|status| status.is_none()), "it ended");
        place.on().contains(&"shop:paid".to_owned())
    });
    kill(&record, "INT")?;
    assert!(record.wait()?.success());
    assert_eq!(place.on(), [""; 0]);
    assert!(viewed(&place.path("soon"), " shop:paid: ") > 0);
    Ok(())
}

/// Waits until a condition holds, as long as a busy machine may need.
#[track_caller]
fn until(mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(300), "it did not happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn kill(process: &Child, signal: &str) -> Outcome {
    let sent = Command::new("kill").arg(format!("-{signal}")).arg(process.id().to_string()).status()?;
    assert!(sent.success());
    Ok(())
}

/// No event stays on after the controller is killed, and the events of a process that dies are in the trace.
#[test]
fn a_killed_controller_or_process_loses_no_event() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let test = "a_killed_controller_or_process_loses_no_event";
    let stays = place.start(test);
    let mut record = place.command(&["record", "-e", "shop:paid", "-o", "killed"]).spawn()?;
    until(|| {
        assert!(record.try_wait().is_ok_and(|status| status.is_none()), "it ended");
        !place.on().is_empty()
    });
    record.kill()?;
    record.wait()?;
    // The kernel notifies the agent that the controller has died.
    until(|| place.on().is_empty());
    assert!(place.well(&["status"]).contains(&format!("\n  record-{} ", record.id())));
    // The recorded events are still in the rings of the running process.
    let left = place.path("run/sessions");
    place.well(&["recover", left.to_str().ok_or("no text")?, "-o", "recovered"]);
    assert!(viewed(&place.path("recovered"), " shop:paid: ") > 0);
    place.verifies("recovered");
    fs::remove_dir_all(left.join(format!("record-{}", record.id())))?;
    drop(stays);

    let dies = place.start(test);
    let record = place
        .command(&["record", "-e", "shop:paid", "-p", &dies.0.id().to_string(), "-o", "died", "--json"])
        .stdout(Stdio::piped())
        .spawn()?;
    until(|| !place.on().is_empty());
    std::thread::sleep(Duration::from_millis(100));
    drop(dies);
    let output = record.wait_with_output()?;
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let recovered = report["recovered"][0]["records"].as_u64().ok_or("nothing was recovered")?;
    assert!(recovered > 0);
    assert_eq!(viewed(&place.path("died"), " shop:paid: ") as u64, recovered);
    place.verifies("died");
    assert_eq!(fs::read_dir(place.path("run/sessions"))?.count(), 0);
    Ok(())
}

#[test]
fn sessions_are_created_changed_saved_and_destroyed() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _traced = place.start("sessions_are_created_changed_saved_and_destroyed");
    assert_eq!(place.well(&["create", "flight", "-e", "shop:paid"]), "");
    assert_eq!(place.on(), [""; 0]);
    place.well(&["start", "flight"]);
    assert_eq!(place.on(), ["shop:paid"]);
    place.well(&["enable", "flight", "-e", "shop:looked", "--level", ">=debug"]);
    assert_eq!(place.on(), ["shop:looked", "shop:paid"]);
    let shown = place.well(&["status", "--log", "flight"]);
    let is_time = |word: &str| word.len() == 24 && word.contains('T') && word.ends_with('Z');
    assert_eq!(shown.lines().filter(|line| is_time(line.split(' ').next().unwrap_or(""))).count(), 3, "{shown}");
    for part in ["flight: active, generation 3", "`shop:looked` --level '>=debug'", ": enable shop:looked"] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    assert_eq!(counters(&shown)[..2], ["recording", "2"], "{shown}");
    let (code, _, err) = place.tracectl(&["snapshot", "flight", "-o", "snapshot", "--json"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(viewed(&place.path("snapshot"), " shop:paid: ") > 0);

    place.well(&["save", "flight", "saved.toml"]);
    place.well(&["destroy", "flight"]);
    assert_eq!(place.on(), [""; 0]);
    place.well(&["load", "again", "saved.toml"]);
    assert_eq!(place.on(), ["shop:looked", "shop:paid"]);
    place.well(&["disable", "again", "-e", "shop:paid"]);
    place.well(&["disable", "again", "-e", "shop:looked", "--level", ">=debug"]);
    assert_eq!(place.on(), [""; 0]);
    let status: serde_json::Value = serde_json::from_str(&place.well(&["status", "--json"]))?;
    let session = &status["sessions"][0];
    assert_eq!((&session["name"], &session["state"]), (&"again".into(), &"active".into()));
    assert!(session["processes"][0]["counters"]["recorded"].as_u64().is_some_and(|recorded| recorded > 0));
    place.well(&["stop", "again"]);
    place.well(&["destroy", "again"]);
    assert_eq!(place.well(&["status"]), "");
    Ok(())
}

#[test]
fn filters_and_limits_of_a_command_are_applied() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _traced = place.start("filters_and_limits_of_a_command_are_applied");
    let record = ["record", "-e", "shop:*", "-e", "!*:looked", "--duration", "200ms", "--json"];
    let report = place.well(&[&record[..], &["-o", "odd", "--filter", "cents & 1"]].concat());
    let report: serde_json::Value = serde_json::from_str(&report)?;
    let count = |name: &str| report["counters"][name].as_u64().unwrap_or_default();
    assert!(count("recorded") > 0 && count("filtered") > 0, "{report}");
    assert!(count("recorded").abs_diff(count("filtered")) <= 1, "{report}");
    assert_eq!(viewed(&place.path("odd"), " shop:paid: ") as u64, count("recorded"));
    let report = place.well(&[&record[..], &["-o", "few", "--limit", "3/min burst 2"]].concat());
    let report: serde_json::Value = serde_json::from_str(&report)?;
    assert_eq!(report["counters"]["recorded"], 2, "{report}");
    for out in ["odd", "few"] {
        place.verifies(out);
    }

    place.well(&["create", "s", "-e", "shop:paid", "--filter", "cents & 1", "--start"]);
    place.well(&["enable", "s", "-e", "shop:looked", "--limit", "5/s burst 5"]);
    let shown = place.well(&["status", "s"]);
    for part in ["`shop:paid` --filter 'cents & 1'", "`shop:looked` --limit '5/s'"] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    let [_, events, recorded, filtered, _, lost, ..] = &counters(&shown)[..] else { return Err(shown.into()) };
    assert_eq!((events.as_str(), lost.as_str()), ("2", "0"), "{shown}");
    assert!(recorded.parse::<u64>().is_ok() && filtered.parse::<u64>().is_ok(), "{shown}");
    let (code, _, err) = place.tracectl(&["enable", "s", "-e", "shop:*", "--filter", "n > 1"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let (code, _, err) = place.tracectl(&["disable", "s", "-e", "shop:paid", "--filter", "cents & 1"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("shop:paid is left out"), "no rule takes it in: {err}");
    let (code, _, err) = place.tracectl(&["enable", "s", "-e", "shop:paid", "--filter", "cents > \"much\""]);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("does not support rule 3") && err.contains("\n  cents > \"much\"\n        ^\n"), "{err}");
    Ok(())
}

#[test]
fn failures_are_reported_with_a_hint() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let (_, _, err) = place.tracectl(&["list"]);
    assert!(err.contains("no process can be traced in ") && err.contains("Agent::start"), "{err}");
    assert!(
        place.refused(&["create", "a/b", "-e", "x:*"]).contains("contains a `/`"),
        "before the processes are looked at"
    );
    assert!(place.refused(&["stop", "s"]).contains("no session exists; create it with `tracectl create s -e RULE"));
    let _traced = place.start("failures_are_reported_with_a_hint");
    let (code, _, err) = place.tracectl(&["create", "idle"]);
    assert!(code == Some(0) && err.contains("`tracectl enable idle -e RULE`"), "{err}");
    place.well(&["destroy", "idle"]);
    let me = std::process::id().to_string();
    place.well(&["create", "s", "-e", "shop:paid"]);
    for (arguments, parts) in [
        (
            &["record", "-e", "shop:pad", "-o", "o"][..],
            &["no event of the process matches `shop:pad`", "did you mean shop:paid", "--wait"][..],
        ),
        (&["record", "-e", "shopp:*", "-o", "o"], &["did you mean shop:*"]),
        (&["record", "-e", "shop", "-o", "o"], &["`shop:*` for a provider"]),
        (&["record", "-e", "shop:*", "--level", "<=loud", "-o", "o"], &["not a level"]),
        (
            &["record", "-e", "shop:paid", "--filter", "cent > 3", "-o", "o"],
            &["no field is called `cent`; did you mean cents?", "\n  cent > 3\n  ^^^^"],
        ),
        (&["record", "-p", "4194303", "-o", "o"], &["there is no process 4194303", "tracectl list"]),
        (&["record", "-p", &me, "-o", "o"], &["is not traced", "Agent::start"]),
        (&["record", "-e", "shop:*", "-o", "run"], &["is not empty", "`-o`"]),
        (&["record", "-o", "o", "--", "/no/such/program"], &["cannot start /no/such/program"]),
        (&["create", "a/b", "-e", "*"], &["contains a `/`"]),
        (&["create", "s", "-e", "*"], &["there is a session s already", "tracectl destroy s"]),
        (&["create", "t", "-e", "*", "--policy", "discard"], &["without a sink"]),
        (&["enable", "s", "-e", "shop:paidd"], &["did you mean shop:paid"]),
        (&["disable", "s", "-e", "shop:looked"], &["it has `shop:paid`"]),
        (&["start", "nobody"], &["no session nobody", "there are: s"]),
        (&["load", "x", "run/sessions/s/log"], &["is not a session"]),
        (&["save", "s", "/no/such/file"], &["cannot write /no/such/file"]),
    ] {
        let err = place.refused(arguments);
        for part in parts {
            assert!(err.contains(part), "{arguments:?}: {part} is not in {err}");
        }
    }
    // Messages list only a few of thousands of rules, and no step is quadratic in their number.
    let many: Vec<_> = (0..3000).flat_map(|n| ["-e".to_owned(), format!("none{n}:*")]).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    let err = place.refused(&[&["create", "t"], &many[..]].concat());
    assert!(err.contains("`none7:*`; and 2992 others") && err.len() < 2000, "{err}");
    place.well(&[&["create", "t", "--wait"], &many[..]].concat());
    assert!(place.refused(&["disable", "t", "-e", "x:*"]).contains("`none7:*`, and 2992 others"));
    place.well(&[&["disable", "t"], &many[..]].concat());
    place.well(&["destroy", "t"]);
    assert_eq!(place.tracectl(&["record", "--duration", "soon"]).0, Some(2));
    for verb in [&["record", "-o", "o"][..], &["create", "t"], &["enable", "s"]] {
        let (code, _, err) = place.tracectl(&[verb, &["-e", "shop:paid", "--filter", "cents >"]].concat());
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains("\n  cents >\n         ^"), "{err}");
        let (code, _, err) = place.tracectl(&[verb, &["-e", "shop:paid", "--limit", "many"]].concat());
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains("the limit `many` cannot be used"), "{err}");
    }
    // Half of the file, and an unknown key.
    let file = place.path("run/sessions/s/session.toml");
    let text = fs::read_to_string(&file)?;
    fs::write(&file, &text[..text.len() / 2])?;
    assert!(place.refused(&["start", "s"]).contains("repair the file, or destroy the session"));
    fs::write(&file, format!("mood = 1\n{text}"))?;
    assert!(place.refused(&["start", "s"]).contains("unknown field `mood`"));
    let (code, _, err) = place.tracectl(&["status"]);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("unknown field `mood`"), "{err}");
    place.well(&["destroy", "s"]);
    assert_eq!(place.well(&["status"]), "");
    assert!(!place.path("o").exists(), "no recording has begun");
    Ok(())
}

#[test]
fn a_stopped_process_is_named_and_does_not_hang_the_command() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let traced = place.start("a_stopped_process_is_named_and_does_not_hang_the_command");
    let alive = place.start("a_stopped_process_is_named_and_does_not_hang_the_command");
    let [stopped, other] = [&traced, &alive].map(|process| process.0.id().to_string());
    // A session that no process can compute, or that is not started, has no results.
    let sizes = ["-e", "shop:paid", "--statistic", "hist(sizze)"];
    assert_eq!(place.tracectl(&[&["create", "sizes", "--start"], &sizes[..]].concat()).0, Some(1));
    let refused = place.refused(&["stat", "-s", "sizes"]);
    assert!(refused.contains("does not support rule 1") && refused.contains("sizze"), "{refused}");
    place.well(&["destroy", "sizes"]);
    place.well(&["create", "later", "-e", "shop:paid", "--statistic", "count"]);
    let (code, out, err) = place.tracectl(&["stat", "-s", "later"]);
    assert!(code == Some(1) && out.is_empty() && err.contains("`tracectl start`"), "{out}{err}");
    let twice = ["create", "none", "-e", "nix:*", "--statistic", "count", "--statistic", "rate", "--start"];
    assert_eq!(place.refused(&twice).matches("nix:*").count(), 1);
    kill(&traced.0, "STOP")?;
    let (code, _, err) = place.tracectl(&["create", "s", "-e", "shop:paid", "--start", "--timeout", "100ms"]);
    assert_eq!(code, Some(1));
    let expected = format!("process {} ", traced.0.id());
    assert!(err.contains(&expected) && err.contains("has not acknowledged"), "{err}");
    // The verbs that show numbers report the same: none are computed, or only those of the other process.
    place.well(&["create", "numbers", "-e", "shop:paid", "--statistic", "hist(cents)", "--start", "--pid", &other]);
    place.well(&["destroy", "numbers"]);
    let create = ["create", "numbers", "-e", "shop:paid", "--statistic", "hist(cents)", "--start"];
    assert_eq!(place.tracectl(&[&create[..], &["--timeout", "10ms", "--pid", &stopped]].concat()).0, Some(1));
    let once = ["--once", "--interval", "10ms", "--timeout", "10ms"];
    for (arguments, is_shown) in [
        (&["stat", "-p", &stopped, "shop:*"][..], false),
        (&["stat", "-p", &stopped, "--csv"], true),
        (&["stat", "-p", &stopped, "--json"], true),
        (&["stat", "-p", &stopped, "--prometheus"], false),
        (&["hist", "cents", "shop:paid", "-p", &stopped], false),
        (&["hist", "cents", "shop:paid", "-p", &stopped, "--json"], false),
        (&["stat", "-s", "numbers"], false),
        (&["stat", "-s", "numbers", "--prometheus"], false),
        (&["hist", "-s", "numbers"], false),
        (&["stat", "shop:*"], true),
        (&["hist", "cents", "shop:paid"], true),
    ] {
        let (code, out, err) = place.tracectl(&[arguments, &once].concat());
        assert_eq!((code, !out.is_empty()), (Some(1), is_shown), "{arguments:?}: {out}{err}");
        assert!(err.contains(&expected) && err.contains("has not acknowledged: it is stopped"), "{arguments:?}: {err}");
        let is_computed = !arguments.contains(&stopped.as_str()) && !arguments.contains(&"numbers");
        assert_eq!(err.contains("no process computes anything"), !is_computed, "{arguments:?}: {err}");
    }
    kill(&traced.0, "CONT")?;
    until(|| place.on() == ["shop:paid", "shop:paid"]);
    Ok(())
}

/// Events over the budget are switched off, and `record` and `status` report it.
#[test]
fn a_budget_switches_events_off() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _traced = place.start("a_budget_switches_events_off");
    let out = place.path("out");
    let out = out.to_str().ok_or("no text")?;
    let record = ["record", "-e", "shop:*", "--budget-bytes", "1K/s", "--duration", "2s", "-o", out];
    let report = place.well(&record);
    assert!(report.contains(" is off: ") && report.contains("the budget allows 1024"), "{report}");
    assert_eq!(place.on(), [""; 0]);

    place.well(&["create", "kept", "-e", "shop:*", "--budget-cpu", "0.5%", "--budget-bytes", "1K/s", "--start"]);
    let over = loop {
        let report = place.well(&["status", "kept"]);
        if report.contains(" is off: ") {
            break report;
        }
    };
    assert!(over.contains("budget of each process: 0.5 % of a core, 1.00 KiB a second"), "{over}");
    assert!(place.well(&["status", "kept", "--log"]).contains(": budget: shop:"));
    let (code, _, err) = place.tracectl(&["enable", "kept", "-e", "shop:*"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(place.well(&["status", "kept"]).contains("generation 2"));
    place.well(&["destroy", "kept"]);
    assert!(place.tracectl(&["create", "none", "-e", "*", "--budget-cpu", "0"]).2.contains("no valid budget"));
    Ok(())
}

/// More processes die than are kept at a time: each is recovered soon after its death.
#[test]
fn more_killed_processes_than_are_kept_are_recovered() -> Outcome {
    const PROCESSES: usize = 80;
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let script = format!("for n in $(seq {PROCESSES}); do \"$@\"; done 2>/dev/null >/dev/null; true");
    let arguments =
        ["record", "-e", "shop:paid", "--ring-size", "64K", "-o", "out", "--json", "--", "sh", "-c", &script, "sh"];
    let output = place
        .command(&arguments)
        .arg(env::current_exe()?)
        .args(["--exact", "more_killed_processes_than_are_kept_are_recovered", "--quiet", "--nocapture"])
        .env(TRACED, "10")
        .env(DIES, "1")
        .output()?;
    assert!(output.status.success(), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(report["failures"], serde_json::json!([]));
    assert_eq!(report["recovered"].as_array().map(Vec::len), Some(PROCESSES));
    assert_eq!(report["counters"]["recorded"], 10 * PROCESSES, "{}", report["counters"]);
    assert_eq!(viewed(&place.path("out"), " shop:paid: "), 10 * PROCESSES);
    assert_eq!(fs::read_dir(place.path("run/sessions"))?.count(), 0);
    Ok(())
}
