//! `fastrace`: spans, with events and properties in them.

use crate::kernel::Compiled;
use crate::peer::workload;
use crate::site::Site;
use crate::variant::{AS_IT_IS, Arm, Armed, Hold, Mode, Proof, Recording, Variant};
use crate::{cpu, tally};
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

/// Properties of the current span: cheaper than an event, because they are only built inside a span.
#[derive(Clone, Copy, Debug)]
pub struct AddProperties;

impl Site for AddProperties {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        LocalSpan::add_properties(|| [("a", a.to_string()), ("b", b.to_string()), ("c", c.to_string())]);
    }
}

/// The workload with text, as properties. The text is copied: only a `'static` one could be borrowed.
#[derive(Clone, Copy, Debug)]
pub struct AddText;

impl Site for AddText {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        LocalSpan::add_properties(|| {
            [("name", workload::name().to_owned()), ("n", workload::sum(a, b, c).to_string())]
        });
    }
}

/// A reporter that adds up the values and stores nothing.
struct Sink;

impl Reporter for Sink {
    fn report(&mut self, spans: Vec<SpanRecord>) {
        for span in spans {
            span.events.iter().for_each(|event| add(&event.properties));
            let named = span.properties.first().is_some_and(|(key, _)| key == "name");
            span.properties.chunks(if named { 2 } else { 3 }).for_each(add);
        }
    }
}

/// Adds an event to the tally: all its values, or the number of one with text. An event with another text is not counted.
fn add(properties: &[Property]) {
    let numbers = match properties {
        [(name, text), number @ ..] if name == "name" => {
            if text != workload::NAME {
                return;
            }
            number
        }
        numbers => numbers,
    };
    // An unsigned 64-bit number represents a signed one.
    let values = numbers.iter().map(|(_, value)| value.parse::<i128>().unwrap_or_default() as i64);
    tally::add(0, 0, values.fold(0, i64::wrapping_add));
}

fn report() {
    static INIT: Once = Once::new();
    INIT.call_once(|| {
        // Only a flush reports, so that the reporter's thread does not wake up during a measurement.
        cpu::anywhere(|| {
            fastrace::set_reporter(Sink, Config::default().report_interval(Duration::from_secs(86_400)));
        });
    });
}

/// A span around the events of this thread. Its end is not measured.
const SPAN: Arm = || {
    let root = fastrace::Span::root("peers", SpanContext::random());
    let guard = root.set_local_parent();
    Ok(Armed::until(move || {
        drop(guard);
        drop(root);
    }))
};

/// Adds the ended spans to the tally; not measured.
const REPORT: Arm = || {
    report();
    Ok(Armed::until(fastrace::flush))
};

const COUNT: Arm = || {
    let (report, span) = (REPORT()?, SPAN()?);
    Ok(Armed::until(move || {
        drop(span);
        drop(report);
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
    // A thread's queue holds 10,240 spans and drops further ones.
    counts_losses: false,
    hold: Hold::Sample,
    limit: 8_000,
    recording: None,
};

const PROPERTIES: Variant = Variant {
    name: "fastrace-properties",
    does: "LocalSpan::add_properties outside any span",
    kernels: Compiled::of::<AddProperties>(),
    ..EVENT
};

const fn recording(floor: &'static str) -> Recording {
    Recording { floor, warm: 100, thread: SPAN, sustained: false }
}

/// Off, and in a span.
pub const VARIANTS: &[Variant] = &[
    EVENT,
    PROPERTIES,
    Variant {
        name: "fastrace-event-span",
        mode: Mode::Recorded,
        counts_losses: true,
        does: "LocalSpan::add_event in a span: time, three texts, a queue of 10,240 that drops what exceeds it (not reached)",
        arm: REPORT,
        recording: Some(recording("floor")),
        ..EVENT
    },
    Variant {
        name: "fastrace-properties-span",
        mode: Mode::Recorded,
        counts_losses: true,
        does: "LocalSpan::add_properties in a span: three texts, no time, the same queue",
        arm: REPORT,
        recording: Some(recording("floor")),
        ..PROPERTIES
    },
    Variant {
        name: "fastrace-text-span",
        mode: Mode::Recorded,
        counts_losses: true,
        does: "as fastrace-properties-span: two texts",
        kernels: Compiled::of::<AddText>(),
        arm: REPORT,
        recording: Some(recording("floor-text")),
        ..PROPERTIES
    },
];
