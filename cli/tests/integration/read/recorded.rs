//! `tracectl serve` and `tracectl read` together: the received trace equals the served one.

use crate::read::{read, result_of};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use tracepoint_session::sinks::{CtfSink, DtSink, Sink};
use tracepoint_session::{Channel, Session};

tracepoint::define_trace! {
    provider = "ledger";

    /// Something was booked.
    booked(thread: u32, text: &str) { thread: u32 = thread, text: str = text }
}

/// Serialises the tests: a session records all events of the process.
static RECORDING: Mutex<()> = Mutex::new(());

fn record(path: &Path) {
    record_into(CtfSink::create(path).unwrap());
}

fn record_into(sink: impl Sink + 'static) {
    let _alone = RECORDING.lock().unwrap();
    let channel = Channel::discard(8 << 20).packets(512).spares(4);
    let session = Session::builder("ledger").events("ledger:*").channel(channel).sink(sink).start().unwrap();
    thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || (0..1000).for_each(|n| tracepoint::trace!(booked(thread, &"x".repeat(n % 200)))));
        }
    });
    session.stop().unwrap();
}

/// Serves a trace; returns the process and its port.
pub fn serve(path: &Path, arguments: &[&str]) -> (Child, u16) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracectl"));
    command.arg("serve").arg(path).args(["--port", "0", "--json"]).args(arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let object: Value = serde_json::from_str(&line).unwrap();
    let port = object["address"].as_str().unwrap().rsplit(':').next().unwrap().parse().unwrap();
    (child, port)
}

/// The events of a trace, and its losses.
#[derive(PartialEq, Eq)]
struct Seen {
    /// Times and fields of all events. Packets are not compared, because they are cut to the size of messages.
    events: Vec<(Value, Value)>,
    /// The number of lost events by stream.
    lost: Vec<(Value, Value)>,
}

fn view(path: &Path) -> Seen {
    let output = Command::new(env!("CARGO_BIN_EXE_tracectl")).args(["view", "--json"]).arg(path).output().unwrap();
    let (code, out, err) = result_of(&output);
    assert!(code == Some(0) && err.lines().all(|line| line.starts_with("note: ")), "{err}");
    let mut seen = Seen { events: Vec::new(), lost: Vec::new() };
    for line in out.lines() {
        let mut object: Value = serde_json::from_str(line).unwrap();
        match object["type"].as_str() {
            Some("loss") => seen.lost.push((object["stream"]["instance"].take(), object["events"].take())),
            _ => seen.events.push((object["time_ns"].take(), object["fields"].take())),
        }
    }
    seen
}

#[test]
fn a_received_trace_equals_the_served_one() {
    let place = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| place.path().join(name));
    record(&from);
    let (server, port) = serve(&from, &[]);
    let (code, out, err) = result_of(&read(port, &["-o", to.to_str().unwrap()]).output().unwrap());
    assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
    let recorded = view(&from);
    assert_eq!((recorded.events.len(), recorded.lost.len()), (3000, 0));
    assert!(recorded == view(&to), "the same events");
    verify(&to);
    assert_eq!(server.wait_with_output().unwrap().status.code(), Some(0), "the server ends with its trace");
}

#[test]
fn a_limit_takes_no_more_events_and_the_next_client_gets_the_others() {
    let place = tempfile::tempdir().unwrap();
    let from = place.path().join("from");
    record(&from);
    let (server, port) = serve(&from, &[]);
    let mut seen = Vec::new();
    for (limit, count) in [(&["--events-limit", "10"][..], 10), (&["--events-limit", "1000"], 1000), (&[], 1990)] {
        let (code, out, err) = result_of(&read(port, &[&["--json"], limit].concat()).output().unwrap());
        let objects = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let events: Vec<_> = objects.filter(|object| object["type"] == "event").collect();
        assert_eq!((code, events.len()), (Some(0), count), "{limit:?}: {err}");
        seen.extend(events.into_iter().map(|mut event| (event["time_ns"].take(), event["fields"].take())));
    }
    let order = |event: &(Value, Value)| (event.0.as_u64(), event.1["thread"].as_u64());
    seen.sort_by_key(order);
    let mut recorded = view(&from).events;
    recorded.sort_by_key(order);
    assert!(seen == recorded, "each event went to one of the clients");
    assert_eq!(server.wait_with_output().unwrap().status.code(), Some(0));
}

/// Checks that the account of the trace balances.
fn verify(path: &Path) {
    let verify =
        Command::new(env!("CARGO_BIN_EXE_tracectl")).args(["verify", "--failures"]).arg(path).output().unwrap();
    let (code, out, err) = result_of(&verify);
    assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
    assert!(!err.contains("no checksum"), "{err}");
}

