//! `record --waits` and `why`: a program whose waits have known causes, and which measures them itself.

use super::super::{Outcome, Place, TRACED};
use super::{as_nobody, can_record, events};
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;
use std::env;
use std::fs;
use std::io::{Read, Write};
use std::process::Command;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, Builder, sleep};
use std::time::{Duration, Instant};
use tracepoint_session::Agent;

tracepoint::define_trace! {
    provider = "waits";

    /// An operation that waits for one known cause.
    span operation(cause: &str) { cause }
    /// How long it took, as the program measured it, and how long it waited for a processor meanwhile, as the kernel measured it.
    measured(cause: &str, nanoseconds: u64, delay: u64) { cause, nanoseconds, delay }
}

pub(super) const HOLDER: &str = "lock-holder";
const WRITER: &str = "pipe-writer";

/// Returns the processor time of this thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::from_secs(time.tv_sec.cast_unsigned()) + Duration::from_nanos(time.tv_nsec.cast_unsigned())
}

/// Returns how long this thread has waited for a processor, in nanoseconds.
fn delay() -> u64 {
    let times = fs::read_to_string("/proc/thread-self/schedstat").expect("times of the scheduler");
    times.split(' ').nth(1).and_then(|time| time.parse().ok()).expect("a time")
}

/// Performs an operation in a span, and fires how long it took.
fn operation(cause: &'static str, now: impl Fn() -> Duration, perform: impl FnOnce()) {
    let span = tracepoint::span!(operation(cause));
    let (began, delayed) = (now(), delay());
    perform();
    let (took, delay) = (now().saturating_sub(began), delay() - delayed);
    drop(span);
    tracepoint::trace!(measured(cause, took.as_nanos() as u64, delay));
}

fn locked(lock: &Arc<Mutex<()>>) {
    let (lock, (locked, wait)) = (Arc::clone(lock), mpsc::channel());
    let hold = move || {
        let _guard = lock.lock();
        let _ = locked.send(());
        sleep(Duration::from_millis(30));
    };
    Builder::new().name(HOLDER.to_owned()).spawn(hold).expect("a thread");
    let _ = wait.recv();
}

/// In a traced process, waits for known causes until the input ends, and returns true.
pub(super) fn is_traced() -> bool {
    if env::var_os(TRACED).is_none() {
        return false;
    }
    let _agent = Agent::start().expect("an agent");
    println!("ready");
    let origin = Instant::now();
    let elapsed = move || origin.elapsed();
    thread::spawn(move || {
        let lock = Arc::new(Mutex::new(()));
        loop {
            locked(&lock);
            operation("lock", elapsed, || drop(lock.lock()));
            operation("sleep", elapsed, || sleep(Duration::from_millis(20)));
            let (mut reader, mut writer) = std::io::pipe().expect("a pipe");
            let write = move || {
                sleep(Duration::from_millis(25));
                let _ = writer.write_all(b"x");
            };
            Builder::new().name(WRITER.to_owned()).spawn(write).expect("a thread");
            operation("pipe", elapsed, || drop(reader.read(&mut [0])));
            operation("spin", processor_time, || {
                let until = processor_time() + Duration::from_millis(15);
                while processor_time() < until {}
            });
        }
    });
    let _ = std::io::stdin().read(&mut [0]);
    true
}

/// A span in the output of `why --json`.
struct Divided(Value);

impl Divided {
    fn end(&self) -> Option<u64> {
        Some(self.0["begin_ns"].as_u64()? + self.0["nanoseconds"].as_u64()?)
    }

    fn of(&self, cause: &str) -> u64 {
        self.0["division"][cause].as_u64().unwrap_or_default()
    }

    /// Its longest wait of this cause.
    fn wait(&self, cause: &str) -> &Value {
        let waits = self.0["waits"].as_array().map(Vec::as_slice).unwrap_or_default();
        waits.iter().find(|wait| wait["cause"] == cause).unwrap_or(&Value::Null)
    }
}

