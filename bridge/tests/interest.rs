//! The interest that `tracing` caches for callsites that are off. A separate program, because its layer must be the only one queried.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tracepoint_core::marker::{Aggregate, FieldView, Subscriber};
use tracing::metadata::Kind;
use tracing::{Callsite, Level, callsite};
use tracing_core::callsite::DefaultCallsite;
use tracing_subscriber::prelude::*;

/// Counts events.
#[derive(Default)]
struct Count(AtomicU64);

impl Aggregate for Count {
    fn observe(&self, _: u64, _: FieldView<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Returns whether the interest is `never`, and whether it is `always`.
fn interest(callsite: &'static DefaultCallsite) -> (bool, bool) {
    let interest = callsite.interest();
    (interest.is_never(), interest.is_always())
}

/// One test, because the results for one callsite depend on all switches.
#[test]
fn a_callsite_that_is_off_is_never_wanted() -> Outcome {
    tracing_subscriber::registry().with(tracepoint_tracing::layer()).try_init()?;
    let callsite = callsite!(name: "asked", kind: Kind::EVENT, target: "asked", level: Level::INFO, fields: n);
    // It may be enabled before `tracing` stores the result.
    assert_eq!(interest(callsite), (false, false));
    let marker = tracepoint_core::markers().find(|marker| marker.name().starts_with("asked")).ok_or("listed")?;
    let subscribe = || marker.subscribe(Subscriber::aggregate(Arc::new(Count::default())));
    let subscription = subscribe()?;
    assert_eq!(interest(callsite), (false, true));
    drop(subscription);
    assert_eq!(interest(callsite), (true, false));

    // A new dispatcher makes `tracing` query in a thread that may be late.
    let scoped = tracing::Dispatch::new(tracing_subscriber::registry());
    drop(scoped);
    let subscription = subscribe()?;
    assert_eq!(interest(callsite), (false, true));
    drop(subscription);
    assert_eq!(interest(callsite), (true, false));

    // Events are reached without any switch.
    let busy = callsite!(name: "busy", kind: Kind::EVENT, target: "busy", level: Level::INFO, fields: n);
    assert_eq!(interest(busy), (false, false));
    let end = Instant::now() + Duration::from_secs(60);
    while interest(busy) != (true, false) {
        assert!(Instant::now() < end, "{:?} after a minute", interest(busy));
        (0..10_000).for_each(|_| {
            tracing::dispatcher::get_default(|now| now.enabled(busy.metadata()));
        });
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}
