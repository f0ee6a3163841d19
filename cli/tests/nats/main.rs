//! Traces through a NATS broker: senders, brokers and collectors are separate processes, which the tests kill and stop.
//!
//! The traced programs are further instances of this program. The broker is Debian's `nats-server`.
#![forbid(unsafe_code)]

mod broker;
mod clusters;
mod collecting;
mod hostile;
mod kills;
mod overload;
mod programs;
mod publishing;
mod refused;
#[path = "../../../tests/support/seed.rs"]
mod seed;
mod sharing;
#[path = "../../../tests/support/skip.rs"]
mod skip;
mod stored;

use std::env;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tracepoint::Agent;

tracepoint::define_trace! {
    provider = "brokered";
    pub sent(thread: u64, n: u64) { thread: u64 = thread, n: u64 = n }
}

/// Set in a traced program: `EVENTS MICROSECONDS`, the number of events of each of its two threads, and the pause after each.
const TRACED: &str = "TEST_BROKERED";
/// Time limit for conditions that normally become true quickly.
const DEADLINE: Duration = Duration::from_secs(120);

/// In a traced program, plays its part and returns `true`.
fn is_traced() -> bool {
    let Ok(plan) = env::var(TRACED) else { return false };
    let (events, pause) = plan.split_once(' ').expect("two numbers");
    let (events, pause): (u64, u64) = (events.parse().expect("a number"), pause.parse().expect("a number"));
    let _agent = Agent::start().expect("an agent");
    wait_for("the session", || trace_sent_enabled().then_some(()));
    std::thread::scope(|scope| {
        for thread in 0..2 {
            scope.spawn(move || {
                for n in 0..events {
                    tracepoint::trace!(sent(thread, n));
                    if pause > 0 {
                        sleep(Duration::from_micros(pause));
                    }
                }
            });
        }
    });
    true
}

/// Waits until `answer` returns a value.
fn wait_for<T>(what: &str, mut answer: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(answer) = answer() {
            return answer;
        }
        assert!(Instant::now() < deadline, "it does not come true: {what}");
        sleep(Duration::from_millis(20));
    }
}