/// Compares each span whose thread was recorded all the time with what the program measured. `causes` has, for each operation, the cause of its time.
/// Returns the spans of each operation.
fn compare(place: &Place, causes: [(&str, &str); 4]) -> Result<[Vec<Divided>; 4], Box<dyn std::error::Error>> {
    let reasons: Value = serde_json::from_str(&place.tracectl(&["why", "--json", "-n", "10000", "out"]).1)?;
    let mut spans: Vec<_> = reasons["spans"].as_array().ok_or("no spans")?.iter().cloned().map(Divided).collect();
    spans.retain(|span| span.0["is_open"] == false && span.of("unknown") == 0);
    let mut found = [const { Vec::new() }; 4];
    for event in events(place, &["out"]).iter().filter(|event| event["name"] == "waits:measured") {
        let (time, fields) = (event["time_ns"].as_u64().ok_or("no time")?, &event["fields"]);
        let measured = fields["nanoseconds"].as_u64().ok_or("no number")?;
        // It is fired right after the end of its span.
        let ended = spans.iter().position(|span| {
            let is_its = |end: u64| end <= time && time - end < measured;
            span.end().is_some_and(is_its)
                && span.0["fields"].as_str().is_some_and(|text| text.contains(&*fields["cause"].to_string()))
        });
        let Some(ended) = ended else { continue };
        let span = spans.swap_remove(ended);
        let index = causes.iter().position(|(name, _)| fields["cause"] == *name).ok_or("no such operation")?;
        let cause = causes[index].1;
        let (divided, tolerance) = (span.of(cause), (measured / 50).max(1_000_000));
        let [upper, limit] = if cause == "running" {
            // Time in which interrupts are handled, or the hypervisor runs another machine, is not processor time of the thread.
            let delay = fields["delay"].as_u64().ok_or("no delay")?;
            [divided, (span.0["nanoseconds"].as_u64().ok_or("no duration")?).saturating_sub(delay)]
        } else {
            // The thread is ready between its wake-up and its next run, which the program measures, but also if it is preempted before or after
            // the measurement.
            [divided + span.of("ready"), measured]
        };
        let is_equal = measured <= upper + tolerance && divided <= limit + tolerance;
        assert!(is_equal, "{measured} ns, {fields}: {:#}", span.0);
        found[index].push(span);
    }
    for ((name, _), spans) in causes.iter().zip(&found) {
        assert!(spans.len() >= 3, "{name}: {} spans", spans.len());
    }
    Ok(found)
}

pub(super) const RECORD: [&str; 8] = ["record", "-e", "waits:*", "--waits", "--duration", "1s", "-o", "out"];

