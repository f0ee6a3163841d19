//! Processes that dump core leave snapshots of the sessions that have a trigger for it: the kernel starts `tracectl notify`.
//!
//! The tests need root: they set `/proc/sys/kernel/core_pattern` of the machine, one after the other, and restore it. The crashing processes are
//! further instances of this program.
#![forbid(unsafe_code)]

mod container;
mod killed;

use rustix::fs::{FlockOperation, flock};
use serde_json::Value;
use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tracepoint::Agent;

tracepoint::define_trace! {
    provider = "crash";

    /// A step of the program.
    pub step(n: u64) { n: u64 = n }

    /// The last event before the crash.
    pub last(how: &str) { how: str = how }
}

/// Set in a traced process: how it crashes when its input ends; `no`: it exits.
const HOW: &str = "TEST_CRASH";
const PATTERN: &str = "/proc/sys/kernel/core_pattern";
/// The maximum number of helpers that the kernel waits for; 0: it waits for none.
const PIPE_LIMIT: &str = "/proc/sys/kernel/core_pipe_limit";
/// Time limit for conditions that normally become true quickly.
const DEADLINE: Duration = Duration::from_secs(120);

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// In a traced process, plays its part and returns `true`.
fn is_traced() -> bool {
    let Ok(how) = env::var(HOW) else { return false };
    let _agent = Agent::start().expect("an agent");
    // On a busy machine, the agent applies the sessions later.
    wait_for(|| trace_step_enabled().then_some(()));
    for n in 0..100 {
        tracepoint::trace!(step(n));
    }
    println!("ready");
    let _ = std::io::stdin().lines().count();
    tracepoint::trace!(last(&how));
    match how.as_str() {
        "abort" => std::process::abort(),
        "panic" => cannot_unwind(),
        "overflow" => drop(recurse(1)),
        "segv" | "bus" => {
            let name = if how == "segv" { "SEGV" } else { "BUS" };
            let me = std::process::id().to_string();
            // The first one only removes the handler of the standard library, which assumes that a fault will recur.
            for _ in 0..3 {
                let _ = Command::new("kill").args([format!("-{name}"), me.clone()]).status();
            }
            std::thread::sleep(DEADLINE);
        }
        "kill" => drop(Command::new("kill").args(["-KILL", &std::process::id().to_string()]).status()),
        // Not through the test runner, whose output is no longer read.
        _ => std::process::exit(0),
    }
    true
}

/// As in a program built with `panic = "abort"`.
extern "C" fn cannot_unwind() {
    panic!("on purpose");
}

/// Overflows the stack: the handler runs on an alternate one.
#[expect(unconditional_recursion, reason = "it is to overflow")]
fn recurse(n: u64) -> u64 {
    let array = std::hint::black_box([n; 1000]);
    recurse(array[999] + 1) + array[0]
}

/// The installed helper; uninstalled on drop. Only one at a time exists on the whole machine.
struct Installed {
    before: String,
    limit_before: String,
    _lock: File,
}

impl Drop for Installed {
    fn drop(&mut self) {
        let _ = fs::write(PATTERN, &self.before);
        let _ = fs::write(PIPE_LIMIT, &self.limit_before);
    }
}

/// A directory with a run directory, a session `flight` that keeps the newest events, and the program under a short path: the pattern has
/// room for 127 bytes.
struct Place {
    dir: TempDir,
    user: Option<u32>,
}

