//! Fields of the types in real programs: values that may be absent, times, addresses, owned texts, derived enumerations, and the output of
//! `Display` and `Debug`. They are recorded, and read by babeltrace2, by our text and JSON, by filters and by statistics.

use crate::common::{place, view};
use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tracepoint_reader::internal::RecordSizes;
use tracepoint_reader::text::{Style, TextWriter};
use tracepoint_reader::{Event, Item, Trace, text};
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Channel, Session};
use tracepoint_session_spec::filter::Expression;
use tracepoint_session_spec::{Rule, TraceFilter, TraceStatistic};
use uuid::Uuid;

#[derive(tracepoint::TraceEnum, Clone, Copy)]
enum Mode {
    Idle,
    Run,
}

/// Not `Copy`, with its own numbers.
#[derive(tracepoint::TraceEnum)]
#[repr(i16)]
enum Status {
    Failed = -7,
    Done = 300,
}

/// The data of one event.
struct Sample {
    name: String,
    shared: Arc<str>,
    either: Cow<'static, str>,
    file: PathBuf,
    took: Duration,
    at: SystemTime,
    ip: IpAddr,
    peer: SocketAddr,
    mode: Mode,
    status: Status,
    error: std::num::ParseIntError,
    list: Vec<u8>,
}

struct Maybe {
    user: Option<u32>,
    port: Option<u16>,
    name: Option<String>,
    took: Option<Duration>,
    peer: Option<SocketAddr>,
    mode: Option<Mode>,
    file: Option<PathBuf>,
}

tracepoint::define_trace! {
    provider = "types";

    held(s: &Sample) {
        name: String = s.name,
        shared: Arc<str> = s.shared,
        either: Cow<'_, str> = s.either,
        file: PathBuf = &s.file,
        took: Duration = s.took,
        at: std::time::SystemTime = s.at,
        ip: IpAddr = s.ip,
        peer: SocketAddr = s.peer,
        mode: enum Mode = s.mode,
        status: enum Status = s.status,
        error: display = s.error,
        list: debug(16) = s.list,
    }

    may_be(s: &Maybe) {
        user: Option<u32> = s.user,
        port: Option<be u16> = s.port,
        name: Option<str> = s.name,
        took: Option<Duration> = s.took,
        peer: Option<SocketAddr> = s.peer,
        mode: Option<enum Mode> = s.mode,
        file: Option<path> = s.file,
        last: u8 = 9,
    }

    /// Fields that are arguments.
    given(
        name: &String, took: Duration, user: Option<u32>, peer: &SocketAddr, text: Option<&str>, file: &Path, id: Uuid,
    ) {
        name, took, user, peer, text, file, id
    }

    /// As many as are needed to make a filter's choice.
    chosen(n: u32, user: Option<u32>, name: Option<&str>) { n, user, name }
}

fn sample() -> Sample {
    Sample {
        name: "owned".into(),
        shared: "shared".into(),
        either: "either".into(),
        file: "/tmp/x".into(),
        took: Duration::from_micros(1500),
        at: SystemTime::UNIX_EPOCH - Duration::from_nanos(5),
        ip: Ipv6Addr::LOCALHOST.into(),
        peer: ([10, 0, 0, 1], 80).into(),
        mode: Mode::Run,
        status: Status::Failed,
        error: "x".parse::<u8>().expect_err("no number"),
        list: vec![1; 100],
    }
}

fn maybe(is_there: bool) -> Maybe {
    let there = is_there.then_some(());
    Maybe {
        user: there.map(|()| 7),
        port: there.map(|()| 443),
        name: there.map(|()| "me".into()),
        took: there.map(|()| Duration::from_secs(2)),
        peer: there.map(|()| ([10, 0, 0, 2], 22).into()),
        mode: there.map(|()| Mode::Idle),
        file: there.map(|()| "/f".into()),
    }
}

/// Records the events that `fire` fires under this rule.
fn recorded(directory: &Path, rule: Rule, fire: impl FnOnce()) -> Result<Vec<Event>, Box<dyn std::error::Error>> {
    let session = Session::builder("types")
        .events(rule)
        .channel(Channel::discard(1 << 20))
        .in_memory()
        .sink(CtfSink::create(directory)?)
        .start()?;
    fire();
    session.stop()?;
    let items = Trace::open(directory)?.items();
    Ok(items.filter_map(|item| if let Item::Event(event) = item { Some(event) } else { None }).collect())
}

fn fire_all() {
    tracepoint::trace!(held(&sample()));
    tracepoint::trace!(held(&Sample { status: Status::Done, mode: Mode::Idle, ..sample() }));
    tracepoint::trace!(may_be(&maybe(true)));
    tracepoint::trace!(may_be(&maybe(false)));
    let (name, peer) = ("own".to_owned(), ([1, 2, 3, 4], 5).into());
    let (took, id) = (Duration::from_nanos(3), Uuid::from_u128(0xa));
    tracepoint::trace!(given(&name, took, None, &peer, Some("text"), Path::new("/p"), id));
}

