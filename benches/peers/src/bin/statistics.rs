//! The cost of computing a statistic in the traced program: our statistics, the crates `metrics` and `hdrhistogram`, and a layer of
//! `tracing`.
//!
//! The contenders take turns in each round, in one thread that is pinned to a processor. The floor is an empty probe at the same events. Every
//! contender's result is checked at the end.

use anyhow::{Result, ensure};
use clap::Parser;
use hdrhistogram::Histogram;
use metrics::Recorder as _;
use metrics_exporter_prometheus::PrometheusBuilder;
use std::collections::HashMap;
use std::fmt::Debug;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tracepoint_peers::cpu;
use tracepoint_peers::interval::Interval;
use tracepoint_probes::{Count, Latency};
use tracepoint_ring::clock;
use tracing::field::{Field, Visit};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};

tracepoint::define_trace! {
    provider = "statistics";
    sized(route: u32, size: u64) { route: u32 = route, size: u64 = size }
    begin(id: u64) { id: u64 = id }
    end(id: u64) { id: u64 = id }
}

/// Measures the cost of statistics in the traced program, compared with `metrics`, `hdrhistogram` and a layer of `tracing`.
///
/// Prints a Markdown table: nanoseconds for each event (of a latency: for each pair), medians with their 95 % intervals. The figures of the
/// column "added" are those over an empty probe at the same events, in the same round.
#[derive(Debug, Parser)]
struct Options {
    /// Number of rounds
    #[arg(long, default_value_t = 41, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Events of each contender in each round
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    events: u64,
}

/// A way to compute a statistic.
struct Contender {
    question: &'static str,
    name: &'static str,
    /// Fires events with these numbers, and returns the resulting counts.
    run: Box<dyn FnMut(u64) -> Run>,
}

struct Run {
    nanoseconds: f64,
    counted: u64,
}

fn timed(events: u64, mut event: impl FnMut(u64)) -> f64 {
    let began = Instant::now();
    for n in 0..events {
        event(black_box(n));
    }
    began.elapsed().as_secs_f64() * 1e9 / events as f64
}

/// Between 1 and 2^20, and not in order.
fn size(n: u64) -> u64 {
    (n.wrapping_mul(0x9E37_79B9) & 0xF_FFFF) + 1
}

fn fire_sized(n: u64) {
    tracepoint::trace!(sized(n as u32 & 3, size(n)));
}

fn fire_pair(n: u64) {
    tracepoint::trace!(begin(n));
    tracepoint::trace!(end(n));
}

/// Counts or measures the events of `tracing`, as a layer of an application would.
struct Aggregating {
    count: AtomicU64,
    sizes: Mutex<Histogram<u64>>,
    begun: Mutex<HashMap<u64, Instant>>,
    durations: Mutex<Histogram<u64>>,
}

struct Number(u64);

impl Visit for Number {
    fn record_u64(&mut self, _field: &Field, value: u64) {
        self.0 = value;
    }

    fn record_debug(&mut self, _field: &Field, _value: &dyn Debug) {}
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The values in a histogram, which is emptied.
fn taken(histogram: &mut Histogram<u64>) -> u64 {
    let count = histogram.len();
    histogram.reset();
    count
}

struct AggregatingLayer(Arc<Aggregating>);

impl<S: tracing::Subscriber> Layer<S> for AggregatingLayer {
    fn on_event(&self, event: &tracing::Event<'_>, _context: Context<'_, S>) {
        let mut number = Number(0);
        event.record(&mut number);
        match event.metadata().target() {
            "count" => {
                self.0.count.fetch_add(1, Ordering::Relaxed);
            }
            "size" => lock(&self.0.sizes).record(number.0).expect("in range"),
            "begin" => {
                lock(&self.0.begun).insert(number.0, Instant::now());
            }
            _ => {
                let begun = lock(&self.0.begun).remove(&number.0);
                if let Some(begun) = begun {
                    lock(&self.0.durations).record(begun.elapsed().as_nanos() as u64).expect("in range");
                }
            }
        }
    }
}

/// Two significant digits: buckets within 1 % of their values.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, u64::MAX / 2, 2).expect("two digits")
}

