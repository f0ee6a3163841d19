//! `tracectl serve`, read by a plain client.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Channel, Session};
use tracepoint_wire::udp::{Accept, Ack, FromServer, MarkKind, ToClient, ToServer};

tracepoint::define_trace! {
    provider = "kiosk";

    /// A customer paid.
    #[level(Info)]
    paid(cents: u64, customer: &str) { cents: u64 = cents, customer: str = customer }
}

/// A trace of 1000 events. Only one test records at a time: a session records all events of the process.
fn trace() -> (TempDir, PathBuf) {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = ALONE.lock().unwrap();
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("trace");
    let sink = CtfSink::create(&directory).unwrap();
    let session = Session::builder("shop")
        .events("kiosk:*")
        .channel(Channel::discard(2 << 20).packets(256))
        .sink(sink)
        .start()
        .unwrap();
    (0..1000).for_each(|n| tracepoint::trace!(paid(n, "Ada")));
    session.stop().unwrap();
    (place, directory)
}

fn tracectl(path: &Path, options: &[&str]) -> Command {
    let mut command = bare(options);
    command.arg(path);
    command
}

/// A server without a recorded trace.
fn bare(options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracectl"));
    command.arg("serve").args(options);
    command
}

/// A server, and the JSON that it writes.
struct Server {
    child: Child,
    out: BufReader<ChildStdout>,
    address: SocketAddr,
}

fn serve(path: &Path, options: &[&str]) -> Server {
    started(&mut tracectl(path, options))
}

/// Starts a server on a free port.
fn started(server: &mut Command) -> Server {
    let mut child = server.args(["--port", "0", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let listening: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(listening["type"], "listening");
    let address = listening["address"].as_str().unwrap().parse().unwrap();
    Server { child, out, address }
}

impl Server {
    fn interrupt(&self) {
        assert!(Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap().success());
    }

    /// Its exit code and the object that it wrote at the end.
    fn end(mut self) -> (Option<i32>, serde_json::Value) {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), serde_json::from_str(&rest).unwrap())
    }
}

/// A client that sends START.
fn client(server: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut start = Vec::new();
    ToServer::Start.encode(&mut start);
    socket.send(&start).unwrap();
    socket
}

/// The marks and the texts of the events, up to the end of the session.
fn read(socket: &UdpSocket, until: MarkKind) -> (Vec<MarkKind>, Vec<String>) {
    let (marks, events) = read_bytes(socket, until);
    (marks, events.into_iter().map(|event| String::from_utf8(event).unwrap()).collect())
}

/// The marks, and the bytes of the events, up to this mark.
fn read_bytes(socket: &UdpSocket, until: MarkKind) -> (Vec<MarkKind>, Vec<Vec<u8>>) {
    let (mut marks, mut events) = (Vec::new(), Vec::new());
    let mut buffer = [0; 2000];
    while marks.last() != Some(&until) {
        let size = socket.recv(&mut buffer).unwrap();
        match FromServer::decode(&buffer[..size]).unwrap().message {
            ToClient::Mark(mark) => marks.push(mark.kind),
            ToClient::Packet(packet) => events.push(packet.content.to_vec()),
            other => panic!("{other:?} to a client of old"),
        }
    }
    (marks, events)
}

#[test]
fn a_trace_is_read_once_and_then_the_server_ends() {
    let (_place, directory) = trace();
    // Slow enough for the socket's buffer, even on a busy machine.
    let server = serve(&directory, &["--rate", "100K"]);
    let (marks, events) = read(&client(server.address), MarkKind::SessionEnd);
    let all = [MarkKind::SessionBegin, MarkKind::TraceBegin, MarkKind::TraceEnd, MarkKind::SessionEnd];
    assert_eq!(marks, all);
    let expected: Vec<_> = (0..1000).map(|n| format!("kiosk:paid: {{ cents = {n}, customer = \"Ada\" }}")).collect();
    assert!(events == expected, "{} events, the last one {:?}", events.len(), events.last());
    let (code, report) = server.end();
    assert_eq!(code, Some(0));
    assert_eq!(
        (&report["type"], &report["sessions"], &report["legacy_events"]),
        (&"served".into(), &1.into(), &1000.into())
    );
    assert_eq!((&report["lost"], &report["messages"]), (&0.into(), &1004.into()));
}

