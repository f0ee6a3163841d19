//! `kill -9` at any instruction: committed records are recovered, and the account balances.
//!
//! A child records at full rate from two threads, and from a signal handler a thousand times a second. After each event it writes its
//! progress to a page that the parent shares: the oracle. The parent kills the child at a random time, recovers its session, and compares:
//! each thread's events are present without a gap, up to the last one in the oracle, or one more.
//!
//! `TRACEPOINT_KILLS` sets the number of kills, `TRACEPOINT_SEED` their times; the default is for CI. With the feature `failpoints` the
//! page also contains the point of the core that each thread reached last; half of the kills wait for a packet switch, and the test checks
//! that enough of them hit one.
#![cfg(target_os = "linux")]

mod common;
#[path = "../../tests/support/seed.rs"]
mod seed;
#[path = "../../tests/support/skip.rs"]
mod skip;

#[cfg_attr(feature = "failpoints", path = "kill_at_random/switches.rs")]
#[cfg_attr(not(feature = "failpoints"), path = "kill_at_random/unknown.rs")]
mod switches;

use common::oracle::{SharedPage, Words, fired, numbers};
use common::{Outcome, memory_place, view};
use rustix::process::{Signal, getpid, kill_process};
use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use switches::Switches;
use tracepoint_reader::{recover, verify};
use tracepoint_session::sinks::{CtfSink, DtSink, TextSink};
use tracepoint_session::{Channel, Session};

tracepoint::define_trace! {
    provider = "kill";
    tick(thread: u64, n: u64) { thread: u64 = thread, n: u64 = n }
    signal(n: u64) { n: u64 = n }
}

const THREADS: usize = 2;
/// Slots of the dt file.
const SLOTS: u32 = 16 << 10;
/// Index of the handler's count in the shared page, after those of the threads.
const HANDLER: usize = THREADS;
/// Index of the points that were reached last, by stream.
#[cfg(feature = "failpoints")]
const WATCHED: usize = HANDLER + 1;

static ORACLE: OnceLock<&'static Words> = OnceLock::new();

extern "C" fn handle(_: i32) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed) + 1;
    trace_signal(n);
    if let Some(oracle) = ORACLE.get() {
        oracle[HANDLER].fetch_add(1, Ordering::Relaxed);
    }
}

/// Makes the process run `handle` a thousand times a second, on any thread.
fn interrupt_every_millisecond() {
    // SAFETY: the handler fires a tracepoint and counts, both of which are allowed there.
    unsafe { libc::signal(libc::SIGALRM, handle as extern "C" fn(i32) as usize) };
    thread::spawn(|| {
        let this = getpid();
        loop {
            thread::sleep(Duration::from_millis(1));
            kill_process(this, Signal::ALARM).expect("this process is there");
        }
    });
}

fn run(thread: usize) -> ! {
    let oracle = ORACLE.get().expect("mapped");
    let mut n = 0;
    loop {
        n += 1;
        trace_tick(thread as u64, n);
        oracle[thread].store(n, Ordering::Release);
    }
}

/// The child: does nothing, unless this test program was started as one.
#[test]
fn child() {
    let (Some(dir), Ok(mode)) = (env::var_os("KILL_DIR"), env::var("KILL_MODE")) else { return };
    let dir = PathBuf::from(dir);
    let words = ORACLE.get_or_init(|| SharedPage::open(&dir.join("oracle")).expect("the parent made it").leak());
    switches::tell(words);
    let builder = Session::builder("kill").events("kill:*").dir(dir.join("session"));
    let session = match mode.as_str() {
        // Small rings of small packets: one event in sixteen switches packets.
        "rings" => builder.channel(Channel::overwrite(64 << 10).packets(128)).sink(TextSink::new(std::io::sink())),
        "ctf" => builder
            .channel(Channel::discard(256 << 10).packets(64))
            .sink(CtfSink::create(dir.join("ctf")).expect("a new directory")),
        // More slots than it fills, unless it runs for longer than planned.
        "dt" => builder
            .channel(Channel::discard(256 << 10).packets(64))
            .sink(DtSink::create(dir.join("kept.dt"), SLOTS).expect("a new file")),
        other => panic!("no mode {other}"),
    };
    let _session = session.start().expect("starts");
    interrupt_every_millisecond();
    thread::spawn(|| run(1));
    run(0);
}

