//! Test sessions see only the events of their own threads, however many sessions there are.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::thread;
use tracepoint_session::testing::TestSession;

tracepoint::define_trace! {
    provider = "tested";
    pub begun(n: u64, name: &str) { n: u64 = n, name: str = name }
    pub ended(n: u64, ok: bool, load: f64, mode: u8, bytes: &[u8]) {
        n: i64 = n.cast_signed(),
        ok: bool = ok,
        load: f64 = load,
        mode: enum u8 { Idle = 0, Run = 1 } = mode,
        bytes: [u8] = bytes,
        file: path = &std::path::Path::new("/tmp/x"),
    }
    pub other() {}
}

/// Returns the message of a failed expectation.
fn failure(expectation: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(expectation)).expect_err("fails");
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
        .expect("text")
}

#[test]
fn fields_have_their_values() {
    own_process!();
    let session = TestSession::start("tested:*");
    trace_begun(1, "a");
    trace_ended(7, true, 0.5, 1, b"xyz");
    let ended = session.expect("tested:ended").once();
    assert!(ended["n"] == 7 && ended["n"] != 8 && ended["n"] != "7" && ended["ok"] == true && ended["load"] == 0.5);
    assert!(
        ended["mode"] == 1u8 && ended["bytes"] == "xyz" && ended["file"] == "/tmp/x" && ended["bytes"] == b"xyz"[..]
    );
    assert_eq!(ended["n"].integer(), Some(7));
    assert_eq!(ended.thread(), thread::current().id());
    assert_eq!(
        ended.to_string(),
        "tested:ended { n = 7, ok = true, load = 0.5, mode = 1, bytes = [120, 121, 122], file = \"/tmp/x\" }"
    );
    assert!(failure(|| drop(ended["nn"].clone())).contains("has no field `nn`; nearest: n"));
}

#[test]
fn failed_expectations_list_the_events() {
    own_process!();
    let session = TestSession::start("tested:*");
    for n in 0..5 {
        trace_begun(n, "task");
    }
    trace_ended(0, true, 0.0, 0, b"");
    session.expect("tested:begun").times(5);
    session.expect("tested:begun").with(|event| event["n"] == 3).with(|event| event["name"] == "task").once();
    session.expect("tested:begun").at_least(4);
    session.expect("tested:other").never();
    session.expect_in_order(&["tested:begun", "tested:begun", "tested:ended"]);
    let first = |n: u64| session.expect("tested:begun").with(move |event| event["n"] == n);
    first(1).before(&first(2));
    session.expect("tested:begun").before(&session.expect("tested:ended"));

    let message = failure(|| drop(first(9).once()));
    assert!(message.starts_with("tested:begun satisfying the conditions: expected once, found 0 times; "), "{message}");
    assert!(message.contains("the session has 6 events\n  tested:begun { n = 0, name = \"task\" }\n"), "{message}");
    assert!(failure(|| drop(session.expect("tested:begun").times(4))).contains("expected 4 times, found 5 times"));
    assert!(failure(|| drop(session.expect("tested:begun").at_least(6))).contains("at least 6 times"));
    assert!(failure(|| session.expect("tested:ended").never()).contains("expected never"));
    assert!(failure(|| session.expect_in_order(&["tested:ended", "tested:begun"])).contains("did not occur after"));
    assert!(failure(|| first(2).before(&first(1))).contains("did not precede"));
    assert!(failure(|| first(2).before(&session.expect("tested:other"))).contains("did not precede"));
    assert!(failure(|| drop(session.expect("tested:begin"))).contains("nearest: tested:begun"));
    assert!(failure(|| drop(TestSession::start("testd:*"))).contains("no event matches"));
}

#[test]
fn threads_enter_and_leave() {
    own_process!();
    let session = TestSession::start("tested:begun");
    let member = session.member();
    let worker = thread::spawn(move || {
        trace_begun(1, "before");
        {
            let _here = member.enter();
            let _twice = member.enter();
            trace_begun(2, "inside");
        }
        trace_begun(3, "after");
    });
    worker.join().expect("fires");
    session.expect("tested:begun").with(|event| event["name"] == "inside").once();
    // Nested, on the same thread; each session has its own events.
    {
        let inner = TestSession::start("tested:*");
        trace_begun(4, "both");
        trace_other();
        inner.expect("tested:begun").once();
        inner.expect("tested:other").once();
    }
    trace_begun(5, "outer");
    assert_eq!(
        session.events().iter().map(|event| event["n"].integer()).collect::<Vec<_>>(),
        [Some(2), Some(4), Some(5)]
    );
}

/// Each of a thousand concurrent tests with two threads sees all of its own events and no others. `TEST_SESSION_ROUNDS` sets the number of
/// rounds.
#[test]
fn a_thousand_sessions_at_a_time() {
    own_process!();
    let rounds = std::env::var("TEST_SESSION_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1);
    for _ in 0..rounds {
        let all_have_begun = Barrier::new(1000);
        let test = |n: u64| {
            let session = TestSession::start("tested:*");
            all_have_begun.wait();
            let name = format!("test {n}");
            trace_begun(n, &name);
            let member = session.member();
            thread::scope(|scope| {
                scope.spawn(|| {
                    let _here = member.enter();
                    trace_ended(n, true, 0.0, 0, name.as_bytes());
                });
            });
            session.expect_in_order(&["tested:begun", "tested:ended"]);
            assert_eq!(session.events().len(), 2, "{:?}", session.events());
            session.expect("tested:begun").with(|event| event["n"] == n && event["name"] == *name).once();
            session.expect("tested:ended").with(|event| event["n"] == n && event["bytes"] == *name).once();
        };
        thread::scope(|scope| {
            for n in 0..1000 {
                let test = &test;
                scope.spawn(move || test(n));
            }
        });
    }
}