/// Events that a killed client did not acknowledge count as sent and unacknowledged, and not as lost.
#[test]
fn events_of_a_killed_client_are_counted() {
    let (_place, directory) = trace();
    let server = serve(&directory, &[]);
    let client = client(server.address);
    let mut buffer = [0; 2000];
    let mut next = |answer: &dyn Fn(&FromServer<'_>) -> Option<ToServer>| loop {
        let size = client.recv(&mut buffer).unwrap();
        if let Some(message) = answer(&FromServer::decode(&buffer[..size]).unwrap()) {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            client.send(&bytes).unwrap();
            return;
        }
    };
    next(&|from| match from.message {
        ToClient::Mark(mark) => Some(ToServer::Accept(Accept::new(mark.offer.unwrap()))),
        _ => None,
    });
    let acknowledge = |from: &FromServer<'_>, metadata| {
        let session = from.session.unwrap();
        Some(ToServer::Ack(Ack { session, metadata, account: 0, events: 0, seq: from.seq, ended: false }))
    };
    next(&|from| matches!(from.message, ToClient::Welcome(_)).then(|| acknowledge(from, 0)).flatten());
    next(&|from| match &from.message {
        ToClient::Text(text) if text.offset + text.bytes.len() as u32 == text.total => acknowledge(from, text.total),
        _ => None,
    });
    // The client acknowledges none of its events.
    let mut events = 0;
    while events < 1000 {
        let size = client.recv(&mut buffer).unwrap();
        if let ToClient::Batch(batch) = FromServer::decode(&buffer[..size]).unwrap().message {
            events = batch.events_before + u64::from(batch.events);
        }
    }
    drop(client);
    server.interrupt();
    let (code, report) = server.end();
    assert_eq!((&report["batch_events"], &report["unacknowledged"]), (&1000.into(), &1000.into()));
    assert_eq!((code, &report["lost"]), (Some(1), &0.into()));
}

#[test]
fn events_from_a_socket_are_served_until_an_interrupt() {
    let (place, directory) = trace();
    let outside = place.path().join("events");
    let server = serve(&directory, &["--rate", "100K", "--events-from", outside.to_str().unwrap()]);
    let client = client(server.address);
    let (_, events) = read(&client, MarkKind::TraceBegin);
    assert_eq!(events.len(), 0);
    UnixDatagram::unbound().unwrap().send_to(b"hello", &outside).unwrap();
    let mut seen = Vec::new();
    let mut buffer = [0; 2000];
    while seen.len() < 1001 {
        let size = client.recv(&mut buffer).unwrap();
        match FromServer::decode(&buffer[..size]).unwrap().message {
            ToClient::Packet(packet) => seen.push(String::from_utf8(packet.content.to_vec()).unwrap()),
            other => panic!("{other:?} among the events"),
        }
    }
    assert!(seen.iter().any(|event| event == "hello"));
    server.interrupt();
    let (marks, events) = read(&client, MarkKind::SessionEnd);
    assert_eq!((marks, events.len()), (vec![MarkKind::TraceEnd, MarkKind::SessionEnd], 0));
    let (code, report) = server.end();
    assert_eq!((code, &report["legacy_events"]), (Some(0), &1001.into()));
}

#[test]
fn events_are_served_without_a_recorded_trace() {
    let place = tempfile::tempdir().unwrap();
    let [file, fifo, socket] = ["file", "fifo", "socket"].map(|name| place.path().join(name));
    std::fs::write(&file, b"one\n\xff\x00two\nlast").unwrap();
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let all = [MarkKind::SessionBegin, MarkKind::TraceBegin, MarkKind::TraceEnd, MarkKind::SessionEnd];

    // A file ends the trace, in both layouts.
    let server = started(&mut bare(&["--no-batches", "--events-from", file.to_str().unwrap()]));
    let client = client(server.address);
    assert_eq!(
        read_bytes(&client, MarkKind::SessionEnd),
        (all.to_vec(), vec![b"one".to_vec(), b"\xff\0two".to_vec(), b"last".to_vec()])
    );
    assert_eq!(server.end().0, Some(0));
    let server = started(&mut bare(&["--events-from", file.to_str().unwrap()]));
    let out = place.path().join("out");
    let verb = |verb: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tracectl"));
        command.args(verb).output().unwrap()
    };
    let port = server.address.port().to_string();
    let read = verb(&["read", "--server-port", &port, "-o", out.to_str().unwrap()]);
    assert_eq!(read.status.code(), Some(0), "{read:?}");
    assert_eq!(server.end().0, Some(0));
    let verify = verb(&["verify", "--failures", out.to_str().unwrap()]);
    assert_eq!((verify.status.code(), verify.stdout.as_slice()), (Some(0), &b""[..]), "{verify:?}");
    let view = String::from_utf8(verb(&["view", out.to_str().unwrap()]).stdout).unwrap();
    assert_eq!(view.matches("outside:message").count(), 3, "{view}");
    // A UTF-8 message is shown as text in both layouts.
    for layout in [&[][..], &["--legacy"]] {
        for format in [&[][..], &["--json"]] {
            let server = started(&mut bare(&["--events-from", file.to_str().unwrap()]));
            let port = server.address.port().to_string();
            let read = verb(&[&["read", "--server-port", &port], layout, format].concat());
            assert_eq!((read.status.code(), server.end().0), (Some(0), Some(0)), "{read:?}");
            let text = String::from_utf8(read.stdout).unwrap();
            let shows = |message: &str| {
                let shown =
                    [format!("content={message}\n"), format!("data = \"{message}\""), format!(":\"{message}\"")];
                shown.iter().any(|shown| text.contains(shown))
            };
            assert!(shows("one") && shows("last"), "{layout:?} {format:?}: {text}");
        }
    }

    // A FIFO and a socket are served until an interrupt.
    for source in [&fifo, &socket] {
        let server = started(&mut bare(&["--no-batches", "--events-from", source.to_str().unwrap()]));
        let client = self::client(server.address);
        assert_eq!(read_bytes(&client, MarkKind::TraceBegin).1, Vec::<Vec<u8>>::new());
        if source == &fifo {
            std::fs::write(source, "\u{1}line\n").unwrap();
        } else {
            UnixDatagram::unbound().unwrap().send_to(b"\x01line", source).unwrap();
        }
        let mut buffer = [0; 2000];
        let size = client.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[66..size], b"\x01line");
        server.interrupt();
        assert_eq!(read_bytes(&client, MarkKind::SessionEnd), (all[2..].to_vec(), Vec::new()));
        assert_eq!(server.end().0, Some(0));
    }
    let neither = bare(&[]).output().unwrap();
    assert_eq!(neither.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&neither.stderr).contains("<PATH>"), "{neither:?}");
}

