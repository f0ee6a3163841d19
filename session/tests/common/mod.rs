//! Shared code of the tests of sessions: babeltrace2, the reader's accounting, and directories for traces.

#![allow(dead_code, reason = "every test uses its part of this")]

pub(crate) mod oracle;

use rustix::process::{Pid, WaitOptions, waitpid};
use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use tempfile::TempDir;
use tracepoint_session::Summary;
use tracepoint_session::sinks::account::{Account, EventAccount, StreamAccount};

pub(crate) type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Waits for a child that `fork` has returned. Returns its exit status; `None` if a signal has ended it.
pub(crate) fn exit_status(child: i32) -> Option<i32> {
    let child = Pid::from_raw(child.max(0)).expect("a child was forked");
    waitpid(Some(child), WaitOptions::empty()).expect("it can be waited for")?.1.exit_status()
}

/// Creates a directory that is removed on drop.
pub(crate) fn place() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// The same in memory, for rings.
pub(crate) fn memory_place() -> TempDir {
    tempfile::tempdir_in("/dev/shm").expect("a temporary directory in memory")
}

/// The result of decoding traces with babeltrace2.
pub(crate) struct Viewed {
    /// One line for each event.
    pub(crate) lines: Vec<String>,
    /// Its warnings.
    pub(crate) warnings: String,
}

impl Viewed {
    /// Returns the number of discarded events that it reports.
    pub(crate) fn discarded_events(&self) -> u64 {
        self.discarded("event")
    }

    /// Returns the number of discarded packets that it reports.
    pub(crate) fn discarded_packets(&self) -> u64 {
        self.discarded("packet")
    }

    fn discarded(&self, noun: &str) -> u64 {
        let words: Vec<_> = self.warnings.split_whitespace().collect();
        words
            .windows(3)
            .filter(|w| w[0] == "discarded" && w[2].starts_with(noun))
            .filter_map(|w| w[1].parse::<u64>().ok())
            .sum()
    }

    /// Returns the number of lines that contain `text`.
    pub(crate) fn count(&self, text: &str) -> usize {
        self.lines.iter().filter(|line| line.contains(text)).count()
    }
}

/// Decodes traces with babeltrace2, merged.
pub(crate) fn view(paths: &[&Path]) -> Viewed {
    let output =
        Command::new("babeltrace2").args(paths).output().expect("babeltrace2 is installed (see scripts/setup.sh)");
    let warnings = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "babeltrace2 failed: {warnings}");
    let lines = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    Viewed { lines, warnings }
}

/// Checks with the reader that the account of the trace in `dir` balances.
pub(crate) fn assert_balances(dir: &Path) {
    let report = tracepoint_reader::verify(dir).expect("a trace with an account");
    let failures: Vec<_> = report.failures().collect();
    assert!(failures.is_empty(), "{failures:#?}");
    assert_eq!(report.unchecked, 0, "each packet has a checksum");
}

/// Returns the account of the event called `name`.
pub(crate) fn event<'a>(summary: &'a Summary, name: &str) -> &'a EventAccount {
    summary.events().iter().find(|event| event.name == name).unwrap_or_else(|| panic!("{name} is not in {summary:#?}"))
}

/// Returns how often the event was lost, for any reason.
pub(crate) fn lost(event: &EventAccount) -> u64 {
    event.lost.values().sum()
}

/// Returns the sum of a counter over all streams: a thread that records more than its first ring holds has a second stream.
pub(crate) fn sum_of_streams(account: &Account, counter: impl Fn(&StreamAccount) -> u64) -> u64 {
    account.channels.iter().flat_map(|channel| &channel.streams).map(counter).sum()
}

/// Returns the number of overwritten records of all streams.
pub(crate) fn overwritten(account: &Account) -> u64 {
    sum_of_streams(account, |stream| stream.overwritten)
}

/// The variable with the part of a process that a test starts; see [`again`].
const PART: &str = "TEST_PART";

/// Returns the part of this process: empty in the process that the user started.
pub(crate) fn part() -> String {
    env::var(PART).unwrap_or_default()
}

/// Returns the command that runs this test in another process, with its own part.
pub(crate) fn again(test: &str, part: &str) -> Command {
    let mut command = Command::new(env::current_exe().expect("a path"));
    command.args(["--exact", &path_of(test), "--quiet", "--nocapture"]).env(PART, part).stdin(Stdio::piped());
    command
}

