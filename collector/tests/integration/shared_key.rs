//! A collector with a shared key: a peer without it gets no session, and nothing is written for it.

use super::running::Running;
use super::sender::{ELSEWHERE, Sender, connect, is_closed, packet, session, stream};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use tempfile::TempDir;
use tracepoint_collector::{Addresses, Collector, Options};
use tracepoint_wire::relay::{Command, CreateSession, MINOR, Reply, ReturnCode, Version};
use tracepoint_wire::stream::{
    Capabilities, ErrorCode, FRAME_HEADER, FrameHeader, Handshake, Hello, SharedKey, Side, ToCollector, ToSender,
};

const KEY: &[u8] = b"a key that both sides have";
const NONCE: [u8; 32] = [3; 32];

fn with_key(place: &Path, with_stock: bool) -> Running {
    let allow_stock = with_stock.then(|| "127.0.0.1/32".parse().expect("a network")).into_iter().collect();
    Running::with(Options { key: SharedKey::new(KEY), allow_stock, ..Options::new(place) })
}

fn say(stream: &mut TcpStream, message: &ToCollector<'_>) {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    stream.write_all(&bytes).expect("the collector reads");
}

fn hello() -> ToCollector<'static> {
    ToCollector::Hello(Hello {
        version: 1,
        udp: false,
        key: [9; 16],
        trace: [1; 16],
        clock: [2; 16],
        nonce: NONCE,
        sync_interval: 100,
        mtu: 1400,
        resend_buffer: 0,
        host: "host",
        session: "shop",
        process: "till",
    })
}

/// The collector's next message: a nonce, the code of its welcome, or the code of an error.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Challenge([u8; 32]),
    Welcome([u8; 32]),
    Error(ErrorCode),
}

fn hear(stream: &mut TcpStream) -> Said {
    let mut header = [0; FRAME_HEADER];
    stream.read_exact(&mut header).expect("a frame");
    let FrameHeader { kind, size } = FrameHeader::decode(&header).expect("a header").expect("a good one");
    let mut payload = vec![0; size];
    stream.read_exact(&mut payload).expect("a frame");
    match ToSender::decode(kind, &payload).expect("a message") {
        ToSender::Challenge(nonce) => Said::Challenge(nonce),
        ToSender::Welcome(welcome) => Said::Welcome(welcome.code),
        ToSender::Error(code, _) => Said::Error(code),
        other => panic!("{other:?}"),
    }
}

/// Sends HELLO. Returns the connection and the collector's nonce.
fn challenged(addresses: &Addresses) -> (TcpStream, [u8; 32]) {
    let mut stream = connect(addresses.control);
    let mut bytes = Vec::new();
    Command::Version(Version { major: 2, minor: MINOR }).encode(MINOR, &mut bytes);
    Command::GetConfiguration { flags: Capabilities::new(false, false).flags() }.encode(MINOR, &mut bytes);
    stream.write_all(&bytes).expect("the collector reads");
    let mut reply = [0; 20];
    stream.read_exact(&mut reply).expect("two answers");
    let flags = u64::from_be_bytes(*reply.last_chunk().expect("eight bytes"));
    assert_eq!(Capabilities::of(flags), Some(Capabilities::new(true, true)), "it asks for a key");
    say(&mut stream, &hello());
    match hear(&mut stream) {
        Said::Challenge(nonce) => (stream, nonce),
        other => panic!("{other:?}"),
    }
}

#[test]
fn only_who_has_the_key_gets_a_session() {
    let place = TempDir::new_in("/dev/shm").expect("a directory");
    let mut collector = with_key(place.path(), false);
    let key = SharedKey::new(KEY).expect("a key");
    let other = SharedKey::new(b"a key that one side has").expect("a key");
    let handshake = |collector| Handshake { session: [9; 16], sender: NONCE, collector };
    let (mut first, nonce) = challenged(&collector.addresses);
    let right = key.code(Side::Sender, &handshake(nonce));
    // Another key, the code of the wrong side, the code of an earlier connection, no code, and a second HELLO.
    for number in 0..5 {
        let (mut stream, nonce) = challenged(&collector.addresses);
        let (message, error) = match number {
            0 => (ToCollector::Auth(other.code(Side::Sender, &handshake(nonce))), ErrorCode::Key),
            1 => (ToCollector::Auth(key.code(Side::Collector, &handshake(nonce))), ErrorCode::Key),
            2 => (ToCollector::Auth(right), ErrorCode::Key),
            3 => (ToCollector::GiveUp, ErrorCode::Protocol),
            _ => (hello(), ErrorCode::Protocol),
        };
        say(&mut stream, &message);
        assert_eq!(hear(&mut stream), Said::Error(error), "{number}");
        assert_eq!(stream.read(&mut [0; 1]).ok(), Some(0), "{number}: the connection ends");
    }
    // A stock sender.
    let mut stock = Sender::connect(&collector.addresses);
    stock.command(&Command::Version(Version { major: 2, minor: 13 })).expect("a version");
    let create = Command::CreateSession(CreateSession { host: "other".into(), ..session("name") });
    let refused = Reply::Session { id: 0, code: ReturnCode::Fatal, path: String::new() };
    assert_eq!(stock.command(&create).expect("a reply"), refused);
    assert_eq!(std::fs::read_dir(place.path()).expect("the output").count(), 0, "nothing is stored");
    // The first sender has the key, and so has the collector.
    say(&mut first, &ToCollector::Auth(right));
    assert_eq!(hear(&mut first), Said::Welcome(key.code(Side::Collector, &handshake(nonce))));
    collector.until(|report| report.sessions == 1);
    let (_, messages) = collector.end();
    assert!(messages.iter().any(|message| message.contains("asks for a shared key")), "{messages:?}");
    assert!(messages.iter().any(|message| message.contains("is not that of the collector")), "{messages:?}");
}

