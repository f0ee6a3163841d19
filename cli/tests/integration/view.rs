//! `tracectl view`: parts of a trace by time and number, and traces that are still being written.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};
use tempfile::NamedTempFile;
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Channel, Session};

tracepoint::define_trace! {
    provider = "viewed";
    step(thread: u32, n: u64) { thread: u32 = thread, n: u64 = n }
    #[level(Warning)]
    said(to_all: bool, text: &str) { to_all: bool = to_all, text: str = text }
}

/// Serialises the tests: a session records the events of all of them.
static RECORDING: Mutex<()> = Mutex::new(());

/// A session that writes into `directory`.
fn session(name: &str, sink: CtfSink) -> Session {
    // Small packets: each thread has many.
    let channel = Channel::discard(64 << 10).packets(16);
    Session::builder(name).events("viewed:*").channel(channel).sink(sink).start().unwrap()
}

fn view(arguments: &[&str], directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracectl"));
    command.arg("view").args(arguments).arg(directory);
    command
}

/// The output lines of `view`.
fn lines(arguments: &[&str], directory: &Path) -> Vec<String> {
    let output = view(arguments, directory).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{arguments:?}: {errors}");
    all_lines(&output.stdout)
}

fn all_lines(output: &[u8]) -> Vec<String> {
    std::str::from_utf8(output).unwrap().lines().map(str::to_owned).collect()
}

/// Fires from several threads with pauses, for about a second and a half.
fn fire_from_threads() {
    thread::scope(|scope| {
        for thread in 0..3_u32 {
            scope.spawn(move || {
                for n in 0..500_u64 {
                    tracepoint::trace!(step(thread, n));
                    if n % 100 == 0 {
                        sleep(Duration::from_millis(200 + 100 * u64::from(thread)));
                    }
                }
            });
        }
    });
}

/// A following `view`, and its output.
struct Following(Child, NamedTempFile, NamedTempFile);

impl Following {
    fn start(arguments: &[&str], directory: &Path) -> Self {
        let [out, errors] = [(); 2].map(|()| NamedTempFile::new().unwrap());
        let mut command = view(arguments, directory);
        command.stdout(out.reopen().unwrap()).stderr(errors.reopen().unwrap());
        Self(command.spawn().unwrap(), out, errors)
    }

    /// Its lines, after it has ended by itself.
    fn finish(mut self) -> Vec<String> {
        let deadline = Instant::now() + Duration::from_secs(60);
        let status = loop {
            match self.0.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() > deadline => self.0.kill().unwrap(),
                None => sleep(Duration::from_millis(20)),
            }
        };
        let errors = fs::read_to_string(self.2.path()).unwrap();
        assert!(status.success() && errors.is_empty(), "{status}: {errors}");
        all_lines(&fs::read(self.1.path()).unwrap())
    }
}

#[test]
fn a_trace_that_is_written_is_followed_in_order_to_its_end() {
    let _alone = RECORDING.lock().unwrap_or_else(PoisonError::into_inner);
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("trace");
    let session = session("followed", CtfSink::create(&directory).unwrap());
    let child = Following::start(&["--follow"], &directory);
    fire_from_threads();
    let tail = Following::start(&["--follow", "--tail", "3"], &directory);
    fire_from_threads();
    session.stop().unwrap();
    let (all, followed, last) = (lines(&[], &directory), child.finish(), tail.finish());
    assert_eq!(followed.len(), 3000);
    assert!(followed == all, "the same lines in the same order");
    assert!(last.len() >= 3 && last.len() < 3000, "{}", last.len());
    assert!(last[..] == all[all.len() - last.len()..], "the last lines");
}

#[test]
fn a_trace_in_chunks_is_followed() {
    let _alone = RECORDING.lock().unwrap_or_else(PoisonError::into_inner);
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("trace");
    let session = session("rotated", CtfSink::create(&directory).unwrap());
    let child = Following::start(&["-f"], &directory);
    for _ in 0..3 {
        (0..1000).for_each(|n| tracepoint::trace!(step(7, n)));
        sleep(Duration::from_millis(300));
        session.rotate().unwrap();
    }
    session.stop().unwrap();
    let (all, followed) = (lines(&[], &directory), child.finish());
    assert_eq!(followed.len(), 3000);
    assert!(followed == all, "the same lines in the same order");
}