/// Returns the full name of a test in the module of the running one.
pub(crate) fn path_of(test: &str) -> String {
    let current = thread::current();
    let module = current.name().and_then(|name| name.rsplit_once("::")).filter(|_| !test.contains("::"));
    module.map_or_else(|| test.to_owned(), |(module, _)| format!("{module}::{test}"))
}

/// The same with an empty memory file system mounted at `place`, visible to that process only, of `size` (as in `mount -o size=`); `None`
/// if this user may not mount anything, and tests may be skipped.
pub(crate) fn again_mounted(test: &str, part: &str, place: &Path, size: &str) -> Option<Command> {
    let mount = |then: &Command| {
        let script = "mount -t tmpfs -o size=\"$1\" tmpfs \"$2\" && shift 2 && exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", size]).arg(place);
        command.arg(then.get_program()).args(then.get_args());
        command.envs(then.get_envs().filter_map(|(key, value)| Some((key, value?))));
        command
    };
    if mount(&Command::new("true")).output().is_ok_and(|output| output.status.success()) {
        return Some(mount(&again(test, part)));
    }
    crate::skip::skip(
        "`unshare --user --mount` cannot mount a tmpfs",
        "Run as root, or allow user namespaces: `sysctl -w kernel.unprivileged_userns_clone=1`",
    );
    None
}

/// Fills the file system of `dir`. Returns the file that fills it, so that the caller can free the space again.
pub(crate) fn fill_up(dir: &Path) -> std::io::Result<PathBuf> {
    let path = dir.join("ballast");
    let mut file = File::create(&path)?;
    for size in [64 << 10, 4 << 10, 1] {
        while file.write_all(&vec![1; size]).is_ok() {}
    }
    Ok(path)
}

/// A process that a test started; killed at the end of the test if it still runs.
pub(crate) struct Other {
    child: Child,
    /// Kept open: the process writes more.
    output: BufReader<ChildStdout>,
}

impl Other {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its next line; returns whether the line ends so.
    pub(crate) fn says(&mut self, end: &str) -> bool {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line") > 0 && line.trim_end().ends_with(end)
    }

    /// Writes a line to its input.
    pub(crate) fn say(&mut self, line: &str) -> std::io::Result<()> {
        self.child.stdin.as_mut().map_or(Ok(()), |input| writeln!(input, "{line}"))
    }

    /// Kills it, and waits until it has ended. The input stays open: a child that inherited it continues to wait.
    pub(crate) fn kill(&mut self) -> Option<ChildStdin> {
        let input = self.child.stdin.take();
        let _ = self.child.kill();
        let _ = self.child.wait();
        input
    }

    /// Lets it end; returns whether it was successful.
    pub(crate) fn end(mut self) -> bool {
        drop(self.child.stdin.take());
        self.child.wait().is_ok_and(|status| status.success())
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts a process and waits until it has printed `ready`.
pub(crate) fn until_ready(command: &mut Command) -> Other {
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the test's own program");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let ready = output.by_ref().lines().any(|line| line.is_ok_and(|line| line.ends_with("ready")));
    let other = Other { child, output };
    assert!(ready, "the process ended too soon");
    other
}

/// The counterpart of [`until_ready`]; afterwards waits for the end of the input.
pub(crate) fn ready() {
    println!("ready");
    let _ = std::io::stdin().lines().count();
}

/// Returns the sorted names of the entries of a directory; none if it does not exist.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
    let mut names: Vec<String> = std::fs::read_dir(dir).into_iter().flatten().filter_map(name).collect();
    names.sort();
    names
}

/// Returns the directories of processes below a session's directory.
pub(crate) fn process_dirs(session: &Path) -> Vec<PathBuf> {
    let rings = session.join("rings");
    names(&rings).iter().map(|name| rings.join(name)).collect()
}

/// Returns the rings in a process's directory.
pub(crate) fn ring_files(dir: &Path) -> Vec<PathBuf> {
    let paths = names(dir).into_iter().map(|name| dir.join(name));
    paths.filter(|path| path.extension() == Some(OsStr::new("ring"))).collect()
}
