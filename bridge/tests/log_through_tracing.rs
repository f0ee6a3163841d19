//! Records of `log` in a program with `tracing-subscriber` and its default features. A separate program, because a program has one logger.
#![forbid(unsafe_code)]

use std::sync::{Arc, Mutex, PoisonError};
use tracepoint_core::field::Value;
use tracepoint_core::marker::{Aggregate, FieldView, Subscriber};
use tracing_subscriber::prelude::*;

/// The field values of the events.
#[derive(Default)]
struct Seen(Mutex<Vec<String>>);

impl Aggregate for Seen {
    fn observe(&self, _: u64, event: FieldView<'_>) {
        let shown = |index| match event.get(index) {
            Some(Value::Unsigned(number)) => number.to_string(),
            Some(Value::Text(text)) => text.to_owned(),
            other => format!("{other:?}"),
        };
        let shown: Vec<_> = (0..6).map(shown).collect();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(shown.join(" "));
    }
}

#[test]
fn records_arrive_with_all_that_log_knows() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::registry().with(tracepoint_tracing::layer()).init();
    // Not needed here, and harmless.
    tracepoint_tracing::log::init()?;
    log::warn!("off");
    let seen = Arc::new(Seen::default());
    let marker = tracepoint_core::find("log:record")?.marker().ok_or("it has fields")?;
    let subscription = marker.subscribe(Subscriber::aggregate(Arc::clone(&seen) as _))?;
    log::warn!(target: "app::old", "request {}", 7);
    let line = line!() - 1;
    log::trace!("fine");
    drop(subscription);
    log::error!("off again");
    let seen = seen.0.lock().map_err(|_| "panicked")?;
    let (this, fine) = ("log_through_tracing bridge/tests/log_through_tracing.rs", line + 2);
    let expected = [format!("2 app::old {this} {line} request 7"), format!("5 log_through_tracing {this} {fine} fine")];
    assert_eq!(*seen, expected);
    Ok(())
}
