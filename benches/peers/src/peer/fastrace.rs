//! `fastrace`: spans, with events and properties in them.

use crate::kernel::Compiled;
use crate::site::Site;
use crate::tally;
use crate::variant::{AS_IT_IS, Arm, Armed, Hold, Mode, Proof, Variant};
use fastrace::collector::{Config, Reporter, SpanContext, SpanRecord};
use fastrace::local::LocalSpan;
use fastrace::prelude::Event;
use std::borrow::Cow;
use std::sync::Once;
use std::time::Duration;

type Property = (Cow<'static, str>, Cow<'static, str>);

/// An event of the current span.
#[derive(Clone, Copy, Debug)]
pub struct AddEvent;

impl Site for AddEvent {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        LocalSpan::add_event(
            Event::new("small").with_properties(|| [("a", a.to_string()), ("b", b.to_string()), ("c", c.to_string())]),
        );
    }
}

/// Properties of the current span: cheaper, because they are made only if there is one.
#[derive(Clone, Copy, Debug)]
pub struct AddProperties;

impl Site for AddProperties {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        LocalSpan::add_properties(|| [("a", a.to_string()), ("b", b.to_string()), ("c", c.to_string())]);
    }
}

/// A reporter that sums the values up and stores nothing.
struct Sink;

impl Reporter for Sink {
    fn report(&mut self, spans: Vec<SpanRecord>) {
        for span in spans {
            span.events.iter().for_each(|event| add(&event.properties));
            span.properties.chunks(3).for_each(add);
        }
    }
}

fn add(properties: &[Property]) {
    let values = properties.iter().map(|(_, value)| value.parse::<i64>().unwrap_or_default());
    tally::add(0, 0, values.fold(0, i64::wrapping_add));
}

/// A span around the events. Its end and the report of it are not measured.
const COUNT: Arm = || {
    static INIT: Once = Once::new();
    INIT.call_once(|| {
        // Only a flush reports: the reporter's thread should not wake up in the middle of a measurement.
        fastrace::set_reporter(Sink, Config::default().report_interval(Duration::from_secs(86_400)));
    });
    let root = fastrace::Span::root("peers", SpanContext::random());
    let guard = root.set_local_parent();
    Ok(Armed::until(move || {
        drop(guard);
        drop(root);
        fastrace::flush();
    }))
};

const EVENT: Variant = Variant {
    name: "fastrace-event",
    mode: Mode::Off,
    does: "LocalSpan::add_event outside any span; the properties become text all the same",
    kernels: Compiled::of::<AddEvent>(),
    arm: AS_IT_IS,
    count: COUNT,
    proof: Proof::Values,
    // A thread's queue holds 10,240 and drops what comes then.
    tells: false,
    hold: Hold::Sample,
    limit: 8_000,
};

const PROPERTIES: Variant = Variant {
    name: "fastrace-properties",
    does: "LocalSpan::add_properties outside any span",
    kernels: Compiled::of::<AddProperties>(),
    ..EVENT
};

/// Off and on.
pub const VARIANTS: &[Variant] = &[
    EVENT,
    PROPERTIES,
    Variant {
        name: "fastrace-event-span",
        mode: Mode::On,
        tells: true,
        does: "LocalSpan::add_event in a span: time, three texts, a queue of 10,240 that drops what exceeds it (not reached)",
        arm: COUNT,
        ..EVENT
    },
    Variant {
        name: "fastrace-properties-span",
        mode: Mode::On,
        tells: true,
        does: "LocalSpan::add_properties in a span: three texts, the same queue",
        arm: COUNT,
        ..PROPERTIES
    },
];