impl Place {
    /// For root if `None`, otherwise for this user.
    fn new(user: Option<u32>) -> Result<Self, Box<dyn std::error::Error>> {
        let place = Self { dir: tempfile::tempdir_in("/dev/shm")?, user };
        fs::set_permissions(place.dir.path(), fs::Permissions::from_mode(0o755))?;
        // Copied by another process: a child started in the meantime would inherit the file open for writing, so that it could not be executed.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_tracectl")).arg(place.path("tracectl")).status()?;
        assert!(copied.success());
        fs::create_dir(place.path("own"))?;
        if let Some(user) = user {
            std::os::unix::fs::chown(place.path("own"), Some(user), Some(user))?;
        }
        place.well(&["create", "flight", "-e", "crash:*", "--ring-size", "64K", "--wait", "--start"])?;
        place.well(&[
            "trigger",
            "-s",
            "flight",
            "OnAnyCoreDump",
            "snapshot",
            "--output",
            &place.text("own/out"),
            "--keep",
            "100",
        ])?;
        Ok(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("TRACEPOINT_RUN_DIR", self.path("own/run")).current_dir(self.path("own"));
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    fn well(&self, arguments: &[&str]) -> Result<String, Box<dyn std::error::Error>> {
        let output = self.command(&self.path("tracectl")).args(arguments).output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {text}");
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Runs the command as the user of the tests, who is root.
    fn as_root(&self, arguments: &[&str]) -> Result<(Option<i32>, String), Box<dyn std::error::Error>> {
        let output = Command::new(self.path("tracectl")).args(arguments).stdin(Stdio::null()).output()?;
        Ok((output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned()))
    }

    fn install(&self) -> Result<Installed, Box<dyn std::error::Error>> {
        // The tests may be threads of a process, or processes.
        let lock = File::open(PATTERN)?;
        flock(&lock, FlockOperation::LockExclusive)?;
        let (before, limit_before) = (fs::read_to_string(PATTERN)?, fs::read_to_string(PIPE_LIMIT)?);
        let installed = Installed { before, limit_before, _lock: lock };
        let (code, err) = self.as_root(&["install-core-handler", "--config", &self.text("c"), "--chain"])?;
        assert_eq!((code, err.as_str()), (Some(0), ""), "these tests need root and a core_pattern that can be set");
        Ok(installed)
    }

    /// Starts a traced process, which waits until its input is closed.
    fn start(&self, test: &str, how: &str) -> Result<Child, Box<dyn std::error::Error>> {
        let mut command = self.command(Path::new("/bin/sh"));
        // The size limit of core files does not count for helpers.
        command.args(["-c", "ulimit -c 0; exec \"$@\"", "sh"]).arg(env::current_exe()?);
        command.args(["--exact", test, "--quiet", "--nocapture", "--test-threads=1"]).env(HOW, how);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let output = BufReader::new(child.stdout.take().ok_or("a pipe")?);
        assert!(output.lines().any(|line| line.is_ok_and(|line| line.ends_with("ready"))), "it ended too soon");
        Ok(child)
    }

    /// The state of the trigger once it has fired `times` times.
    fn fired(&self, times: u64) -> Result<Value, Box<dyn std::error::Error>> {
        let began = Instant::now();
        loop {
            let all: Value = serde_json::from_str(&self.well(&["triggers", "-s", "flight", "--json"])?)?;
            let state = all["triggers"][0]["state"].clone();
            let kept = state["snapshots"].as_array().map_or(0, Vec::len) as u64;
            assert_eq!(state["failed"], 0, "{all:#}");
            if kept >= times || began.elapsed() > DEADLINE {
                assert_eq!(kept, times, "{all:#}");
                return Ok(state);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The snapshots, by the id of the process that crashed.
    fn snapshot_of(&self, pid: u32) -> Result<PathBuf, Box<dyn std::error::Error>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(self.path("own/out"))? {
            let name = entry?.file_name().into_string().map_err(|_| "a name")?;
            if name.ends_with(&format!("-{pid}")) {
                found.push(self.path("own/out").join(name));
            }
        }
        assert_eq!(found.len(), 1, "one snapshot for the process {pid}: {found:?}");
        Ok(found.remove(0))
    }
}

/// The output and the messages of babeltrace2 for a trace.
fn viewed(trace: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let output = Command::new("babeltrace2").arg(trace).output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// The trace of a process in a snapshot.
fn trace_of(snapshot: &Path, pid: u32) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let traces = fs::read_dir(snapshot)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    let is_its = |path: &&PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.split('-').any(|part| part == pid.to_string())
    };
    let found = traces.iter().find(is_its).ok_or_else(|| format!("no trace of {pid} in {traces:?}"))?;
    Ok(found.clone())
}

fn check_snapshot(snapshot: &Path, how: &str, signal: i32, crashed: u32, healthy: u32) -> Outcome {
    let parts = [format!("core_signal = {signal};"), format!("core_pid = {crashed};")];
    check_snapshot_with(snapshot, how, &parts, crashed, healthy)
}

/// Checks that both processes are in the snapshot, the dead one with its last event, and that its metadata contains `parts`.
fn check_snapshot_with(snapshot: &Path, how: &str, parts: &[String], crashed: u32, healthy: u32) -> Outcome {
    let trace = trace_of(snapshot, crashed)?;
    let events = viewed(&trace)?;
    let last = events.lines().last().ok_or("no events")?;
    assert!(last.contains("crash:last") && last.contains(&format!("how = \"{how}\"")), "{last}");
    assert_eq!(events.lines().filter(|line| line.contains("crash:step")).count(), 100);
    let metadata = String::from_utf8_lossy(&fs::read(trace.join("metadata"))?).into_owned();
    for part in parts {
        assert!(metadata.contains(part), "{part} is not in {metadata}");
    }
    let other = viewed(&trace_of(snapshot, healthy)?)?;
    assert_eq!(other.lines().filter(|line| line.contains("crash:step")).count(), 100);
    assert!(!other.contains("crash:last"), "{other}");
    Ok(())
}

/// With and without the kernel waiting for the helper.
#[test]
fn each_kind_of_crash_leaves_a_snapshot() -> Outcome {
    const TEST: &str = "each_kind_of_crash_leaves_a_snapshot";
    if is_traced() {
        return Ok(());
    }
    let place = Place::new(None)?;
    let _installed = place.install()?;
    let mut healthy = place.start(TEST, "no")?;
    let mut fired = 0;
    for (how, signal) in [("segv", 11), ("abort", 6), ("panic", 6), ("overflow", 6), ("bus", 7), ("segv", 11)] {
        // The last one is waited for.
        fs::write(PIPE_LIMIT, if fired == 5 { "1" } else { "0" })?;
        let mut crashes = place.start(TEST, how)?;
        drop(crashes.stdin.take());
        assert_eq!(crashes.wait()?.signal(), Some(signal), "{how}");
        fired += 1;
        place.fired(fired)?;
        check_snapshot(&place.snapshot_of(crashes.id())?, how, signal, crashes.id(), healthy.id())?;
        if fired == 1 {
            let trace = trace_of(&place.snapshot_of(crashes.id())?, crashes.id())?.display().to_string();
            place.well(&["convert", &trace, "-o", "crash.dt"])?;
            let postambles =
                place.command(&place.path("tracectl")).args(["dt", "postamble", "--raw", "crash.dt"]).output()?;
            let postambles = String::from_utf8_lossy(&postambles.stdout).into_owned();
            assert!(postambles.contains(&format!("core_pid = {};", crashes.id())), "{postambles}");
        }
    }
    drop(healthy.stdin.take());
    assert!(healthy.wait()?.success(), "the other process goes on");
    Ok(())
}

/// The helper acts with the rights of the process's user.
#[test]
fn the_snapshot_of_a_user_belongs_to_the_user() -> Outcome {
    const TEST: &str = "the_snapshot_of_a_user_belongs_to_the_user";
    const USER: u32 = 65_432;
    if is_traced() {
        return Ok(());
    }
    let place = Place::new(Some(USER))?;
    let _installed = place.install()?;
    let mut healthy = place.start(TEST, "no")?;
    let mut crashes = place.start(TEST, "abort")?;
    drop(crashes.stdin.take());
    crashes.wait()?;
    place.fired(1)?;
    let snapshot = place.snapshot_of(crashes.id())?;
    check_snapshot(&snapshot, "abort", 6, crashes.id(), healthy.id())?;
    for entry in fs::read_dir(trace_of(&snapshot, crashes.id())?)? {
        let file = entry?.metadata()?;
        assert_eq!((file.uid(), file.gid()), (USER, USER));
    }
    drop(healthy.stdin.take());
    healthy.wait()?;
    Ok(())
}

#[test]
fn many_crashes_at_once_leave_a_snapshot_each() -> Outcome {
    const TEST: &str = "many_crashes_at_once_leave_a_snapshot_each";
    const PROCESSES: u64 = 50;
    if is_traced() {
        return Ok(());
    }
    let place = Place::new(None)?;
    let _installed = place.install()?;
    let mut crashing = (0..PROCESSES).map(|_| place.start(TEST, "abort")).collect::<Result<Vec<_>, _>>()?;
    for child in &mut crashing {
        drop(child.stdin.take());
    }
    for child in &mut crashing {
        assert_eq!(child.wait()?.signal(), Some(6));
    }
    let state = place.fired(PROCESSES)?;
    assert_eq!(state["fired"], PROCESSES, "{state}");
    for child in &crashing {
        let trace = trace_of(&place.snapshot_of(child.id())?, child.id())?;
        let events = viewed(&trace)?;
        assert!(events.lines().last().is_some_and(|line| line.contains("crash:last")), "{}", trace.display());
    }
    Ok(())
}

/// The arguments from the kernel are checked, and the former pattern is restored.
#[test]
fn the_command_line_of_the_helper_is_checked() -> Outcome {
    let place = Place::new(None)?;
    let (code, err) = place.as_root(&["notify", "--core", "7", "0", "0", "tool", "host"])?;
    assert!(code == Some(2) && err.contains("%P %u %g %e %h %s"), "{err}");
    let (code, err) = place.as_root(&["notify", "--core", "tool", "0", "0", "7", "host", "11"])?;
    assert!(code == Some(2) && err.contains("`tool` is not the number for %P"), "{err}");
    // The process does not exist, so there is nothing to do.
    let (code, err) = place.as_root(&["notify", "--core", "4000000", "65431", "65431", "../a b", "host", "11"])?;
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let installed = place.install()?;
    let (code, err) = place.as_root(&["install-core-handler", "--config", &place.text("c"), "--uninstall"])?;
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(fs::read_to_string(PATTERN)?, installed.before);
    Ok(())
}

/// The core image goes to a file, or to the previous handler.
#[test]
fn core_images_are_passed_on() -> Outcome {
    const TEST: &str = "core_images_are_passed_on";
    if is_traced() {
        return Ok(());
    }
    let place = Place::new(None)?;
    let installed = place.install()?;
    fs::create_dir(place.path("cores"))?;
    fs::write(PATTERN, &installed.before)?;
    let (code, err) =
        place.as_root(&["install-core-handler", "--config", &place.text("c"), "--save", &place.text("cores")])?;
    assert_eq!(code, Some(0), "{err}");
    let mut crashes = place.start(TEST, "abort")?;
    drop(crashes.stdin.take());
    crashes.wait()?;
    place.fired(1)?;
    let image = wait_for(|| fs::read_dir(place.path("cores")).ok()?.next()?.ok().map(|entry| entry.path()));
    assert!(image.display().to_string().contains(&format!(".{}.", crashes.id())), "{}", image.display());
    wait_for(|| fs::read(&image).ok().filter(|bytes| bytes.starts_with(b"\x7fELF") && bytes.len() > 1 << 16));

    // Another handler, which stores its input.
    let handler = place.path("handler");
    let mut script = File::create(&handler)?;
    write!(
        script,
        "#!/bin/sh\necho \"$@\" > {0}/told\n/usr/bin/head -c 4 > {0}/begin\n/bin/cat > /dev/null\n",
        place.text("cores")
    )?;
    drop(script);
    fs::set_permissions(&handler, fs::Permissions::from_mode(0o755))?;
    fs::write(PATTERN, format!("|{} %P sig=%s\n", handler.display()))?;
    let (code, err) = place.as_root(&["install-core-handler", "--config", &place.text("d")])?;
    assert!(code == Some(3) && err.contains("--chain"), "another handler is not replaced: {err}");
    let (code, err) = place.as_root(&["install-core-handler", "--config", &place.text("d"), "--chain"])?;
    assert_eq!(code, Some(0), "{err}");
    let mut crashes = place.start(TEST, "abort")?;
    drop(crashes.stdin.take());
    crashes.wait()?;
    place.fired(2)?;
    wait_for(|| fs::read(place.path("cores/begin")).ok().filter(|bytes| bytes == b"\x7fELF"));
    assert_eq!(fs::read_to_string(place.path("cores/told"))?, format!("{} sig=6\n", crashes.id()));
    let (code, err) = place.as_root(&["install-core-handler", "--config", &place.text("d"), "--uninstall"])?;
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(fs::read_to_string(PATTERN)?, format!("|{} %P sig=%s\n", handler.display()));
    Ok(())
}

fn wait_for<T>(mut found: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        match found() {
            Some(found) => return found,
            None => assert!(began.elapsed() < DEADLINE, "it did not happen"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