const COUNT: &str = "how many";
const SIZE: &str = "how large";
const TIME: &str = "how long";
const FLOOR: &str = "ours, an empty probe";

fn ours() -> Vec<Contender> {
    let floor = |question, run: fn(u64) -> f64| Contender {
        question,
        name: FLOOR,
        run: Box::new(move |n| Run { nanoseconds: run(n), counted: n }),
    };
    let one = |n| {
        let _probe = register_trace_sized(|_, _| {}).expect("switches");
        timed(n, fire_sized)
    };
    let two = |n| {
        let _probes = (register_trace_begin(|_| {}), register_trace_end(|_| {}));
        timed(n, fire_pair)
    };
    let count = |name, by: &'static [&'static str]| Contender {
        question: COUNT,
        name,
        run: Box::new(move |n| {
            let count = Count::of("statistics:sized", by).expect("starts");
            let nanoseconds = timed(n, fire_sized);
            Run { nanoseconds, counted: count.snapshot().values().sum() }
        }),
    };
    let sizes = |name, by: &'static [&'static str]| Contender {
        question: SIZE,
        name,
        run: Box::new(move |n| {
            let sizes = tracepoint_probes::Histogram::of("statistics:sized", "size", by).expect("starts");
            let nanoseconds = timed(n, fire_sized);
            Run { nanoseconds, counted: sizes.snapshot().values().map(|sizes| sizes.count()).sum() }
        }),
    };
    vec![
        floor(COUNT, one),
        count("ours, `Count`", &[]),
        count("ours, `Count` by one of four numbers", &["route"]),
        floor(SIZE, one),
        sizes("ours, `Histogram`", &[]),
        sizes("ours, `Histogram` by one of four numbers", &["route"]),
        floor(TIME, two),
        Contender {
            question: TIME,
            name: "the clock, read twice",
            run: Box::new(|n| {
                let read = |_| {
                    black_box((clock::now(), clock::now()));
                };
                Run { nanoseconds: timed(n, read), counted: n }
            }),
        },
        Contender {
            question: TIME,
            name: "ours, `Latency`",
            run: Box::new(|n| {
                let latency = Latency::between("statistics:begin", "statistics:end", Some("id"), &[]).expect("starts");
                let nanoseconds = timed(n, fire_pair);
                Run { nanoseconds, counted: latency.snapshot().0.values().map(|durations| durations.count()).sum() }
            }),
        },
    ]
}

