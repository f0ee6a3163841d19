//! A program for counting instructions: `costs MODE N` runs N iterations of a loop with one site in it.
//!
//! Run it twice under callgrind with different N; the difference, minus that of the mode `none`, is the cost of an event.
//! `scripts/costs.sh` does so.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::{Arc, Barrier};
use tracepoint::context::Context;
use tracepoint::marker::{Aggregate, FieldView, Subscriber};
use tracepoint::probes::{Measure, RunningStatistic, StatisticSpec};
use tracepoint_benches::{Recording, register_trace_small, small, trace_small, watch};
use tracepoint_ring::channel::Channel;

/// The loop: three arguments that are computed anyway, and the site.
macro_rules! iterate {
    ($n:expr, |$a:ident, $b:ident, $c:ident| $site:block) => {
        for i in 0..$n {
            let ($a, $b, $c) = (black_box(i as i32), black_box(7i32), black_box(i.cast_signed()));
            $site
            black_box(($a, $b, $c));
        }
    };
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (mode, n) = (arguments.next(), arguments.next().and_then(|n| n.parse::<u64>().ok()));
    let (Some(mode), Some(n)) = (mode, n) else {
        eprintln!(
            "usage: costs none|off-lazy|off-function|probe|recorded|lost|ringless|recorded-2|recorded-4|watched|nothing|count|histogram|latency|context-user|context-name|context-cpu|context-stack N"
        );
        return ExitCode::from(2);
    };
    match mode.as_str() {
        "none" => iterate!(n, |a, b, c| {}),
        "off-lazy" => iterate!(n, |a, b, c| {
            tracepoint::trace!(small(a, b, c));
        }),
        "off-function" => iterate!(n, |a, b, c| {
            trace_small(a, b, c);
        }),
        "probe" => {
            let probe = register_trace_small(|a, _, _| {
                black_box(a);
            });
            iterate!(n, |a, b, c| {
                tracepoint::trace!(small(a, b, c));
            });
            drop(probe);
        }
        "recorded" => record(n, 1, &[]),
        "lost" => lose(n, true),
        "ringless" => lose(n, false),
        "recorded-2" => record(n, 2, &[]),
        "recorded-4" => record(n, 4, &[]),
        "watched" => watched(n),
        "nothing" => count(n, None),
        "count" => count(n, Some(Measure::Count)),
        "histogram" => count(n, Some(Measure::Histogram { field: "c".to_owned() })),
        "latency" => {
            let (begin, end) = ("bench:small".to_owned(), "bench:small".to_owned());
            count(n, Some(Measure::Latency { begin, end, by: Some("b".to_owned()) }));
        }
        "context-user" => record(n, 1, &[Context::User]),
        "context-name" => record(n, 1, &[Context::ThreadName]),
        "context-cpu" => record(n, 1, &[Context::Cpu]),
        "context-stack" => record(n, 1, &[Context::CallStack]),
        other => {
            eprintln!("no mode `{other}`");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn watched(n: u64) {
    let recording = Recording::start("bench:small", 1);
    let _watch = watch();
    iterate!(n, |a, b, c| {
        tracepoint::trace!(small(a, b, c));
    });
    assert_eq!(recording.recorded(), n, "every event was recorded");
}

/// Events of a thread whose ring is full, or that has none.
fn lose(n: u64, has_ring: bool) {
    const PACKET: u16 = 512;
    let config = Channel::discard(2 * usize::from(PACKET)).packets(2).spares(1).max_rings(1);
    let recording = Recording::into("bench:small", 1, &config);
    let fill = || (0..2 * i32::from(PACKET)).for_each(|i| tracepoint::trace!(small(i, 7, i.into())));
    // Another thread keeps the only ring, or this one does.
    let (taken, done) = (Barrier::new(2), Barrier::new(2));
    std::thread::scope(|scope| {
        if has_ring {
            fill();
        } else {
            scope.spawn(|| {
                fill();
                taken.wait();
                done.wait();
            });
            taken.wait();
        }
        let before = recording.recorded();
        iterate!(n, |a, b, c| {
            tracepoint::trace!(small(a, b, c));
        });
        assert_eq!(recording.recorded(), before, "no event was recorded");
        if !has_ring {
            done.wait();
        }
    });
}

/// An aggregate that does nothing.
struct Nothing;

impl Aggregate for Nothing {
    fn observe(&self, time: u64, event: FieldView<'_>) {
        black_box((time, &event));
    }
}

/// A statistic, or an aggregate that does nothing.
fn count(n: u64, measure: Option<Measure>) {
    let _ = tracepoint_ring::clock::calibrate(std::time::Duration::from_millis(10));
    let statistic =
        measure.map(|measure| RunningStatistic::start(StatisticSpec::new(measure), &["bench:small"]).expect("starts"));
    let marker = tracepoint::find("bench:small").expect("declared").marker().expect("has fields");
    let nothing = || marker.subscribe(Subscriber::aggregate(Arc::new(Nothing))).expect("switches");
    let _nothing = statistic.is_none().then(nothing);
    iterate!(n, |a, b, c| {
        tracepoint::trace!(small(a, b, c));
    });
}

fn record(n: u64, channels: usize, contexts: &[Context]) {
    let config = contexts.iter().fold(Recording::channel(), |config, context| config.context(*context));
    let recording = Recording::into("bench:small", channels, &config);
    iterate!(n, |a, b, c| {
        tracepoint::trace!(small(a, b, c));
    });
    assert_eq!(recording.recorded(), n * channels as u64, "every event was recorded");
}