#[test]
fn an_interrupt_ends_the_session_with_a_slow_client_and_so_does_a_second_one() {
    let (_place, directory) = trace();
    for interrupts in [1, 2] {
        // Ten events per second.
        let server = serve(&directory, &["--pace", "10", "--no-batches"]);
        let client = client(server.address);
        read(&client, MarkKind::TraceBegin);
        // Wait for the first event: a server interrupted before it has anything to send also ends the trace.
        client.peek(&mut [0; 2048]).unwrap();
        for _ in 0..interrupts {
            server.interrupt();
            std::thread::sleep(Duration::from_millis(200));
        }
        let (marks, events) = read(&client, MarkKind::SessionEnd);
        assert_eq!(marks, [MarkKind::SessionEnd]);
        // The events of one second, not of ten.
        assert!(events.len() < 60, "{} events", events.len());
        let (code, report) = server.end();
        assert_eq!(code, Some(1));
        let [sent, lost] = ["legacy_events", "lost"].map(|key| report[key].as_u64().unwrap());
        assert_eq!(sent + lost, 1000);
    }
}

#[test]
fn a_malformed_port_in_the_environment_is_an_error() {
    let (_place, directory) = trace();
    for wrong in ["none", "", "70000"] {
        // Without `--allow`, this address would be refused.
        let mut server = tracectl(&directory, &["--address", "192.0.2.1"]);
        let error = refused(&server.env("TRACE_SERVER_PORT", wrong).output().unwrap());
        let mend = format!("the environment variable TRACE_SERVER_PORT is `{wrong}`; set it to a port from 0 to 65535");
        assert!(error.contains(&mend), "{error}");
    }
}

#[test]
fn events_not_read_before_an_interrupt_are_counted() {
    let (_place, directory) = trace();
    // Space for one of several packets.
    let server = serve(&directory, &["--limit", "1000"]);
    server.interrupt();
    let (code, report) = server.end();
    assert_eq!((&report["legacy_events"], &report["lost"]), (&0.into(), &1000.into()));
    assert_eq!(code, Some(1));
}

fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(3));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn failures_are_reported_with_a_hint() {
    let (place, directory) = trace();
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let error = refused(&tracectl(&directory, &["--port", &port]).output().unwrap());
    assert!(error.contains("another program listens there; choose another port"), "{error}");
    let error = refused(&tracectl(&directory, &["--address", "no.such.host.invalid"]).output().unwrap());
    assert!(error.contains("cannot find the address `no.such.host.invalid`; give an IP address"), "{error}");
    let error = refused(&tracectl(&directory, &["--address", "192.0.2.1"]).output().unwrap());
    assert!(error.contains("choose an address of this machine"), "{error}");
    let error = refused(&tracectl(place.path().join("none").as_path(), &[]).output().unwrap());
    assert!(error.contains("there is no such directory"), "{error}");
}

#[test]
fn damaged_metadata_is_told_and_served() {
    let (_place, path) = trace();
    let metadata = path.join("metadata");
    let text = std::fs::read_to_string(&metadata).unwrap();
    std::fs::write(&metadata, text.replacen("kiosk:paid", "kiosk:qaid", 1)).unwrap();
    let mut server = started(tracectl(&path, &[]).stderr(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(server.child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let begin = format!("error: {}: byte 0: the metadata is damaged: its bytes have changed", path.display());
    assert!(line.starts_with(&begin) && line.ends_with("; it is served as it is\n"), "{line}");
}