#[test]
fn a_dt_file_is_served_like_a_directory() {
    let place = tempfile::tempdir().unwrap();
    let [from, to] = ["from.dt", "to"].map(|name| place.path().join(name));
    record_into(DtSink::create(&from, 8).unwrap());
    let (server, port) = serve(&from, &[]);
    let (code, out, err) = result_of(&read(port, &["-o", to.to_str().unwrap()]).output().unwrap());
    assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
    let recorded = view(&from);
    assert!(!recorded.events.is_empty() && !recorded.lost.is_empty());
    assert!(recorded == view(&to), "the same events, and the same ones overwritten");
    verify(&to);
    assert_eq!(server.wait_with_output().unwrap().status.code(), Some(0));

    let (server, port) = serve(&from, &[]);
    let (code, out, err) = result_of(&read(port, &["--legacy"]).output().unwrap());
    assert_eq!((code, out.lines().count()), (Some(0), recorded.events.len() + 4), "{err}");
    server.wait_with_output().unwrap();
}

#[test]
fn a_dt_file_that_is_cut_off_while_it_is_viewed_is_damaged() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("cut.dt");
    record_into(DtSink::create(&file, 512).unwrap());
    let whole = view(&file).events.len();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracectl"));
    command.args(["view", "--json"]).arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Most of the output is still unread after the first line.
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    let header: [u8; 8] = fs::read(&file).unwrap()[..8].try_into().unwrap();
    let slot = u64::from(u32::from_le_bytes(header[4..].try_into().unwrap()));
    fs::File::options().write(true).open(&file).unwrap().set_len(20 + 4 * slot).unwrap();
    let shown = out.lines().filter(|line| line.as_ref().unwrap().contains(r#""type":"event""#)).count();
    let (code, _, err) = result_of(&child.wait_with_output().unwrap());
    assert!(shown < whole && code == Some(1), "{shown} of {whole}, {code:?}: {err}");
    assert!(err.contains("it was cut off since it was opened") && err.contains("; not shown"), "{err}");
}

#[test]
fn a_damaged_slot_is_reported_and_the_others_are_served() {
    let place = tempfile::tempdir().unwrap();
    let [from, to] = ["from.dt", "to"].map(|name| place.path().join(name));
    record_into(DtSink::create(&from, 8).unwrap());
    let whole = view(&from).events.len();
    let mut bytes = fs::read(&from).unwrap();
    let slot = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
    bytes[20 + 2 * slot + 400] ^= 1;
    fs::write(&from, &bytes).unwrap();
    let (server, port) = serve(&from, &[]);
    let (code, _, err) = result_of(&read(port, &["-o", to.to_str().unwrap()]).output().unwrap());
    assert_eq!(code, Some(0), "{err}");
    let left = view(&to).events.len();
    assert!(0 < left && left < whole, "{left} events of {whole}");
    let (code, _, err) = result_of(&server.wait_with_output().unwrap());
    assert!(code == Some(1) && err.contains("slot 2: ") && err.contains("; not served"), "{err}");
}

#[test]
fn a_received_trace_becomes_a_dt_file() {
    let place = tempfile::tempdir().unwrap();
    let [from, to, newest] = ["from", "to.dt", "newest.dt"].map(|name| place.path().join(name));
    record(&from);
    for (file, slots) in [(&to, &[][..]), (&newest, &["--dt-slots", "40"])] {
        let (server, port) = serve(&from, &[]);
        let arguments = [&["-o", file.to_str().unwrap()], slots].concat();
        let (code, out, err) = result_of(&read(port, &arguments).output().unwrap());
        assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
        assert_eq!(err.contains("were left out, because the file has too few slots"), !slots.is_empty(), "{err}");
        server.wait_with_output().unwrap();
        verify(file);
    }
    let (recorded, all, newest) = (view(&from), view(&to), view(&newest));
    assert!(recorded == all, "the same events");
    let (kept, gone) =
        (newest.events.len(), newest.lost.iter().map(|(_, events)| events.as_u64().unwrap()).sum::<u64>());
    assert!(kept > 0 && gone > 0);
    assert_eq!(kept as u64 + gone, 3000);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 3, "nothing stays next to them");
}

#[test]
fn both_layouts_have_the_same_lines() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("trace");
    record(&path);
    let [mut one_by_one, mut batches] = [&["--legacy"][..], &[]].map(|arguments| {
        let (server, port) = serve(&path, &[]);
        let (code, out, err) = result_of(&read(port, arguments).output().unwrap());
        assert_eq!(code, Some(0), "{err}");
        server.wait_with_output().unwrap();
        out.lines().map(str::to_owned).collect::<Vec<_>>()
    });
    assert_eq!(one_by_one.len(), 3000 + 4);
    assert!(one_by_one.contains(&"Trace begins.".to_owned()));
    // The legacy layout is ordered by time, batches by packet.
    one_by_one.sort();
    batches.sort();
    assert!(one_by_one == batches, "{:?}, {:?}", one_by_one.first(), batches.first());
}
