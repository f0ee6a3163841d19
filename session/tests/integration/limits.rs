//! Sessions whose rules have limits, on a clock that the test advances. One test: a process has one clock.

use crate::common::{Outcome, assert_balances, event, place, view};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Clock, Session, SessionBuilder, SessionError};
use tracepoint_session_spec::{Limit, Rule, RuleProblem};

tracepoint::define_trace! {
    provider = "limits";
    pub tick(n: u64) { n: u64 = n }
    pub beat(n: u64) { n: u64 = n }
}

static TIME: AtomicU64 = AtomicU64::new(0);

fn time() -> u64 {
    TIME.load(Ordering::Relaxed)
}

const MILLISECOND: u64 = 1_000_000;

/// A tick and a beat in each millisecond, for a second.
fn fire() {
    for n in 0..1000 {
        TIME.fetch_add(MILLISECOND, Ordering::Relaxed);
        trace_tick(n);
        trace_beat(n);
    }
}

fn builder(dir: &Path) -> Result<SessionBuilder, Box<dyn std::error::Error>> {
    Ok(Session::builder("limits").clock(Clock::User(time)).in_memory().sink(CtfSink::create(dir)?))
}

#[test]
fn an_event_is_recorded_at_most_at_its_limit() -> Outcome {
    own_process!();
    let place = place();
    let dir = |name: &str| place.path().join(name);
    TIME.store(1 << 40, Ordering::Relaxed);

    // 5 at once, then one each 100 ms; both events share the bucket of the rule.
    let session = builder(&dir("shared"))?.events(Rule::new("limits:*").limit("10/s burst 5")).start()?;
    fire();
    let summary = session.stop()?;
    let (tick, beat) = (event(&summary, "limits:tick"), event(&summary, "limits:beat"));
    assert_eq!((tick.fired, beat.fired), (1000, 1000));
    // tick, beat, tick, beat, tick; then a token every 100 ms from the first on, which the tick of that millisecond takes.
    assert_eq!((tick.recorded, tick.suppressed), (12, 988));
    assert_eq!((beat.recorded, beat.suppressed), (2, 998));
    assert_balances(&dir("shared"));
    assert_eq!(view(&[&dir("shared")]).lines.len(), 14);

    // The filter is applied first: events that it rejects take no token. The other rule has its own bucket.
    TIME.fetch_add(10_000 * MILLISECOND, Ordering::Relaxed);
    let session = builder(&dir("own"))?
        .events(Rule::new("limits:tick").filter("n & 7 == 0").limit(Limit::per_second(20).burst(1)))
        .events(Rule::new("limits:beat").limit(Limit::per_second(20).burst(1)))
        .start()?;
    fire();
    let summary = session.stop()?;
    let (tick, beat) = (event(&summary, "limits:tick"), event(&summary, "limits:beat"));
    // Every eighth, and at least 50 ms apart: every 56 ms.
    assert_eq!((tick.filtered, tick.recorded, tick.suppressed), (875, 18, 107));
    assert_eq!((beat.filtered, beat.recorded, beat.suppressed), (0, 20, 980));
    assert_balances(&dir("own"));

    // Two rules for one event: an event over the limit of one rule may be within the other's.
    TIME.fetch_add(10_000 * MILLISECOND, Ordering::Relaxed);
    let session = builder(&dir("two"))?
        .events(Rule::new("limits:tick").limit(Limit::per_second(1)))
        .events(Rule::new("*:tick").filter("n < 3").limit(Limit::per_second(1000)))
        .start()?;
    fire();
    let summary = session.stop()?;
    let tick = event(&summary, "limits:tick");
    assert_eq!((tick.recorded, tick.suppressed, tick.filtered), (3, 997, 0), "the first of one, two of the other");
    assert_balances(&dir("two"));

    let problem = |builder: SessionBuilder, limit: Limit| match builder.events(Rule::new("*").limit(limit)).start() {
        Err(SessionError::Rule(error)) => error.problem,
        other => panic!("{other:?}"),
    };
    assert!(matches!(problem(builder(&dir("nothing"))?, Limit::per_second(0)), RuleProblem::Limit(_)));
    let timeless = builder(&dir("timeless"))?.clock(Clock::None);
    assert_eq!(problem(timeless, Limit::per_second(5)), RuleProblem::LimitWithoutClock);
    Ok(())
}