fn peers() -> Vec<Contender> {
    let prometheus = PrometheusBuilder::new().build_recorder();
    let metadata = metrics::Metadata::new("peers", metrics::Level::INFO, None);
    let counter = prometheus.register_counter(&"events".into(), &metadata);
    let sizes = prometheus.register_histogram(&"sizes".into(), &metadata);
    let counted = |handle: &metrics_exporter_prometheus::PrometheusHandle, name: &str| -> u64 {
        let text = handle.render();
        text.lines().find_map(|line| line.strip_prefix(name)).and_then(|n| n.trim().parse().ok()).unwrap_or(0)
    };
    let (handle, handle_of_sizes) = (prometheus.handle(), prometheus.handle());
    let (mut counts, mut size_counts) = (0, 0);
    let mut own_sizes = histogram();
    let seen = Arc::new(Aggregating {
        count: AtomicU64::new(0),
        sizes: Mutex::new(histogram()),
        begun: Mutex::default(),
        durations: Mutex::new(histogram()),
    });
    let subscriber = tracing_subscriber::registry().with(AggregatingLayer(Arc::clone(&seen)));
    tracing::subscriber::set_global_default(subscriber).expect("the first one");
    let (seen_sizes, seen_durations) = (Arc::clone(&seen), Arc::clone(&seen));
    vec![
        Contender {
            question: COUNT,
            name: "`metrics`, a counter whose handle is kept",
            run: Box::new(move |n| {
                let nanoseconds = timed(n, |_| counter.increment(1));
                let now = counted(&handle, "events ");
                Run { nanoseconds, counted: now - std::mem::replace(&mut counts, now) }
            }),
        },
        Contender {
            question: COUNT,
            name: "`tracing`, a layer with an atomic counter",
            run: Box::new(move |n| {
                let nanoseconds = timed(n, |n| tracing::info!(target: "count", n));
                Run { nanoseconds, counted: seen.count.swap(0, Ordering::Relaxed) }
            }),
        },
        Contender {
            question: SIZE,
            name: "`hdrhistogram`, one that the thread owns",
            run: Box::new(move |n| {
                let nanoseconds = timed(n, |n| own_sizes.record(size(n)).expect("in range"));
                Run { nanoseconds, counted: taken(&mut own_sizes) }
            }),
        },
        Contender {
            question: SIZE,
            name: "`metrics`, a histogram whose handle is kept",
            run: Box::new(move |n| {
                let nanoseconds = timed(n, |n| sizes.record(size(n) as f64));
                let now = counted(&handle_of_sizes, "sizes_count ");
                Run { nanoseconds, counted: now - std::mem::replace(&mut size_counts, now) }
            }),
        },
        Contender {
            question: SIZE,
            name: "`tracing`, a layer with `hdrhistogram`",
            run: Box::new(move |n| {
                let nanoseconds = timed(n, |n| tracing::info!(target: "size", size = size(n)));
                Run { nanoseconds, counted: taken(&mut lock(&seen_sizes.sizes)) }
            }),
        },
        Contender {
            question: TIME,
            name: "`tracing`, a layer with a map of `Instant`s and `hdrhistogram`",
            run: Box::new(move |n| {
                let nanoseconds = timed(n, |n| {
                    tracing::info!(target: "begin", id = n);
                    tracing::info!(target: "end", id = n);
                });
                Run { nanoseconds, counted: taken(&mut lock(&seen_durations.durations)) }
            }),
        },
    ]
}

fn main() -> Result<()> {
    let options = Options::parse();
    if cpu::pin().is_none() {
        eprintln!("statistics: the system refuses to pin the thread: the figures scatter more");
    }
    let _ = clock::calibrate(std::time::Duration::from_millis(10));
    let mut contenders: Vec<_> = ours().into_iter().chain(peers()).collect();
    let mut times = vec![Vec::new(); contenders.len()];
    for _ in 0..=options.rounds {
        for (contender, times) in contenders.iter_mut().zip(&mut times) {
            let run = (contender.run)(options.events);
            ensure!(
                run.counted == options.events,
                "{} has {} of {} events",
                contender.name,
                run.counted,
                options.events
            );
            times.push(run.nanoseconds);
        }
    }
    println!("| question | answered by | ns | added | of the first of ours |");
    println!("|---|---|---|---|---|");
    let mut floor: &[f64] = &[];
    for question in [COUNT, SIZE, TIME] {
        let mut ours: &[f64] = &[];
        for (contender, times) in contenders.iter().zip(&times).filter(|(contender, _)| contender.question == question)
        {
            // The first round is a warm-up.
            let times = &times[1..];
            let with = |other: &[f64], of: fn(f64, f64) -> f64| {
                Interval::of(times.iter().zip(other).map(|(time, other)| of(*time, *other)).collect())
            };
            if contender.name == FLOOR {
                floor = times;
            } else if ours.is_empty() && contender.name.starts_with("ours") {
                ours = times;
            }
            let added = with(floor, |time, floor| time - floor);
            let ratio = if ours.is_empty() {
                String::new()
            } else {
                format!("{:.2}", with(ours, |time, ours| time / ours).median)
            };
            let time = Interval::of(times.to_vec());
            println!(
                "| {question} | {} | {:.2} ({:.2} to {:.2}) | {:+.2} ({:+.2} to {:+.2}) | {ratio} |",
                contender.name, time.median, time.low, time.high, added.median, added.low, added.high
            );
        }
    }
    Ok(())
}
