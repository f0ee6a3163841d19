//! Senders, a collector and viewers on separate hosts: network namespaces, with a network between them that the tests disturb.
//!
//! The traced programs are further instances of this program. The tests need root, or rights to make network namespaces.
#![deny(unsafe_code)]

mod bad_peers;
mod built_without;
mod datagrams;
#[path = "../../../tracepoint/tests/common/fixture.rs"]
mod fixture;
mod hosts;
mod killed_sender;
#[path = "../../../reader/tests/integration/udp/link.rs"]
#[expect(unreachable_pub, reason = "it is shared with the tests of UDP, and no crate")]
mod link;
mod on_hosts;
mod proxy;
mod rotation;
mod running;
#[path = "../../../tests/support/seed.rs"]
mod seed;
mod shared_key;
#[path = "../../../tests/support/skip.rs"]
mod skip;
mod streams;
mod three_hosts;
mod whole;

use std::env;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tracepoint::Agent;

tracepoint::define_trace! {
    provider = "network";
    pub sent(thread: u64, n: u64) { thread: u64 = thread, n: u64 = n }
}

/// Set in a traced program: `EVENTS MICROSECONDS`, the number of events of each of its two threads, and the pause after each.
const TRACED: &str = "TEST_NETWORK";
/// Time limit for conditions that normally become true quickly.
const DEADLINE: Duration = Duration::from_secs(120);

/// In a traced program, plays its part and returns `true`.
fn is_traced() -> bool {
    let Ok(plan) = env::var(TRACED) else { return false };
    let (events, pause) = plan.split_once(' ').expect("two numbers");
    let (events, pause): (u64, u64) = (events.parse().expect("a number"), pause.parse().expect("a number"));
    let _agent = Agent::start().expect("an agent");
    wait_for(|| trace_sent_enabled().then_some(()));
    std::thread::scope(|scope| {
        for thread in 0..2 {
            scope.spawn(move || {
                for n in 0..events {
                    tracepoint::trace!(sent(thread, n));
                    sleep(Duration::from_micros(pause));
                }
            });
        }
    });
    true
}

/// Waits until `answer` returns a value.
fn wait_for<T>(mut answer: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(answer) = answer() {
            return answer;
        }
        assert!(Instant::now() < deadline, "it does not come true");
        sleep(Duration::from_millis(20));
    }
}
