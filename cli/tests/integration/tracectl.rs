//! `tracectl view` and `verify` on whole traces, on damaged ones, and on other files; help, completions and manual pages.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use tempfile::TempDir;
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Channel, Session};

tracepoint::define_trace! {
    provider = "shop";

    /// Somebody paid.
    #[level(Info)]
    paid(cents: u64, customer: &str) { cents: u64 = cents, customer: str = customer }
}

/// Serialises the tests: a session records all events of the process.
static RECORDING: Mutex<()> = Mutex::new(());

/// Records `count` events.
fn record(directory: &Path, channel: Channel, count: u64) {
    let _alone = RECORDING.lock().unwrap();
    let sink = CtfSink::create(directory).unwrap();
    let session = Session::builder("shop").events("shop:*").channel(channel).sink(sink).start().unwrap();
    (0..count).for_each(|n| tracepoint::trace!(paid(n, "Ada \"the first\"\n")));
    session.stop().unwrap();
}

/// A trace of `count` events without losses.
fn trace(count: u64) -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("trace");
    record(&directory, Channel::discard(8 << 20), count);
    (place, directory)
}

/// The largest stream of a trace.
fn stream(directory: &Path) -> PathBuf {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let streams = files.filter(|path| path.is_file() && !path.ends_with("metadata"));
    streams.max_by_key(|path| path.metadata().unwrap().len()).unwrap()
}

fn truncate(file: &Path, by: u64) {
    let file = fs::File::options().write(true).open(file).unwrap();
    file.set_len(file.metadata().unwrap().len() - by).unwrap();
}

fn tracectl<A: AsRef<std::ffi::OsStr>>(arguments: &[A]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tracectl")).args(arguments).output().unwrap()
}

fn run(verb: &str, options: &[&str], path: &Path) -> (Option<i32>, String, String) {
    let mut arguments: Vec<_> = std::iter::once(&verb).chain(options).map(std::ffi::OsStr::new).collect();
    arguments.push(path.as_os_str());
    result_of(&tracectl(&arguments))
}

/// The exit code, the standard output and the standard error of a process.
fn result_of(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn view_shows_what_babeltrace2_shows() {
    let (_place, directory) = trace(1000);
    let (code, out, err) = run("view", &["--style", "babeltrace"], &directory);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!(out.lines().count(), 1000);
    let peer = Command::new("babeltrace2").arg(&directory).output();
    let peer = peer.expect("babeltrace2 cannot be run: scripts/setup.sh installs it");
    assert_eq!(String::from_utf8_lossy(&peer.stderr), "");
    assert!(out.as_bytes() == peer.stdout, "the same text");
}

#[test]
fn view_in_json_has_one_object_a_line() {
    let (_place, directory) = trace(3);
    let (code, out, _) = run("view", &["--json"], &directory);
    assert_eq!(code, Some(0));
    for (n, line) in out.lines().enumerate() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!((&event["type"], &event["name"]), (&"event".into(), &"shop:paid".into()));
        assert_eq!(event["fields"], serde_json::json!({"cents": n, "customer": "Ada \"the first\"\n"}));
    }
}

#[test]
fn view_shows_losses_where_they_happened() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("trace");
    record(&directory, Channel::overwrite(8 << 10), 10_000);
    let (code, out, err) = run("view", &[], &directory);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let lost: u64 =
        out.lines().filter_map(|line| line.split_once(" with ")?.1.split(' ').next()?.parse::<u64>().ok()).sum();
    let events = out.lines().filter(|line| line.contains(" shop:paid ")).count() as u64;
    assert!(events > 0 && lost > 0);
    assert_eq!(events + lost, 10_000, "{out}");
    assert_eq!(run("verify", &[], &directory).0, Some(0), "losses are accounted for");
}

