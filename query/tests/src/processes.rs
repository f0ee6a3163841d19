//! Starts the processes of a cluster on the loopback address.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::Value;

/// A process that has not done what is expected within this time has hung.
const HUNG: Duration = Duration::from_secs(300);

/// A child process, killed on drop.
///
/// The functions panic if a system call fails or the process does not respond.
pub struct Process {
    /// The process.
    pub child: Child,
    /// The address that it listens on.
    pub address: String,
}

impl Process {
    /// Starts a process that prints the address it listens on.
    ///
    /// # Panics
    /// If it does not start, or prints no address.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program runs");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("listening on ").expect("an address").to_owned();
        Self { child, address }
    }

    /// Sends SIGKILL, and waits for the end.
    ///
    /// # Panics
    /// If it cannot be killed.
    pub fn kill(&mut self) {
        self.child.kill().expect("it is killed");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// An executor, and its directory of results.
pub struct Executor {
    /// The process.
    pub process: Process,
    /// The directory of results.
    pub directory: PathBuf,
}

impl Executor {
    /// Number of result files written so far.
    pub fn results(&self) -> usize {
        fn files(directory: &Path) -> usize {
            let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
            entries.map(|entry| if entry.path().is_dir() { files(&entry.path()) } else { 1 }).sum()
        }
        files(&self.directory)
    }
}

/// A scheduler and executors.
pub struct Cluster {
    program: Box<dyn Fn() -> Command>,
    /// The scheduler.
    pub scheduler: Process,
    /// The executors.
    pub executors: Vec<Executor>,
}

impl Cluster {
    /// Starts a scheduler and `executors` executors of `program`, each with `slots` concurrent tasks. Their directories are in `place`.
    pub fn start(program: impl Fn() -> Command + 'static, place: &Path, executors: usize, slots: usize) -> Self {
        let scheduler = Process::start(program().args(["scheduler", "--bind", "127.0.0.1:0"]));
        let mut cluster = Self { program: Box::new(program), scheduler, executors: Vec::new() };
        for number in 0..executors {
            cluster.add(&place.join(format!("executor {number}")), slots);
        }
        cluster
    }

    fn add(&mut self, directory: &Path, slots: usize) {
        fs::create_dir(directory).expect("a directory");
        let slots = slots.to_string();
        let mut command = (self.program)();
        command.args(["executor", "--scheduler", &self.scheduler.address, "--slots", &slots, "--directory"]);
        let process = Process::start(command.arg(directory).current_dir("/"));
        self.executors.push(Executor { process, directory: directory.to_owned() });
    }

    /// A command that queries a store on this cluster.
    pub fn query(&self, sql: &str, store: &Path) -> Command {
        let mut command = (self.program)();
        command.args(["--json", "--cluster", &self.scheduler.address, sql]).arg(store).stdin(Stdio::null());
        command
    }
}

/// Waits for a process to end, and returns its output.
///
/// # Panics
/// If it does not end in time.
pub fn ended(mut child: Child) -> Output {
    let since = Instant::now();
    while child.try_wait().expect("it runs").is_none() {
        if since.elapsed() > HUNG {
            _ = child.kill();
            panic!("it hangs");
        }
        thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().expect("it has ended")
}

/// Waits until `happened` returns true.
///
/// # Panics
/// If it does not within five minutes.
pub fn wait(what: &str, mut happened: impl FnMut() -> bool) {
    let since = Instant::now();
    while !happened() {
        assert!(since.elapsed() < HUNG, "{what} does not happen");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Parses the rows that a query printed.
///
/// # Panics
/// If the query has failed, or has not written JSON.
pub fn rows(output: &Output) -> Vec<Vec<Value>> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let object = |line: &str| match serde_json::from_str(line).expect("JSON") {
        Value::Object(columns) => columns.into_iter().map(|(_, value)| value).collect(),
        other => panic!("{other} is no row"),
    };
    String::from_utf8_lossy(&output.stdout).lines().map(object).collect()
}

/// The standard error of a process as text.
pub fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