#[test]
fn parts_of_a_trace_are_shown_by_time_and_number() {
    let _alone = RECORDING.lock().unwrap_or_else(PoisonError::into_inner);
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("trace");
    let session = session("parts", CtfSink::create(&directory).unwrap());
    fire_from_threads();
    session.stop().unwrap();
    let all = lines(&[], &directory);
    assert_eq!(all.len(), 1500);
    for count in [0, 1, 10, 499, 1500, 9999] {
        let (text, some) = (count.to_string(), count.min(1500));
        assert!(lines(&["--head", &text], &directory)[..] == all[..some], "the first {count}");
        assert!(lines(&["--tail", &text], &directory)[..] == all[1500 - some..], "the last {count}");
    }
    // Times in the printed form, in the form of JSON, and relative to the trace.
    let time = |line: &String| line[..18].to_owned();
    let (from, to) = (time(&all[400]), time(&all[900]));
    let expected: Vec<_> = all.iter().filter(|line| (&from..=&to).contains(&&time(line))).cloned().collect();
    assert!(lines(&["--since", &from, "--until", &to], &directory) == expected, "from {from} to {to}");
    assert!(
        lines(&["--since", &from, "--until", &to, "--tail", "5"], &directory)[..] == expected[expected.len() - 5..]
    );
    assert!(lines(&["--since", &from, "--head", "5"], &directory)[..] == expected[..5]);
    let json = view(&["--json", "--head", "401"], &directory).output().unwrap().stdout;
    let last = String::from_utf8(json).unwrap().lines().last().unwrap().to_owned();
    let last: serde_json::Value = serde_json::from_str(&last).unwrap();
    let nanoseconds = last["time_ns"].to_string();
    assert!(lines(&["--since", &nanoseconds, "--head", "5"], &directory)[..] == expected[..5]);
    assert_eq!(lines(&["--since", "+0s"], &directory).len(), 1500);
    assert_eq!(lines(&["--until=-0s"], &directory).len(), 1500);
    assert_eq!(lines(&["--since", "1h ago"], &directory).len(), 1500);
    assert_eq!(lines(&["--until", "1h ago"], &directory).len(), 0);
    let middle = lines(&["--since", "+300ms", "--until=-300ms"], &directory);
    assert!(!middle.is_empty() && middle.len() < 1500, "{}", middle.len());
}

#[test]
fn parts_of_a_dt_file_are_shown() {
    let _alone = RECORDING.lock().unwrap_or_else(PoisonError::into_inner);
    let place = tempfile::tempdir().unwrap();
    let (directory, file) = (place.path().join("trace"), place.path().join("trace.dt"));
    let session = session("dt", CtfSink::create(&directory).unwrap());
    (0..1000).for_each(|n| tracepoint::trace!(step(1, n)));
    session.stop().unwrap();
    let mut convert = Command::new(env!("CARGO_BIN_EXE_tracectl"));
    assert!(convert.arg("convert").arg(&directory).arg("-o").arg(&file).output().unwrap().status.success());
    let all = lines(&[], &directory);
    let shown = |arguments: &[&str]| all_lines(&view(arguments, &file).output().unwrap().stdout);
    assert!(shown(&["--tail", "7"])[..] == all[993..]);
    assert!(shown(&["--since", "+0s", "--until=-0s"]) == all);
    assert!(shown(&["--since", &all[600][..18]])[..] == all[600..]);
    let follow = view(&["--follow"], &file).output().unwrap();
    let errors = String::from_utf8_lossy(&follow.stderr);
    assert!(follow.status.code() == Some(3) && errors.contains("a file cannot be followed"), "{errors}");
}