#[test]
fn a_verb_ends_quietly_when_its_output_is_closed() {
    let (_place, directory) = trace(50_000);
    for arguments in [&["view"][..], &["view", "--json"], &["export", "--csv", "-"], &["export", "--chrome", "-"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tracectl"))
            .args(arguments)
            .arg(&directory)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (code, _, err) = result_of(&child.wait_with_output().unwrap());
        assert_eq!((code, err.as_str()), (Some(0), ""));
    }
}

#[test]
fn readable_events_of_a_damaged_trace_are_shown() {
    let (_place, directory) = trace(1000);
    truncate(&stream(&directory), 100);
    let (code, out, err) = run("view", &[], &directory);
    assert_eq!(code, Some(1));
    assert!(out.lines().count() > 0 && !out.contains("damage"), "data only");
    assert!(err.starts_with("error: ") && err.contains(stream(&directory).to_str().unwrap()), "{err}");

    let (code, out, _) = run("view", &["--json"], &directory);
    assert_eq!(code, Some(1));
    assert_eq!(out.lines().filter(|line| line.starts_with(r#"{"type":"damage""#)).count(), 1);

    let (code, out, err) = run("verify", &["--failures"], &directory);
    assert_eq!(code, Some(1));
    assert!(out.lines().count() > 0 && out.lines().all(|line| line.starts_with("FAILED  ")), "{out}");
    assert!(out.lines().any(|line| line.starts_with("FAILED  Q  ")), "{out}");
    assert!(err.contains("the account does not balance"), "{err}");
    // After the sentence and the verdict there are no letters.
    let (code, plain, err) = run("verify", &[], &directory);
    assert_eq!((code, err.as_str()), (Some(1), ""));
    let lines: Vec<_> = plain.lines().collect();
    assert!(lines[1].contains("the account does not balance: "), "{plain}");
    assert_eq!(lines.len() - 2, out.lines().count(), "{plain}");
    let is_plain = |line: &&str| line.starts_with("  FAILED  ") && !line.starts_with("  FAILED  Q  ");
    assert!(lines[2..].iter().all(is_plain), "{plain}");
}

#[test]
fn verify_says_in_two_lines_what_became_of_all_events() {
    let (_place, directory) = trace(10);
    let (code, out, err) = run("verify", &[], &directory);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines[0], "10 fired = 10 recorded; nothing lost");
    assert!(lines.len() == 2 && lines[1].starts_with("the account balances: "), "{out}");

    let (code, out, err) = run("verify", &["-v"], &directory);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!(out.lines().take(2).collect::<Vec<_>>(), lines);
    assert!(out.lines().skip(2).all(|line| line.starts_with("  ok      ")), "{out}");
    assert!(out.contains("  E  shop:paid in channel0: fired = recorded + filtered + suppressed + lost: 10, 10\n"));
    assert_eq!(lines[1], format!("the account balances: {} checks", out.lines().count() - 2));

    let (code, json, err) = run("verify", &["--json"], &directory);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["passed"], true);
    assert_eq!(report["events"]["fired"], 10);
    assert_eq!(report["checks"].as_array().unwrap().len(), out.lines().count() - 2);
}

#[test]
fn verify_finds_missing_files() {
    let (_place, directory) = trace(10);
    fs::remove_file(stream(&directory)).unwrap();
    let (code, json, err) = run("verify", &["--json"], &directory);
    assert_eq!(code, Some(1));
    assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["passed"], false);
    assert!(err.contains("the account does not balance"), "{err}");

    fs::remove_dir_all(directory.join(".account")).unwrap();
    let (code, out, _) = run("verify", &[], &directory);
    assert_eq!(code, Some(1));
    assert!(out.starts_with("no account says how many events fired\n"), "{out}");
    assert!(out.contains("\n  FAILED  ") && out.contains("missing"), "{out}");
}

#[test]
fn other_files_are_refused_with_a_hint() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    fs::write(&file, "hello").unwrap();
    let empty = place.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let other = place.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("channel0_0"), [0; 4096]).unwrap();
    let broken = place.path().join("broken");
    fs::create_dir(&broken).unwrap();
    fs::write(broken.join("metadata"), "/* CTF 1.8 */\ntrace { major = 1").unwrap();
    for verb in ["view", "verify"] {
        for (path, message) in [
            (place.path().join("missing"), "there is no such directory; name a directory that holds"),
            (file.clone(), "this is neither a directory nor a dt file (the file ends in its header"),
            (empty.clone(), "there is no file called `metadata` in it; name a directory that holds"),
            (other.clone(), "there is no file called `metadata` in it; name a directory that holds"),
            (broken.clone(), "line 2"),
        ] {
            let (code, out, err) = run(verb, &[], &path);
            assert_eq!((code, out.as_str()), (Some(3), ""), "{err}");
            assert!(err.starts_with("error: ") && err.contains(message), "{err}");
            assert!(err.contains(path.to_str().unwrap()), "{err}");
        }
    }
}

