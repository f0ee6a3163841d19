//! `tracectl serve` and `tracectl read`: a trace comes out as it went in.

use crate::{read, told};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use tracepoint_control::sinks::CtfSink;
use tracepoint_control::{Channel, Session};

tracepoint::define_trace! {
    provider = "ledger";

    /// Something was booked.
    booked(thread: u32, text: &str) { thread: u32 = thread, text: str = text }
}

/// Sessions see the whole process: one at a time.
static RECORDING: Mutex<()> = Mutex::new(());

fn record(path: &Path) {
    let _alone = RECORDING.lock().unwrap();
    let sink = CtfSink::create(path).unwrap();
    let session =
        Session::builder("ledger").events("ledger:*").channel(Channel::discard(8 << 20)).sink(sink).start().unwrap();
    thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || (0..1000).for_each(|n| tracepoint::trace!(booked(thread, &"x".repeat(n % 200)))));
        }
    });
    session.stop().unwrap();
}

/// Serves a trace; at which port.
fn serve(path: &Path, arguments: &[&str]) -> (Child, u16) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracectl"));
    command.arg("serve").arg(path).args(["--port", "0", "--json"]).args(arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let object: Value = serde_json::from_str(&line).unwrap();
    let port = object["address"].as_str().unwrap().rsplit(':').next().unwrap().parse().unwrap();
    (child, port)
}

/// Times and fields of all events; what their packets say differs, as packets are cut to the size of messages.
fn view(path: &Path) -> Vec<(Value, Value)> {
    let output = Command::new(env!("CARGO_BIN_EXE_tracectl")).args(["view", "--json"]).arg(path).output().unwrap();
    let (code, out, err) = told(&output);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let object = |line| serde_json::from_str::<Value>(line).unwrap();
    out.lines().map(object).map(|mut event| (event["time_ns"].take(), event["fields"].take())).collect()
}

#[test]
fn a_recorded_trace_comes_out_as_it_went_in() {
    let place = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| place.path().join(name));
    record(&from);
    let (server, port) = serve(&from, &[]);
    let (code, out, err) = told(&read(port, &["-o", to.to_str().unwrap()]).output().unwrap());
    assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
    assert_eq!(view(&from).len(), 3000);
    assert!(view(&from) == view(&to), "the same events");
    let verify = Command::new(env!("CARGO_BIN_EXE_tracectl")).args(["verify", "--failures"]).arg(&to).output().unwrap();
    let (code, out, err) = told(&verify);
    assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
    assert_eq!(server.wait_with_output().unwrap().status.code(), Some(0), "the server ends with its trace");
}

#[test]
fn both_layouts_have_the_same_lines() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("trace");
    record(&path);
    let [mut one_by_one, mut batches] = [&["--stock"][..], &[]].map(|arguments| {
        let (server, port) = serve(&path, &[]);
        let (code, out, err) = told(&read(port, arguments).output().unwrap());
        assert_eq!(code, Some(0), "{err}");
        server.wait_with_output().unwrap();
        out.lines().map(str::to_owned).collect::<Vec<_>>()
    });
    assert_eq!(one_by_one.len(), 3000 + 4);
    assert!(one_by_one.contains(&"Trace begins.".to_owned()));
    // The one is in the order of time, the other in that of packets.
    one_by_one.sort();
    batches.sort();
    assert!(one_by_one == batches, "{:?}, {:?}", one_by_one.first(), batches.first());
}