#[test]
fn events_are_selected_by_name_level_and_fields() {
    let _alone = RECORDING.lock().unwrap_or_else(PoisonError::into_inner);
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("trace");
    let session = session("selected", CtfSink::create(&directory).unwrap());
    for n in 0..100 {
        tracepoint::trace!(step(1, n));
        tracepoint::trace!(said(n % 2 == 0, "a\nb"));
    }
    session.stop().unwrap();
    let count = |arguments: &[&str]| lines(arguments, &directory).len();
    assert_eq!(count(&[]), 200);
    assert_eq!(count(&["-e", "viewed:step"]), 100);
    assert_eq!(count(&["-e", "viewed:*", "-e", "!*:said"]), 100);
    assert_eq!(count(&["-e", "!*:said", "--json"]), 100);
    assert_eq!(count(&["--level", "warning"]), 100);
    assert_eq!(count(&["--filter", "n >= 90"]), 10);
    assert_eq!(count(&["--filter", "-n < -89 && tid > 0"]), 10);
    assert_eq!(count(&["--filter", "to_all && text == \"a*\""]), 50);
    assert_eq!(count(&["--filter", "to_all", "--head", "3"]), 3);
    let tail = lines(&["--filter", "n < 20", "--tail", "2"], &directory);
    assert!(tail.len() == 2 && tail[0].ends_with(" thread=1 n=18") && tail[1].ends_with(" thread=1 n=19"), "{tail:?}");
    let fields = lines(&["-e", "*:said", "--fields", "text", "--time", "relative", "--head", "1"], &directory);
    let expected = format!("[{}", std::process::id());
    assert!(fields[0].starts_with("+0.") && fields[0].contains(&expected), "{fields:?}");
    assert!(fields[0].ends_with(" viewed:said text=\"a\\nb\""), "{fields:?}");
    let json = view(&["--json", "--tail", "1"], &directory).output().unwrap().stdout;
    let event: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!((&event["level"], &event["fields"]["to_all"]), (&"Warning".into(), &false.into()));
    assert_eq!(event["pid"], std::process::id());
    assert!(event["host"].is_string() && event["program"].is_string() && event["tid"].is_u64(), "{event}");
    let colored = view(&["--color", "always", "-e", "*:said", "--head", "1"], &directory).output().unwrap().stdout;
    assert!(String::from_utf8_lossy(&colored).contains("\u{1b}[33mviewed:said\u{1b}[0m"), "a warning is yellow");
    for (arguments, code, reason) in [
        (&["-e", "viewed:stepp"][..], 3, "did you mean viewed:step?"),
        (&["-e", "[", "--json"], 2, "`[` is not a pattern for events"),
        (&["--level", "loud"], 2, "the level `loud` cannot be used"),
        (&["--level", "==emerg"], 3, "no selected event of the trace has a level `==emerg`; there are: Warning"),
        (&["-e", "viewed:*", "-e", "!*:*"], 3, "exclude every event"),
        (&["--filter", "nn > 5"], 3, "no field is called `nn`; did you mean n?"),
        (&["-e", "*:said", "--filter", "text > 5"], 3, "texts can be compared with `==` and `!=` only"),
        (&["--filter", "n >"], 2, "--filter"),
        (&["--fields", "n,txt"], 3, "no event of the trace has a field called `txt`; did you mean text?"),
    ] {
        let output = view(arguments, &directory).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(code) && errors.contains(reason), "{arguments:?}: {errors}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn misuse_is_refused() {
    let here = Path::new("/dev/null");
    for (arguments, reason) in [
        (&["--since", "soon"][..], "expected a time"),
        (&["--head", "1", "--tail", "1"], "cannot be used with"),
        (&["net://127.0.0.1"], "a live session is viewed alone"),
    ] {
        let output = view(arguments, here).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(reason), "{arguments:?}: {errors}");
    }
    for (url, code, reason) in [
        ("net://127.0.0.1:1", 5, "cannot connect to 127.0.0.1 port 1"),
        ("net://127.0.0.1:1/host/web/shop", 5, "cannot connect"),
        ("net://", 2, "the host is missing"),
        ("net://h/shop", 2, "/host/HOSTNAME/SESSION"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_tracectl")).args(["view", url]).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(code) && errors.contains(reason), "{url}: {errors}");
    }
}