#[test]
fn every_reader_shows_them() -> Result<(), Box<dyn std::error::Error>> {
    own_process!();
    let place = place();
    let directory = place.path().join("trace");
    let events = recorded(&directory, Rule::new("types:*"), fire_all)?;

    // babeltrace2, without a warning.
    let viewed = view(&[&directory]);
    let held = "name = \"owned\", shared = \"shared\", either = \"either\", file = \"/tmp/x\", took = 1500000, at = -5, \
                ip = \"::1\", peer = \"10.0.0.1:80\", mode = ( \"Run\" : container = 1 ), status = ( \"Failed\" : container = -7 ), \
                error = \"invalid digit found in string\", list = \"[1, 1, 1, 1, …\" }";
    assert!(viewed.lines[0].ends_with(held), "{}", viewed.lines[0]);
    assert!(viewed.lines[1].contains("status = ( \"Done\" : container = 300 )"), "{}", viewed.lines[1]);
    let there = "_user_tag = ( \"some\" : container = 1 ), user = { 7 }, _port_tag = ( \"some\" : container = 1 ), port = { 443 }";
    assert!(viewed.lines[2].contains(there), "{}", viewed.lines[2]);
    assert!(
        viewed.lines[3].contains("_user_tag = ( \"none\" : container = 0 ), user = { { } }"),
        "{}",
        viewed.lines[3]
    );
    assert!(viewed.lines[3].ends_with("last = 9 }"), "{}", viewed.lines[3]);

    // Our text and JSON.
    let mut writer = TextWriter::new(Style::Compact.into());
    let mut out = Vec::new();
    let json = events.iter().map(|event| Ok(serde_json::to_value(event)?["fields"].clone()));
    let json: Vec<_> = json.collect::<Result<_, serde_json::Error>>()?;
    for event in &events {
        writer.write_item(&mut out, &Item::Event(event.clone()))?;
    }
    let lines = String::from_utf8(out)?;
    let mut lines = lines.lines();
    let mut line = || lines.next().and_then(|line| line.split_once("types:")).map(|(_, line)| line);
    let held = r#"held name="owned" shared="shared" either="either" file="/tmp/x" took=1.5ms at=-5 ip="::1" "#
        .to_owned()
        + r#"peer="10.0.0.1:80" mode=Run status=Failed error="invalid digit found in string" list="[1, 1, 1, 1, …""#;
    assert_eq!(line(), Some(&*held));
    line();
    let there = r#"may_be user=7 port=443 name="me" took=2s peer="10.0.0.2:22" mode=Idle file="/f" last=9"#;
    assert_eq!(line(), Some(there));
    assert_eq!(line(), Some("may_be user=none port=none name=none took=none peer=none mode=none file=none last=9"));
    let given = r#"given name="own" took=3ns user=none peer="1.2.3.4:5" text="text" file="/p" "#.to_owned()
        + r#"id="00000000-0000-0000-0000-00000000000a""#;
    assert_eq!(line(), Some(&*given));
    assert_eq!((&json[2]["user"], &json[3]["user"]), (&7.into(), &serde_json::Value::Null));
    assert_eq!(json[2]["name"], "me");
    let names = ["file", "last", "mode", "name", "peer", "port", "took", "user"];
    for event in &json[2..4] {
        assert_eq!(event.as_object().map(|fields| fields.keys().map(String::as_str).collect()), Some(names.to_vec()));
    }

    // Code that walks packets without decoding them.
    let trace = Trace::open(&directory)?;
    let (_, metadata) = trace.metadata().next().ok_or("no metadata")?;
    assert!(RecordSizes::of(metadata).is_some());
    let mut plain = Vec::new();
    text::write_event(&mut plain, &events[3]);
    assert!(String::from_utf8(plain)?.contains("user = { { } }"));
    Ok(())
}

/// An absent value differs from every value, like NaN.
#[test]
fn filters_and_statistics_know_absent_values() -> Result<(), Box<dyn std::error::Error>> {
    own_process!();
    let fire = || {
        let users = [None, Some(1), Some(2), None];
        let names = [None, Some("a"), None, Some("b")];
        for (n, (user, name)) in (0..).zip(users.into_iter().zip(names)) {
            tracepoint::trace!(chosen(n, user, name));
        }
    };
    let place = place();
    let all = place.path().join("all");
    let events = recorded(&all, Rule::new("types:chosen"), fire)?;
    for (at, (filter, expected)) in [
        ("user == 1", vec![1]),
        ("user != 1", vec![0, 2, 3]),
        ("user < 5", vec![1, 2]),
        ("!(user < 5)", vec![0, 3]),
        ("user", vec![1, 2]),
        ("user == user", vec![1, 2]),
        ("user & 2", vec![2]),
        ("name == \"*\"", vec![1, 3]),
        ("name != \"a\"", vec![0, 2, 3]),
        ("name == name", vec![1, 3]),
        ("user == 2 || n == 3", vec![2, 3]),
    ]
    .into_iter()
    .enumerate()
    {
        let directory = place.path().join(at.to_string());
        let number = |event: &Event| event.fields.as_ref().and_then(|fields| fields.get("n")?.as_u64());
        let while_recording = recorded(&directory, Rule::new("types:chosen").filter(filter), fire)?;
        let numbers: Vec<_> = while_recording.iter().filter_map(number).collect();
        assert_eq!(numbers, expected, "while it is recorded: {filter}");
        let mut behind = TraceFilter::new(&[])?.condition(Expression::parse(filter)?);
        let numbers: Vec<_> = events.iter().filter(|event| behind.accepts(*event)).filter_map(number).collect();
        assert_eq!(numbers, expected, "of what was recorded: {filter}");
    }
    let trace = Trace::open(&all)?;
    let mut users =
        TraceStatistic::new("hist(user)".parse()?, trace.metadata().map(|(_, metadata)| metadata), |_| true)?;
    for event in &events {
        users.observe(event);
    }
    assert_eq!(users.snapshot().unusable, 2, "two of four have no user");
    Ok(())
}