/// Any peer that can connect can send HELLO, which proves no key.
#[test]
fn senders_without_the_key_do_not_keep_others_out() {
    let place = TempDir::new_in("/dev/shm").expect("a directory");
    let key = SharedKey::new(KEY).expect("a key");
    // One address gets 16 control connections.
    let options = Options { key: Some(key.clone()), open_files: Some(256), ..Options::new(place.path()) };
    let collector = Running::with(options);
    let idle: Vec<_> = (0..20).map(|_| challenged(&collector.addresses)).collect();
    let (mut stream, nonce) = challenged(&collector.addresses);
    let handshake = Handshake { session: [9; 16], sender: NONCE, collector: nonce };
    say(&mut stream, &ToCollector::Auth(key.code(Side::Sender, &handshake)));
    assert_eq!(hear(&mut stream), Said::Welcome(key.code(Side::Collector, &handshake)));
    // A connection with a session is never closed for one without.
    drop((idle, (0..20).map(|_| challenged(&collector.addresses)).collect::<Vec<_>>()));
    say(&mut stream, &ToCollector::GiveUp);
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("it ends the session");
    let (counts, _) = collector.end();
    assert_eq!(counts.sessions, 1);
}

#[test]
fn stock_senders_are_taken_where_they_are_allowed() {
    let place = TempDir::new_in("/dev/shm").expect("a directory");
    let collector = with_key(place.path(), true);
    let mut taken = Sender::connect(&collector.addresses);
    assert_eq!(taken.open(session("stock")), "host/stock");
    let handle = taken.add(stream("c_0"));
    challenged(&collector.addresses);
    // From another address, neither a session nor packets of an existing one are accepted.
    let mut refused = Sender::connect_from(ELSEWHERE, &collector.addresses);
    refused.command(&Command::Version(Version { major: 2, minor: 13 })).expect("a version");
    let reply = refused.command(&Command::CreateSession(session("stock"))).expect("a reply");
    assert_eq!(reply, Reply::Session { id: 0, code: ReturnCode::Fatal, path: String::new() });
    let (bytes, index) = packet(handle, handle, 0, 4096);
    refused.data(handle, 0, &bytes).expect("the collector has not read it");
    assert!(is_closed(&mut refused.data));
    taken.data(handle, 0, &bytes).expect("the collector reads");
    taken.done(&Command::SendIndex(index));
    taken.done(&Command::CloseStream { handle, last: 0 });
    let (counts, messages) = collector.end();
    assert_eq!((counts.packets, counts.stored), (1, 1));
    assert!(messages.iter().any(|text| text.contains("`--allow-stock=127.0.0.2` takes it")), "{messages:?}");
}

#[test]
fn without_a_key_a_collector_is_for_this_machine() {
    let place = TempDir::new_in("/dev/shm").expect("a directory");
    let [any, local, mapped] =
        ["0.0.0.0:0", "127.0.0.1:0", "[::ffff:127.0.0.1]:0"].map(|it| it.parse().expect("an address"));
    let options = || Options { control: local, data: local, live: local, ..Options::new(place.path()) };
    let open =
        [Options { control: any, ..options() }, Options { data: any, ..options() }, Options { live: any, ..options() }];
    for open in open {
        let error = Collector::bind(open.clone()).expect_err("no key").to_string();
        assert!(error.starts_with("cannot listen without a shared key") && error.contains("--no-key"), "{error}");
        Collector::bind(Options { without_key: true, ..open.clone() }).expect("everybody is taken");
        Collector::bind(Options { key: SharedKey::new(KEY), ..open }).expect("a collector");
    }
    Collector::bind(Options { control: mapped, ..options() }).expect("a loopback address");
}