/// Starts a child and kills it about `life` after its first event, or, if `at_switch`, when it switches packets; returns its page.
fn kill(dir: &Path, mode: &str, life: Duration, at_switch: bool) -> SharedPage {
    let page = SharedPage::create(&dir.join("oracle")).expect("a new file");
    let words = page.words();
    let mut child = Command::new(env::current_exe().expect("this program"))
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env("KILL_DIR", dir)
        .env("KILL_MODE", mode)
        .stdout(Stdio::null())
        .spawn()
        .expect("starts");
    let deadline = Instant::now() + Duration::from_secs(60);
    while words[..THREADS].iter().any(|word| word.load(Ordering::Relaxed) == 0) {
        assert!(child.try_wait().expect("a child").is_none(), "the child ended by itself");
        assert!(Instant::now() < deadline, "the child does not come to its first event");
        thread::sleep(Duration::from_micros(200));
    }
    thread::sleep(life);
    if at_switch {
        switches::wait(words);
    }
    child.kill().expect("a child that runs");
    child.wait().expect("a child");
    page
}

/// Returns the number of packets that came from an output.
fn round(number: u64, mode: &str, life: Duration, switches: &mut Switches) -> Result<u64, Box<dyn std::error::Error>> {
    let place = memory_place();
    let page = kill(place.path(), mode, life, number.is_multiple_of(2));
    switches.add(page.words());
    let oracle: [u64; THREADS + 1] = std::array::from_fn(|word| page.words()[word].load(Ordering::Relaxed));
    let out = place.path().join("out");
    let recovered = recover(&place.path().join("session"), &out)?;
    assert!(recovered.is_complete(), "{recovered:?}");
    let [process] = &recovered.processes[..] else { panic!("one process: {recovered:?}") };
    assert_eq!(process.torn_places, 0, "{process:?}");
    let report = verify(&out)?;
    assert!(report.passed(), "{:#?} {process:?}", report.failures().collect::<Vec<_>>());

    let mut numbers = numbers(&out)?;
    let mut signals = numbers.remove(&("kill:signal".to_owned(), 0)).unwrap_or_default();
    signals.sort_unstable();
    assert!(signals.windows(2).all(|pair| pair[0] < pair[1]), "no signal is there twice");
    for (thread, known) in oracle[..THREADS].iter().enumerate() {
        let numbers = numbers.remove(&("kill:tick".to_owned(), thread as u64)).ok_or("a thread without events")?;
        let last = *numbers.last().ok_or("a thread without events")?;
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "thread {thread}: in order, none twice");
        if mode == "rings" {
            // The oldest are overwritten; the newest is the last committed one.
            assert!(last == *known || last == known + 1, "thread {thread}: {known} were committed, the last is {last}");
            let whole = numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]);
            let nested = process.lost.get("nested").copied().unwrap_or(0);
            assert!(whole, "thread {thread}: no gap ({nested} nested)");
        } else {
            assert!(last <= known + 1, "thread {thread}: nothing that was not fired");
        }
        // Unless it is full: a slot is empty while it is overwritten.
        if mode == "dt" && process.packets_from_outputs + 1 < u64::from(SLOTS) {
            let gone = process.lost.get("sink").copied().unwrap_or(0);
            assert_eq!(gone, 0, "thread {thread}: what is not in the ring any more is in the file: {process:?}");
        }
    }
    let known: u64 = oracle.iter().sum();
    let counted = fired(&out)?;
    // Each of the threads may be in an event that was counted, and additionally in an event of a handler.
    assert!((known..=known + 2 * THREADS as u64).contains(&counted), "{known} by the oracle, {counted} by the account");
    if number.is_multiple_of(10) {
        assert_eq!(view(&[&out]).lines.len() as u64, process.records);
    }
    Ok(process.packets_from_outputs)
}

#[test]
fn committed_records_are_recovered_after_a_random_kill() -> Outcome {
    let kills: u64 = match env::var("TRACEPOINT_KILLS") {
        Ok(kills) => kills.parse()?,
        Err(_) => 20,
    };
    // Zero would stay zero.
    let mut random = seed::seed() | 1;
    let mut switches = Switches::default();
    let mut from_outputs = BTreeMap::new();
    for number in 0..kills {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let (mode, longest) = match number % 6 {
            // The first round of the drain is after 10 ms.
            2 => ("ctf", 80_000),
            5 => ("dt", 80_000),
            _ => ("rings", 20_000),
        };
        let life = Duration::from_micros(random % longest);
        let kept = round(number, mode, life, &mut switches)
            .map_err(|error| format!("kill {number}, {mode}, {life:?}: {error}"))?;
        *from_outputs.entry(mode).or_insert(0) += kept;
    }
    for mode in ["ctf", "dt"] {
        assert!(kills < 20 || from_outputs[mode] > 0, "{mode}: {from_outputs:?}");
    }
    switches.check();
    Ok(())
}
