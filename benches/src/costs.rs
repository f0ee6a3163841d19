//! A program to count instructions in: `costs MODE N` does N iterations of a loop with one site in it.
//!
//! Run it twice under callgrind with different N; the difference, less that of the mode `none`, is what an event costs.
//! `scripts/costs.sh` does so.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::process::ExitCode;
use tracepoint::context::Context;
use tracepoint_benches::{Recording, register_trace_small, small, trace_small, watch};

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
            "usage: costs none|off-lazy|off-function|probe|recorded|recorded-2|recorded-4|watched|context-user|context-name|context-cpu|context-stack N"
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
        "recorded-2" => record(n, 2, &[]),
        "recorded-4" => record(n, 4, &[]),
        "watched" => watched(n),
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

fn record(n: u64, channels: usize, contexts: &[Context]) {
    let config = contexts.iter().fold(Recording::channel(), |config, context| config.context(*context));
    let recording = Recording::into("bench:small", channels, &config);
    iterate!(n, |a, b, c| {
        tracepoint::trace!(small(a, b, c));
    });
    assert_eq!(recording.recorded(), n * channels as u64, "every event was recorded");
}