#[test]
fn invalid_command_lines_are_refused() {
    let disable = ["disable", "s", "--statistic", "count", "--record"];
    for arguments in [&[][..], &["look"], &["view"], &["verify"], &["view", "--json", "--utc", "x"], &disable] {
        let (code, out, err) = result_of(&tracectl(arguments));
        assert_eq!((code, out.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(err.contains("Usage: tracectl"), "{err}");
    }
}

#[test]
fn help_has_examples_and_exit_codes() {
    let (_, help, _) = result_of(&tracectl(&["--help"]));
    assert!(help.contains("\nExamples:\n  tracectl ") && help.contains("\nExit codes:\n  0 "), "{help}");
    let verbs = help.lines().skip_while(|line| *line != "Record:").take_while(|line| *line != "Options:");
    let verbs: Vec<_> = verbs.filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    assert!(verbs.contains(&"record") && verbs.contains(&"read"), "{verbs:?}");
    for verb in verbs.iter().filter(|verb| **verb != "help") {
        let (code, out, _) = result_of(&tracectl(&[verb, "--help"]));
        assert_eq!(code, Some(0));
        let has_examples = out.contains(&format!("Examples:\n  tracectl {verb}"));
        assert!(has_examples && out.contains("Exit codes:\n  0 "), "{out}");
    }
}

#[test]
fn completions_and_manual_pages_have_every_verb() {
    let script = tracectl(&["completions", "bash"]);
    assert!(script.status.success() && String::from_utf8_lossy(&script.stdout).contains("TRACECTL_COMPLETE"));
    let completions = candidates(&[""], Path::new("/nonexistent"));
    let place = tempfile::tempdir().unwrap();
    let pages = place.path().join("man1");
    assert!(tracectl(&[std::ffi::OsStr::new("man"), pages.as_os_str()]).status.success());
    for verb in ["list", "record", "snapshot", "view", "dt-dump"] {
        assert!(completions.contains(verb.split('-').next().unwrap_or(verb)), "{verb}: {completions}");
        assert!(pages.join(format!("tracectl-{verb}.1")).exists(), "{verb}");
    }
    let names = fs::read_dir(&pages).unwrap().map(|page| page.unwrap().file_name().into_string().unwrap());
    let of_no_verb: Vec<_> = names.filter(|name| ["help", "remote"].iter().any(|verb| name.contains(verb))).collect();
    assert!(of_no_verb.is_empty(), "{of_no_verb:?}");
}

/// The shell completions of the last of these words, with this run directory.
fn candidates(words: &[&str], run_dir: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracectl"));
    command.env("TRACECTL_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    let output = command.env("TRACEPOINT_RUN_DIR", run_dir).args(["--", "tracectl"]).args(words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// All files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = vec![directory.to_owned()];
    for entry in fs::read_dir(directory).into_iter().flatten() {
        found.extend(files(&entry.unwrap().path()));
    }
    found.sort();
    found
}

#[test]
fn completions_change_nothing() {
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let run_dir = place.path().join("run");
    candidates(&["start", ""], &run_dir);
    candidates(&["record", "--pid", ""], &run_dir);
    assert!(!run_dir.exists());
    let created = Command::new(env!("CARGO_BIN_EXE_tracectl"))
        .env("TRACEPOINT_RUN_DIR", &run_dir)
        .args(["create", "nightly", "-e", "shop:*", "--wait"])
        .output()
        .unwrap();
    assert!(created.status.success(), "{created:?}");
    // Remains of a process and of a session that are gone: any other command removes both.
    for (directory, file) in [("apps/12-34", "status"), ("sessions/over", "log")] {
        fs::create_dir(run_dir.join(directory)).unwrap();
        fs::write(run_dir.join(directory).join(file), "x").unwrap();
    }
    let before = files(&run_dir);
    let sessions = candidates(&["start", ""], &run_dir);
    assert!(sessions.contains("nightly") && !sessions.contains("over"), "{sessions}");
    let processes = candidates(&["record", "--pid", ""], &run_dir);
    assert!(!processes.contains("12"), "{processes}");
    assert_eq!(files(&run_dir), before);
}

#[test]
fn metadata_that_has_changed_is_noted_and_fails_to_verify() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("trace");
    record(&directory, Channel::discard(64 << 10), 1);
    let file = directory.join("metadata");
    let text = fs::read_to_string(&file).unwrap();
    // One bit.
    fs::write(&file, text.replacen("shop:paid", "shop:qaid", 1)).unwrap();
    for verb in ["view", "stat"] {
        let (code, out, err) = result_of(&tracectl(&[verb.as_ref(), directory.as_os_str()]));
        assert!(code == Some(0) && out.contains("shop:qaid"), "{out}");
        assert!(err.starts_with("note: ") && err.contains("the metadata is damaged: its bytes have changed"), "{err}");
    }
    let (code, out, _) = result_of(&tracectl(&["verify".as_ref(), directory.as_os_str()]));
    let told = "/metadata: the metadata = as it was written: its bytes have changed since they were written: ";
    assert!(code == Some(1) && out.contains(told) && out.contains(", as it was written"), "{out}");
    let (code, out, err) = result_of(&tracectl(&["view".as_ref(), "--follow".as_ref(), directory.as_os_str()]));
    assert!(code == Some(0) && out.contains("shop:qaid"), "{out}");
    assert_eq!(err.matches("the metadata is damaged").count(), 1, "{err}");
    // Verbs that pass the metadata on count it as damage.
    let dt = place.path().join("trace.dt");
    let arguments = ["convert".as_ref(), "--json".as_ref(), directory.as_os_str(), "-o".as_ref(), dt.as_os_str()];
    let (code, out, err) = result_of(&tracectl(&arguments));
    let damage = &serde_json::from_str::<serde_json::Value>(&out).unwrap()["damage"];
    assert!(code == Some(1) && err.contains("it is converted as it is"), "{err}");
    assert!(damage[0].as_str().is_some_and(|damage| damage.contains("the metadata is damaged")), "{damage}");
    let back = place.path().join("back");
    let (code, _, err) = result_of(&tracectl(&["convert".as_ref(), dt.as_os_str(), "-o".as_ref(), back.as_os_str()]));
    assert!(code == Some(1) && err.starts_with(&format!("error: {}: ", dt.display())), "{err}");
}

#[test]
fn verbs_that_change_sessions_write_json() {
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let json = |arguments: &[&str]| -> serde_json::Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tracectl"));
        command.env("TRACEPOINT_RUN_DIR", place.path().join("run")).args(arguments).arg("--json");
        let (code, out, err) = result_of(&command.output().unwrap());
        assert_eq!(code, Some(0), "{arguments:?}: {err}");
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {out}"))
    };
    let done = serde_json::json!({ "session": "s", "complete": true, "processes": [], "silent": [] });
    assert_eq!(json(&["create", "s", "-e", "shop:*", "--wait", "--policy", "overwrite"]), done);
    assert_eq!(json(&["start", "s"]), done);
    assert_eq!(json(&["enable", "s", "-e", "mart:*", "--wait"]), done);
    assert_eq!(json(&["disable", "s", "-e", "mart:*"]), done);
    let set = json(&["trigger", "-s", "s", "panic", "stop"]);
    assert_eq!(
        (&set["session"], &set["trigger"], &set["actions"]),
        (&"s".into(), &"t1".into(), &serde_json::json!(["stop"]))
    );
    assert_eq!(json(&["untrigger", "-s", "s", "t1"]), serde_json::json!({ "session": "s", "removed": ["t1"] }));
    assert_eq!(json(&["save", "s"])["rule"][0]["event"], "shop:*");
    assert_eq!(json(&["stop", "s"]), done);
    assert_eq!(json(&["destroy", "s"]), done);
}
