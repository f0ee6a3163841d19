//! The behaviour of verbs whose standard output or standard error cannot be written.

use std::fs::File;
use std::io::pipe;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use tempfile::TempDir;
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Channel, Session};

tracepoint::define_trace! {
    provider = "output";

    written(n: u64, text: &str) { n, text }
    span work(n: u64) { n }
}

/// Serialises the recordings: a session records all events of the process.
static RECORDING: Mutex<()> = Mutex::new(());

/// Commands that write to the standard output: the arguments, for a directory with `trace`, `trace.dt` and a run directory with the
/// session `s`.
const COMMANDS: &[&str] = &[
    "--help",
    "--version",
    "help view",
    "dt info --help",
    "completions bash",
    "list --json",
    "status",
    "status --json",
    "triggers",
    "triggers --json",
    "clean --json",
    "save s",
    "save s --json",
    "view trace",
    "view --json trace",
    "view --clocks trace",
    "verify trace",
    "verify --json trace",
    "stat trace",
    "stat --by n trace",
    "stat --csv trace",
    "stat --json trace",
    "stat --prometheus trace",
    "hist n trace",
    "hist n --by text trace",
    "hist n --heat-map trace",
    "hist n --json trace",
    "hist n --prometheus trace",
    "hist latency(output:work) trace",
    "dt info trace.dt",
    "dt info --json trace.dt",
    "dt dump trace.dt",
    "dt dump --json trace.dt",
    "export --csv - trace",
    "export --chrome - trace",
    "export --perfetto - trace",
    "export --folded - trace",
    "export --flame - trace",
    "export --otlp - trace",
    "export --otlp-protobuf - trace",
];

fn place() -> TempDir {
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let alone = RECORDING.lock().unwrap();
    let sink = CtfSink::create(place.path().join("trace")).unwrap();
    let session =
        Session::builder("output").events("output:*").channel(Channel::discard(1 << 20)).sink(sink).start().unwrap();
    for n in 0..10 {
        let _work = tracepoint::span!(work(n));
        tracepoint::trace!(written(n, "a"));
    }
    session.stop().unwrap();
    drop(alone);
    for arguments in ["convert trace -o trace.dt", "create s -e output:* --wait", "trigger -s s panic stop"] {
        assert!(command(place.path(), arguments).output().unwrap().status.success(), "{arguments}");
    }
    place
}

fn command(place: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracectl"));
    command.args(arguments.split(' ')).current_dir(place).env("TRACEPOINT_RUN_DIR", place.join("run"));
    command
}

#[test]
fn every_verb_fails_on_a_full_output_and_not_on_a_closed_one() {
    let place = place();
    for arguments in COMMANDS {
        let mut command = command(place.path(), arguments);
        let full = command.stdout(File::options().write(true).open("/dev/full").unwrap()).output().unwrap();
        let err = String::from_utf8_lossy(&full.stderr);
        assert_eq!(full.status.code(), Some(3), "{arguments}: {err}");
        assert!(err.contains("cannot write the output: No space left on device"), "{arguments}: {err}");

        // The reader closes the pipe before the first byte.
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let closed = command.stdout(writer).output().unwrap();
        let err = String::from_utf8_lossy(&closed.stderr);
        assert!(closed.status.success() && !err.contains("error: "), "{arguments}: {:?}: {err}", closed.status);
    }
}

#[test]
fn messages_that_cannot_be_written_change_no_exit_code() {
    let place = place();
    for (arguments, code) in [("view nothing", 3), ("verify trace", 0), ("look", 2)] {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let closed = command(place.path(), arguments).stdout(Stdio::null()).stderr(writer).status().unwrap();
        assert_eq!(closed.code(), Some(code), "{arguments}");
    }
}
