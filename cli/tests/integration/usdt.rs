//! Programs with notes as seen by Debian's versions of other tools: these list every event, and print what the recorder records.
//!
//! The kernel must let root attach uprobes, and have a tracefs, which these tests mount if necessary. SystemTap's scripts are only
//! parsed: running them requires a kernel with kprobes and its headers.

use crate::fixture::Build;
use crate::skip::skip;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const TRACECTL: &str = env!("CARGO_BIN_EXE_tracectl");

/// The program; each build is the same file.
fn program() -> PathBuf {
    Build::dev().feature("agent").binary("usdt")
}

/// Runs a program to its end; returns its standard output.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}: run scripts/setup.sh --ci"));
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {stdout}\n{stderr}");
    stdout.into_owned()
}

fn tracectl(arguments: &[&str]) -> String {
    output(Command::new(TRACECTL).args(arguments))
}

/// The scripts of a tool, by event.
fn scripts(source: &[&str], tool: &str) -> Vec<(String, String)> {
    let arguments = [&["usdt", "script", "--json", "--tool", tool], source].concat();
    let json: Value = serde_json::from_str(&tracectl(&arguments)).expect("JSON");
    let text = |script: &Value, key: &str| script[key].as_str().expect("a text").to_owned();
    json["scripts"].as_array().expect("a list").iter().map(|s| (text(s, "event"), text(s, "program"))).collect()
}

/// True if this process may attach uprobes; otherwise prints what is missing.
fn can_attach() -> bool {
    if !rustix::process::geteuid().is_root() {
        skip("not root, and only root may attach uprobes", "run the tests as root");
        return false;
    }
    if !Path::new("/sys/kernel/tracing/uprobe_events").exists() {
        let _ = Command::new("mount").args(["-t", "tracefs", "nodev", "/sys/kernel/tracing"]).status();
    }
    if !Path::new("/sys/kernel/tracing/uprobe_events").exists() {
        skip("this kernel has no uprobes, or lets no tracefs be mounted", "use a kernel with CONFIG_UPROBE_EVENTS");
        return false;
    }
    true
}

/// The program, waiting for a tool to attach.
struct Traced {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    run_dir: TempDir,
}

impl Traced {
    fn start(program: &Path, event: &str) -> Self {
        let run_dir = tempfile::tempdir_in("/dev/shm").expect("a directory");
        let mut command = Command::new(program);
        command.args([event, "3"]).env("TRACEPOINT_RUN_DIR", run_dir.path());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut traced = Self { child, lines, run_dir };
        assert_eq!(traced.line(), format!("pid {}", traced.child.id()));
        traced
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("a line, see its errors above").expect("UTF-8")
    }

    fn control(&self, arguments: &[&str]) -> String {
        output(Command::new(TRACECTL).args(arguments).env("TRACEPOINT_RUN_DIR", self.run_dir.path()))
    }

    /// Waits until the event is on; the program may wait for another event.
    fn wait_until_on(&self, event: &str) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let list: Value = serde_json::from_str(&self.control(&["list", "--json"])).expect("JSON");
            let mut tracepoints = list["processes"][0]["tracepoints"].as_array().expect("a list").iter();
            if tracepoints.any(|tracepoint| tracepoint["name"] == event && tracepoint["on"] == true) {
                return;
            }
            assert!(Instant::now() < deadline, "{event} is not switched on: {list}");
        }
    }

    /// Makes it fire its events, once they are on.
    fn fire(&mut self) {
        self.child.stdin.as_mut().expect("piped").write_all(b"\n").expect("it reads");
        assert_eq!(self.line(), "fired 3");
    }

    /// Waits for its end, which follows when the event is off.
    fn end(mut self) {
        assert_eq!(self.line(), "off");
        assert!(self.child.wait().expect("ends").success());
    }
}

/// A running tool, which is interrupted to detach.
struct Tool {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Tool {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        Self { child, lines }
    }

    /// The next lines about the fixture's events. An interrupted tool may not print the events it has seen.
    fn events(&mut self, count: usize) -> Vec<String> {
        let lines = self.lines.by_ref().map(|line| line.expect("UTF-8"));
        lines.filter(|line| line.starts_with("usdt:")).take(count).collect()
    }

