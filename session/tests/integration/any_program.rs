//! Arbitrary programs: threads that start early and late and fire events of any type and size, through rings and packets of any size,
//! drained and flushed at any time, stopped at the end or before. The account balances, and the decoded events were fired, in that order.

use crate::common::{Outcome, memory_place};
use crate::describe::describe;
use crate::seed;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tracepoint::marker::{Subscriber, Subscription};
use tracepoint_reader::{Event, Item, StructValue, Trace, Value, verify};
use tracepoint_ring::channel::{AnonymousMemory, OpenChannel};
use tracepoint_session::sinks::account::Account;
use tracepoint_session::sinks::{ClockInfo, CtfSink, Drain, ProcessInfo, TraceInfo};
use tracepoint_session::{Channel, Session};

tracepoint::define_trace! {
    provider = "any";
    numbers(thread: u64, n: u64) {
        thread: u64 = thread, n: u64 = n,
        a: u8 = n as u8, b: i64 = -n.cast_signed(), c: be u32 = n as u32, d: bool = n % 2 == 1, e: f64 = f64::from(n as u32),
        f: enum u8 { Even = 0, Odd = 1 } = (n % 2) as u8,
    }
    text(thread: u64, n: u64, words: &str) { thread: u64 = thread, n: u64 = n, words: str = words }
    bytes(thread: u64, n: u64, data: &[u8]) { thread: u64 = thread, n: u64 = n, fixed: [u8; 3] = [n as u8; 3], data: [u8] = data }
}

/// An event: its type, and the size of its payload.
#[derive(Clone, Debug)]
enum Fire {
    Numbers,
    Text(usize),
    Bytes(usize),
}

/// The actions of the draining thread while threads run.
#[derive(Clone, Copy, Debug)]
enum Turn {
    Drain,
    Flush,
    Wait,
}

#[derive(Clone, Debug)]
struct Program {
    channel: Channel,
    /// Groups of threads, one after the other; the threads of a group run at the same time.
    waves: Vec<Vec<Vec<Fire>>>,
    /// The drain's actions if the session is drained by the test; `None` if it is one with its own thread, and its rings are files.
    by_hand: Option<Vec<Turn>>,
    /// True if it ends while threads of the last group still run.
    ends_early: bool,
}

fn channel() -> impl Strategy<Value = Channel> {
    (any::<bool>(), 64..520usize, 2..9usize, 1..5usize, 1..8usize).prop_map(
        |(overwrite, eighths, packets, spares, more)| {
            let size = eighths * 8 * packets;
            let channel = if overwrite { Channel::overwrite(size) } else { Channel::discard(size) };
            channel.packets(packets).spares(spares).max_rings(spares + more)
        },
    )
}

fn fire() -> impl Strategy<Value = Fire> {
    prop_oneof![
        4 => Just(Fire::Numbers),
        3 => (0..200usize).prop_map(Fire::Text),
        3 => (0..200usize).prop_map(Fire::Bytes),
        1 => (200..5000usize).prop_map(Fire::Bytes),
    ]
}

fn program() -> impl Strategy<Value = Program> {
    let turn = prop_oneof![Just(Turn::Drain), Just(Turn::Flush), Just(Turn::Wait)];
    let thread = prop::collection::vec(fire(), 0..150);
    let wave = prop::collection::vec(thread, 0..5);
    (channel(), prop::collection::vec(wave, 1..4), prop::option::of(prop::collection::vec(turn, 0..30)), any::<bool>())
        .prop_map(|(channel, waves, by_hand, ends_early)| Program { channel, waves, by_hand, ends_early })
}

fn words(n: u64, len: usize) -> String {
    char::from(b'a' + (n % 26) as u8).to_string().repeat(len)
}

fn run(thread: u64, events: &[Fire]) {
    for (n, event) in (0..).zip(events) {
        match event {
            Fire::Numbers => tracepoint::trace!(numbers(thread, n)),
            Fire::Text(len) => tracepoint::trace!(text(thread, n, &words(n, *len))),
            Fire::Bytes(len) => tracepoint::trace!(bytes(thread, n, &vec![n as u8; *len])),
        }
    }
}

/// Runs the threads; calls `beside` while those of a group run, and `end` at the end.
fn run_all(program: &Program, mut beside: impl FnMut(), end: impl FnOnce() -> Outcome) -> Outcome {
    let mut end = Some(end);
    let mut ended = Ok(());
    let mut number = 0;
    for (index, wave) in program.waves.iter().enumerate() {
        thread::scope(|scope| {
            for events in wave {
                let thread = number;
                number += 1;
                scope.spawn(move || run(thread, events));
            }
            beside();
            if program.ends_early && index + 1 == program.waves.len() {
                ended = end.take().map_or(Ok(()), |end| end());
            }
        });
    }
    ended.and_then(|()| end.take().map_or(Ok(()), |end| end()))
}

fn in_a_session(program: &Program, place: &Path, trace: &Path) -> Outcome {
    let session = Session::builder("any").events("any:*").channel(program.channel.clone()).dir(place.join("session"));
    let session = session.sink(CtfSink::create(trace)?).start()?;
    run_all(program, || {}, || Ok(session.stop().map(drop)?))
}

