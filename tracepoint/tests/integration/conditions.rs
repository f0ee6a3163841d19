//! An event whose condition is false reaches neither the marker nor the probes; the condition is evaluated only while the tracepoint is
//! on.

use crate::common::Recorded;
use std::sync::atomic::{AtomicU32, Ordering};

static EVALUATED: AtomicU32 = AtomicU32::new(0);

fn wanted(n: u64) -> bool {
    EVALUATED.fetch_add(1, Ordering::Relaxed);
    n > 10
}

struct Limits {
    low: u64,
}

tracepoint::define_trace! {
    provider = "conditions";
    conditional(n: u64) if wanted(n) { n: u64 = n }
    bare(n: u64, limits: &Limits) if n >= limits.low && n != 7;
    matched(n: Option<u64>) if matches!(n, Some(1..=9)) { n: u64 = n.unwrap_or(0) }
    block(n: u64) if (Limits { low: n }).low == { 5 } { n: u64 = n }
    class shared(n: u64) if n % 2 == 0 { n: u64 = n }
    even: shared;
}

#[test]
fn tested_after_the_key() {
    trace_conditional(11);
    tracepoint::trace!(conditional(11));
    assert_eq!(EVALUATED.load(Ordering::Relaxed), 0);
    let recorded = [Recorded::of("conditions:conditional"), Recorded::of("conditions:conditional")];
    let probe = register_trace_conditional(|n| assert_eq!(n, 11)).unwrap();
    trace_conditional(11);
    trace_conditional(10);
    assert_eq!(EVALUATED.load(Ordering::Relaxed), 2, "once for an event");
    unregister_trace_conditional(probe);
    assert_eq!(recorded.map(|recorded| recorded.all()), [[["11"]], [["11"]]]);
}

#[test]
fn conditions_of_bare_hooks() {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let probe = register_trace_bare(|_, _| {
        CALLS.fetch_add(1, Ordering::Relaxed);
    })
    .unwrap();
    for n in 0..10 {
        tracepoint::trace!(bare(n, &Limits { low: 6 }));
    }
    unregister_trace_bare(probe);
    assert_eq!(CALLS.load(Ordering::Relaxed), 3);
}

#[test]
fn conditions_may_be_any_expression() {
    let recorded = ["matched", "block", "even"].map(|name| Recorded::of(&format!("conditions:{name}")));
    for n in 0..8 {
        tracepoint::trace!(matched((n > 6).then_some(n)));
        tracepoint::trace!(block(n));
        tracepoint::trace!(even(n));
    }
    assert_eq!(recorded.map(|recorded| recorded.all().concat().concat()), ["7", "5", "0246"]);
}