#[test]
fn causes_are_those_that_the_program_has_and_measures() -> Outcome {
    if is_traced() || !can_record() {
        return Ok(());
    }
    let place = Place::new();
    let traced = place.start("kernel::waits::causes_are_those_that_the_program_has_and_measures");
    let pid = traced.0.id().to_string();
    let (code, out, err) = place.tracectl(&[&RECORD[..], &["-p", &pid, "--json"]].concat());
    assert!(code == Some(0) && err.contains("recording switches of threads, wake-ups, system calls"), "{out}{err}");
    let report: Value = serde_json::from_str(&out)?;
    let waits = &report["waits"];
    let counts = waits["events"].as_array().ok_or("no events")?;
    for event in counts {
        let [fired, recorded, lost] =
            ["fired", "recorded", "lost"].map(|name| event[name].as_u64().unwrap_or_default());
        assert_eq!(fired, recorded + lost, "{event}");
        // Some kernels do not store wake-ups by timers of an idle CPU (docs/kernel.md).
        assert!(lost == 0 || event["name"] == "sched:sched_waking", "{event}");
    }
    let reasons = waits["counters"]["lost"].as_object().ok_or("no losses")?;
    assert!(reasons.keys().all(|reason| reason == "not_stored"), "{waits:#}");
    place.verifies("out");
    let recorded = |name: &str| counts.iter().find(|event| event["name"] == name)?["recorded"].as_u64();
    let output = Command::new("babeltrace2").arg(place.path("out")).output()?;
    let (viewed, messages) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    assert!(output.status.success() && messages.lines().all(|line| line.contains("Tracer discarded")), "{messages}");
    for name in ["perf:switch", "sched:sched_waking", "raw_syscalls:sys_enter"] {
        let viewed = viewed.lines().filter(|line| line.contains(&format!(" {name}: "))).count();
        assert_eq!(Some(viewed as u64), recorded(name), "{name}");
    }

    let causes = [("lock", "lock"), ("sleep", "sleep"), ("pipe", "thread"), ("spin", "running")];
    let [lock, sleep, pipe, _] = compare(&place, causes)?;
    for (spans, cause, thread, call) in [(lock, "lock", HOLDER, "futex"), (pipe, "thread", WRITER, "read")] {
        for span in &spans {
            let wait = span.wait(cause);
            let is_named = wait["woken_by"].as_str().is_some_and(|name| name.starts_with(thread));
            assert!(is_named && wait["call"] == call, "{:#}", span.0);
        }
        // The thread slept meanwhile, except while it started.
        let slept = |span: &Divided| span.wait(cause)["meanwhile"]["sleep"].as_u64() > Some(15_000_000);
        assert!(spans.iter().any(slept), "{:#}", spans[0].0);
    }
    assert!(sleep.iter().all(|span| span.wait("sleep")["call"] == "clock_nanosleep"));

    let (code, text, err) = place.tracectl(&["why", "out", "--by", "cause", "-n", "1"]);
    assert!(code == Some(0) && err.lines().all(|line| line.starts_with("note: these traces have lost ")), "{err}");
    assert!(text.starts_with("CAUSE ") && text.contains("ANOTHER THREAD") && text.contains(" other spans"), "{text}");
    let none = place.refused(&["why", "out", "--span", "shop:*"]);
    assert!(none.contains("no such span"), "{none}");
    Ok(())
}

#[test]
fn without_rights_threads_run_are_ready_or_blocked() -> Outcome {
    if is_traced() || !can_record() {
        return Ok(());
    }
    let place = Place::new();
    let mut command = as_nobody(&place, &env::current_exe()?)?;
    command.args([
        "--exact",
        "kernel::waits::without_rights_threads_run_are_ready_or_blocked",
        "--quiet",
        "--nocapture",
    ]);
    command.env(TRACED, "0");
    let _traced = place.start_as(command);
    let output = as_nobody(&place, env!("CARGO_BIN_EXE_tracectl").as_ref())?.args(RECORD).output()?;
    let err = String::from_utf8(output.stderr)?;
    assert!(output.status.success() && err.contains("not what they wait for") && err.contains("`sudo`"), "{err}");
    place.verifies("out");
    compare(&place, [("lock", "blocked"), ("sleep", "blocked"), ("pipe", "blocked"), ("spin", "running")])?;
    let (_, _, err) = place.tracectl(&["why", "out"]);
    assert!(err.contains("not what they waited for"), "{err}");
    Ok(())
}

#[test]
fn threads_that_need_too_many_files_are_not_recorded_but_all_else_is() -> Outcome {
    if is_traced() || !can_record() {
        return Ok(());
    }
    let place = Place::new();
    let _traced = place.start("kernel::waits::threads_that_need_too_many_files_are_not_recorded_but_all_else_is");
    let mut limited = Command::new("prlimit");
    limited.args(["--nofile=64:64", env!("CARGO_BIN_EXE_tracectl")]).args(RECORD);
    let output = limited.env("TRACEPOINT_RUN_DIR", place.path("run")).current_dir(place.path(".")).output()?;
    let (out, err) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    assert!(output.status.code() == Some(1) && err.contains(" open files, but only "), "{out}{err}");
    place.verifies("out");
    assert!(events(&place, &["out"]).iter().any(|event| event["name"] == "waits:measured"), "{out}{err}");
    Ok(())
}