    /// Interrupts it repeatedly until it has ended: bpftrace 0.17 occasionally misses a signal. The kernel detaches a killed tool.
    fn end(mut self) {
        let pid = Pid::from_child(&self.child);
        let asked = Instant::now();
        while self.child.try_wait().expect("its state").is_none() {
            let is_patient = asked.elapsed() < Duration::from_secs(20);
            let signal = if is_patient { Signal::INT } else { Signal::KILL };
            kill_process(pid, signal).expect("it runs");
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}

#[test]
fn every_tool_lists_every_event() {
    let program = program();
    let path = program.to_str().expect("UTF-8");
    let events = output(Command::new(&program).arg("list"));
    let events: BTreeSet<&str> = events.lines().collect();
    let list: Value = serde_json::from_str(&tracectl(&["usdt", "list", path, "--json"])).expect("JSON");
    let notes = list["files"][0]["notes"].as_array().expect("notes");
    let listed: BTreeSet<&str> = notes.iter().map(|note| note["event"].as_str().expect("a name")).collect();
    assert_eq!(listed, events);
    let wide = notes.iter().find(|note| note["event"] == "usdt:wide").expect("listed");
    assert_eq!((&wide["by_address"], &wide["fields"][3]["type"]), (&Value::Bool(true), &Value::from("hex u32")));

    let readelf = output(Command::new("readelf").args(["-n", path]));
    let gdb = output(Command::new("gdb").args(["-nx", "-batch", "-ex", "info probes stap", path]));
    let gdb: BTreeSet<String> = gdb
        .lines()
        .filter_map(|line| {
            let mut words = line.strip_prefix("stap ")?.split_whitespace();
            Some(format!("{}:{}", words.next()?, words.next()?))
        })
        .collect();
    let bpftrace = output(Command::new("bpftrace").args(["-l", &format!("usdt:{path}:*")]));
    for event in &events {
        let (provider, name) = event.split_once(':').expect("provider:name");
        assert!(readelf.contains(&format!("Provider: {provider}\n    Name: {name}\n")), "readelf: {event}");
        assert!(gdb.contains(*event), "gdb: {event}");
        assert!(bpftrace.lines().any(|line| line.ends_with(&format!(":{event}"))), "bpftrace: {event}");
    }
    let empty = Command::new(TRACECTL).args(["usdt", "list", TRACECTL]).output().expect("runs");
    let said = String::from_utf8_lossy(&empty.stderr).into_owned();
    assert!(!empty.status.success() && said.contains("feature `usdt`"), "{said}");
}

/// The expected output for `usdt:request`.
fn expected() -> Vec<String> {
    let line = |id: i64| {
        let (has, code) = if id % 2 == 0 { (1, -5) } else { (0, 0) };
        let ratio = (f64::from(i32::try_from(id).expect("small")) / 2.0).to_bits();
        format!(
            "usdt:request id={id} small={} code?={has} code={code} name=name-{id} data=\\x01\\x02\\x03 ratio=0x{ratio:x}",
            -id
        )
    };
    (0..3).map(line).collect()
}

/// One tool after the other: they share the kernel's list of uprobes.
#[test]
fn tools_print_what_the_recorder_records() {
    if can_attach() {
        let program = program();
        bpftrace_prints_events(&program, false);
        bpftrace_prints_events(&program, true);
        perf_records_events(&program);
    }
}

/// By the path of the program or by its process, also while a session records one of the events.
fn bpftrace_prints_events(program: &Path, by_pid: bool) {
    let mut traced = Traced::start(program, "request");
    let pid = traced.child.id().to_string();
    let source = if by_pid { vec!["-p", &pid] } else { vec![program.to_str().expect("UTF-8")] };
    let all = scripts(&source, "bpftrace");
    let script = |event: &str| all.iter().find(|(name, _)| name == event).expect("a script").1.clone();
    let mut command = Command::new("bpftrace");
    command.args(["-B", "line"]);
    if by_pid {
        command.args(["-p", &pid]);
    }
    let mut bpftrace =
        Tool::start(command.args(["-e", &format!("{} {}", script("usdt:wide"), script("usdt:request"))]));
    assert_eq!(traced.line(), "on");
    traced.wait_until_on("usdt:wide");
    let place = tempfile::tempdir().expect("a directory");
    let trace = place.path().join("trace");
    let out = trace.to_str().expect("UTF-8");
    traced.control(&["create", "beside", "-e", "usdt:request", "-o", out, "--start"]);
    traced.fire();
    let printed = bpftrace.events(6);
    let of = |event: &str| printed.iter().filter(|line| line.starts_with(event)).cloned().collect::<Vec<_>>();
    assert_eq!(of("usdt:request"), expected(), "by pid: {by_pid}");
    let wide = of("usdt:wide");
    assert_eq!(
        (wide.len(), &*wide[2]),
        (
            3,
            "usdt:wide a=2 b=-2 c=2 d=0xabcd e=1 f=2 g=2 h=2 i=2 path=/etc/passwd address=127.0.0.1 ports=\\x01\\x00\\x02\\x00"
        )
    );
    bpftrace.end();
    traced.control(&["destroy", "beside"]);
    traced.end();
    let view = tracectl(&["view", out]);
    assert_eq!(view.lines().filter(|line| line.contains("usdt:request")).count(), 3, "{view}");
}

/// perf knows the events after `perf buildid-cache --add`, as the kernel's uprobe events, which are removed at the end.
fn perf_records_events(program: &Path) {
    let place = tempfile::tempdir().expect("a directory");
    let cache = place.path().join("cache");
    let perf = |arguments: &[&str]| {
        let mut command = Command::new("perf");
        command.arg("--buildid-dir").arg(&cache).args(arguments);
        command
    };
    output(&mut perf(&["buildid-cache", "--add", program.to_str().expect("UTF-8")]));
    assert!(output(&mut perf(&["list", "sdt"])).contains("sdt_usdt:work_begin"));
    output(&mut perf(&["probe", "-q", "sdt_usdt:mark"]));
    let mut traced = Traced::start(program, "mark");
    let data = place.path().join("perf.data");
    let data = data.to_str().expect("UTF-8");
    let [mut commands, mut answers] = ["control", "ack"].map(|name| {
        let path = place.path().join(name);
        mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).expect("made");
        File::options().read(true).write(true).open(path).expect("opened")
    });
    let control = format!("fifo:{0}/control,{0}/ack", place.path().display());
    let pid = traced.child.id().to_string();
    let arguments = ["record", "-q", "-e", "sdt_usdt:mark", "-p", &pid, "-o", data, "--control", &control];
    let recording = Tool::start(&mut perf(&arguments));
    assert_eq!(traced.line(), "on");
    // The event is on as soon as perf has opened it, but perf only counts after enabling it; it answers commands only after that.
    commands.write_all(b"ping\n").expect("written");
    answers.read_exact(&mut [0; 4]).expect("an answer");
    traced.fire();
    recording.end();
    let printed = output(&mut perf(&["script", "-i", data]));
    output(&mut perf(&["probe", "-q", "-d", "sdt_usdt:mark"]));
    traced.end();
    for id in 0..3 {
        assert!(printed.contains(&format!("arg1={id} ")), "{printed}");
    }
}

/// gdb needs neither root nor the kernel: it writes the semaphore itself. The test uses a copy of the program, because another test attaches
/// uprobes to every process of the original file, and the kernel handles their breakpoints itself.
#[test]
fn gdb_stops_at_an_event() {
    let run_dir = tempfile::tempdir_in("/dev/shm").expect("a directory");
    let place = tempfile::tempdir().expect("a directory");
    let copy = place.path().join("usdt");
    fs::copy(program(), &copy).expect("copied");
    let line = run_dir.path().join("line");
    fs::write(&line, "\n").expect("written");
    let run = format!("run request 3 < {}", line.display());
    let mut command = Command::new("gdb");
    command.args(["-nx", "-q", "-batch", "-ex", "set debuginfod enabled off", "-ex", "break -probe-stap usdt:request"]);
    // The casts below are in C; in a program with debug information gdb would expect Rust.
    command.args(["-ex", "set language c"]);
    command.args([
        "-ex",
        &run,
        "-ex",
        "print $_probe_argc",
        "-ex",
        "print (int)$_probe_arg3",
        "-ex",
        "x/s $_probe_arg4",
    ]);
    command.args(["-ex", "delete", "-ex", "continue"]).arg(copy).env("TRACEPOINT_RUN_DIR", run_dir.path());
    let said = output(&mut command);
    for part in ["$1 = 9\n", "$2 = -5\n", "\"name-0", "fired 3\noff\n", "exited normally"] {
        assert!(said.contains(part), "no {part}: {said}");
    }
}

/// A copy of the program with an altered note of `usdt:request`: `change` gets the provider, the name and the arguments.
fn altered(place: &Path, change: impl Fn(&mut [u8])) -> PathBuf {
    let mut bytes = fs::read(program()).expect("read");
    let name = b"usdt\0request\0";
    let starts: Vec<_> =
        bytes.windows(name.len()).enumerate().filter(|(_, part)| part == name).map(|(at, _)| at).collect();
    assert!(!starts.is_empty(), "the program has the note");
    for at in starts {
        change(&mut bytes[at..at + name.len() + 32]);
    }
    let path = place.join("altered");
    fs::write(&path, bytes).expect("written");
    path
}

/// Root runs the scripts in a shell: text from a file must become neither a command nor part of a program.
#[test]
fn a_hostile_note_becomes_no_script() {
    let place = tempfile::tempdir().expect("a directory");
    // Stand-ins for the tools that do nothing.
    for tool in ["bpftrace", "stap"] {
        std::os::unix::fs::symlink("/bin/true", place.path().join(tool)).expect("linked");
    }
    let refused = |path: &Path, tool: &str| {
        let script = |more: &[&str]| {
            let mut command = Command::new(TRACECTL);
            command.args(["usdt", "script", "--tool", tool]).arg(path).args(more).output().expect("runs")
        };
        let (lines, json) = (script(&[]), script(&["--json"]));
        let said = String::from_utf8_lossy(&lines.stderr).into_owned();
        assert!(lines.status.code() == Some(1) && said.contains(" is left out: "), "{tool}: {said}");
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(String::from_utf8_lossy(&lines.stdout).as_ref()).current_dir(place.path());
        assert!(shell.env("PATH", place.path()).status().expect("runs").success());
        assert!(!place.path().join("p").exists(), "{tool}: {}", String::from_utf8_lossy(&lines.stdout));
        let json: Value = serde_json::from_slice(&json.stdout).expect("JSON");
        let count = |key: &str| json[key].as_array().expect("a list").len();
        let events = |key: &str| json[key].as_array().expect("a list").iter().map(|one| one["event"].clone()).collect();
        let (written, left_out): (Vec<Value>, Vec<Value>) = (events("scripts"), events("left_out"));
        assert_eq!(written.len() + left_out.len(), count("scripts") + count("left_out"));
        (written, left_out)
    };
    let all = scripts(&[program().to_str().expect("UTF-8")], "bpftrace").len();
    let names: [&[u8]; 4] = [b"usdt\0';>p;:'\0", b"u\"s;\0request\0", b"u's$\0request\0", b"usdt\0re{}e%t\0"];
    for name in names {
        let path = altered(place.path(), |note| note[..name.len()].copy_from_slice(name));
        for tool in ["bpftrace", "systemtap"] {
            let (written, left_out) = refused(&path, tool);
            assert_eq!((written.len(), left_out.len()), (all - 1, 1), "{left_out:?}");
        }
    }
    // The base register of arguments: bpftrace reads the seventh argument through it.
    let path = altered(place.path(), |note| {
        let register = note.iter().position(|byte| *byte == b'%').expect("an argument in memory");
        note[register + 1] = b'\'';
    });
    assert_eq!(refused(&path, "bpftrace").1, ["usdt:request"]);
    // A path is interpreted by the shell and by the tools as well.
    for name in ["a'b", "a\"b", "a b", "a$b", "a{b", "a,b"] {
        let path = place.path().join(name);
        fs::copy(program(), &path).expect("copied");
        assert_eq!(refused(&path, "bpftrace").0, [""; 0]);
    }
}

#[test]
fn systemtap_parses_its_scripts() {
    let program = program();
    // `stap` parses nothing without a kernel's build tree.
    let kernel = tempfile::tempdir().expect("a directory");
    let include = kernel.path().join("include/config");
    fs::create_dir_all(&include).expect("made");
    fs::write(include.join("kernel.release"), "6.1.0-test\n").expect("written");
    for name in ["Makefile", ".config", "Module.symvers", "System.map"] {
        fs::write(kernel.path().join(name), "").expect("written");
    }
    let parse = |script: &str| Command::new("stap").arg("-r").arg(kernel.path()).args(["-p1", "-e", script]).output();
    let scripts = scripts(&[program.to_str().expect("UTF-8")], "systemtap");
    assert!(scripts.len() > 10, "{scripts:?}");
    for (event, script) in scripts {
        let output = parse(&script).expect("stap: run scripts/setup.sh --ci");
        assert!(output.status.success(), "{event}: {script}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert!(!parse("probe process(((").expect("stap").status.success(), "what is no script is refused");
}