fn drained_by_hand(program: &Program, turns: &[Turn], trace: &Path) -> Outcome {
    let uuid = *b"0123456789abcdef";
    let mut markers: Vec<_> = tracepoint::runtime::markers().filter(|marker| marker.provider() == "any").collect();
    markers.sort_by_key(|marker| marker.full_name());
    let memory = Box::new(AnonymousMemory);
    let channel = OpenChannel::open(program.channel.clone(), uuid, 0, markers.len(), memory)?;
    let process = ProcessInfo {
        pid: std::process::id(),
        name: "any".to_owned(),
        executable: "/bin/any".to_owned(),
        hostname: "host".to_owned(),
        ..ProcessInfo::default()
    };
    let trace_info = TraceInfo { uuid, name: "any".to_owned(), clock: ClockInfo::default(), process };
    let mut drain = Drain::new(trace_info, vec![Arc::clone(&channel)]);
    drain.add_sink(Box::new(CtfSink::create(trace)?))?;
    let mut subscriptions = Vec::new();
    for marker in markers {
        let id = channel.add_event()?;
        drain.describe(&[describe(marker, 0, id.get())])?;
        subscriptions.push(marker.subscribe(Subscriber::record(Arc::clone(&channel), id))?);
    }
    let drain = RefCell::new(Some(drain));
    let beside = || {
        for turn in turns {
            match turn {
                Turn::Drain => drop(drain.borrow_mut().as_mut().map(Drain::drain)),
                Turn::Flush => drop(drain.borrow_mut().as_mut().map(|drain| drain.flush(Duration::ZERO))),
                Turn::Wait => thread::sleep(Duration::from_micros(100)),
            }
        }
    };
    run_all(program, beside, || {
        Subscription::end_all(subscriptions);
        let reports = drain.take().map(Drain::finish).unwrap_or_default();
        channel.close();
        reports.into_iter().find_map(|report| report.error).map_or(Ok(()), |error| Err(error.into()))
    })
}

/// Returns the number of an event, if its fields are those that its thread fired with that number.
fn check_event(event: &Event, fields: &StructValue, fired: &[&Vec<Fire>]) -> Option<(u64, u64)> {
    let number = |name: &str| fields.get(name).and_then(Value::as_u64);
    let (thread, n) = (number("thread")?, number("n")?);
    let right = match (event.name(), fired.get(thread as usize)?.get(n as usize)?) {
        ("any:numbers", Fire::Numbers) => {
            let signed = fields.get("b").and_then(Value::as_i64)?;
            let double = match fields.get("e")? {
                Value::F64(double) => *double,
                _ => return None,
            };
            (number("a")?, number("c")?, number("d")?, number("f")?) == (n & 0xFF, n, n % 2, n % 2)
                && signed == -n.cast_signed()
                && double.to_bits() == f64::from(n as u32).to_bits()
        }
        ("any:text", Fire::Text(len)) => fields.get("words")?.as_bytes()? == words(n, *len).as_bytes(),
        ("any:bytes", Fire::Bytes(len)) => {
            fields.get("data")?.as_bytes()? == vec![n as u8; *len] && fields.get("fixed")?.as_bytes()? == [n as u8; 3]
        }
        _ => false,
    };
    right.then_some((thread, n))
}

fn check(program: &Program, trace: &Path) -> Outcome {
    let report = verify(trace)?;
    let failures: Vec<_> = report.failures().collect();
    assert!(failures.is_empty(), "{failures:#?}");
    let fired: Vec<_> = program.waves.iter().flatten().collect();
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    for item in Trace::open(trace)?.items() {
        match item {
            Item::Event(event) => {
                let fields = event.fields.as_ref().ok_or("an event without fields")?;
                let (thread, n) = check_event(&event, fields, &fired).ok_or_else(|| format!("{event:?}"))?;
                let before = last.insert(thread, n);
                assert!(before.is_none_or(|before| n > before), "thread {thread}: {n} after {before:?}");
            }
            Item::Loss(_) => {}
            other => return Err(format!("{other:?}").into()),
        }
    }
    let account = Account::open(trace)?;
    let counted: u64 = account.channels[0].events.iter().map(|event| event.fired).sum();
    let all: u64 = fired.iter().map(|events| events.len() as u64).sum();
    assert!(counted == all || program.ends_early && counted < all, "{counted} of {all} fired");
    Ok(())
}

fn cases() -> u32 {
    std::env::var("TRACEPOINT_PROGRAMS").map_or(24, |cases| cases.parse().expect("a number"))
}

#[test]
fn any_program_is_recorded_in_order_and_accounted_for() {
    own_process!();
    let config = ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed::seed()),
        ..ProptestConfig::default()
    };
    proptest!(config, |(program in program())| {
        let place = memory_place();
        let trace = place.path().join("trace");
        let recorded = match &program.by_hand {
            Some(turns) => drained_by_hand(&program, turns, &trace),
            None => in_a_session(&program, place.path(), &trace),
        };
        recorded.and_then(|()| check(&program, &trace)).map_err(|error| TestCaseError::fail(error.to_string()))?;
    });
}
