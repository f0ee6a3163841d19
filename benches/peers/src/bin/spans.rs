//! The cost of a span, its beginning and its end together: ours, `fastrace`, and `tracing` with a subscriber that writes to a ring.
//!
//! The contenders take turns in each round, in one thread that is pinned to a processor. Each span has one number, which the peers record
//! as a property. Every contender's spans are counted at the end of its turn.

use anyhow::{Result, ensure};
use clap::Parser;
use fastrace::collector::{Config, Reporter, SpanContext, SpanRecord};
use fastrace::local::LocalSpan;
use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tracepoint::marker::{Subscriber, Subscription};
use tracepoint_peers::cpu;
use tracepoint_peers::interval::Interval;
use tracepoint_ring::channel::{AnonymousMemory, Channel, OpenChannel};
use tracepoint_ring::clock;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber as TracingSubscriber};

tracepoint::define_trace! {
    provider = "spans";
    span off(id: u64) { id }
    span request(id: u64) { id }
}

/// Measures the cost of a span, its beginning and its end together.
///
/// Prints a Markdown table: nanoseconds for each span, medians with their 95 % intervals, over an empty loop in the same round.
#[derive(Debug, Parser)]
struct Options {
    /// Number of rounds
    #[arg(long, default_value_t = 201, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Spans of each contender in each round; fastrace keeps 10,240
    #[arg(long, default_value_t = 8_000, value_parser = clap::value_parser!(u64).range(1..=8_000))]
    spans: u64,
    /// Only the contenders whose names contain this; with one round, for callgrind
    #[arg(long, default_value = "")]
    only: String,
}

struct Contender {
    name: &'static str,
    run: Box<dyn FnMut(u64) -> Run>,
}

struct Run {
    nanoseconds: f64,
    counted: u64,
}

#[inline(always)]
fn timed(spans: u64, mut span: impl FnMut(u64)) -> f64 {
    let began = Instant::now();
    for n in 0..spans {
        span(black_box(n));
    }
    began.elapsed().as_secs_f64() * 1e9 / spans as f64
}

fn ours() -> Contender {
    let channel = OpenChannel::open(Channel::overwrite(4 << 20).spares(2), [1; 16], 0, 2, Box::new(AnonymousMemory));
    let channel = channel.expect("memory");
    let ids = [(); 2].map(|()| channel.add_event().expect("an id"));
    let run = move |n| {
        let recorded = || channel.account().events.iter().map(|event| event.recorded).sum::<u64>();
        let before = recorded();
        let events = [("spans:request_begin", ids[0]), ("spans:request_end", ids[1])];
        let subscriptions = events.map(|(name, id)| {
            let marker = tracepoint::find(name).expect("declared").marker().expect("has fields");
            marker.subscribe(Subscriber::record(Arc::clone(&channel), id)).expect("switches")
        });
        // The thread acquires its ring.
        drop(tracepoint::span!(request(0)));
        let nanoseconds = timed(n, |n| drop(tracepoint::span!(request(n))));
        Subscription::end_all(subscriptions.into());
        Run { nanoseconds, counted: (recorded() - before) / 2 - 1 }
    };
    Contender { name: "ours, recorded", run: Box::new(run) }
}

static REPORTED: AtomicU64 = AtomicU64::new(0);

struct Counting;

impl Reporter for Counting {
    fn report(&mut self, spans: Vec<SpanRecord>) {
        let requests = spans.iter().filter(|span| span.name == "request");
        REPORTED.fetch_add(requests.count() as u64, Ordering::Relaxed);
    }
}

fn fastrace(name: &'static str, span: fn(u64)) -> Contender {
    let run = move |n| {
        let root = fastrace::Span::root("peers", SpanContext::random());
        let guard = root.set_local_parent();
        let nanoseconds = timed(n, span);
        drop(guard);
        drop(root);
        fastrace::flush();
        Run { nanoseconds, counted: REPORTED.swap(0, Ordering::Relaxed) }
    };
    Contender { name, run: Box::new(run) }
}

/// The size of the ring.
const RING: usize = 4 << 20;

thread_local! {
    /// Records of the time and two numbers, and the offset of the next one.
    static WRITTEN: (RefCell<Vec<u8>>, Cell<usize>) = (RefCell::new(vec![0; RING]), const { Cell::new(0) });
    static SPANS: Cell<u64> = const { Cell::new(0) };
}

fn write(id: u64, number: u64) {
    WRITTEN.with(|(ring, place)| {
        let at = place.get();
        let mut ring = ring.borrow_mut();
        for (part, value) in [clock::now(), id, number].into_iter().enumerate() {
            ring[at + 8 * part..][..8].copy_from_slice(&value.to_le_bytes());
        }
        place.set(if at + 48 > RING { 0 } else { at + 24 });
    });
}

/// The cheapest subscriber of `tracing` that records spans: it writes a record to this thread's ring at each end.
struct RingSubscriber;

struct Number(u64);

impl Visit for Number {
    fn record_u64(&mut self, _: &Field, value: u64) {
        self.0 = value;
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

impl TracingSubscriber for RingSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() != "off"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut number = Number(0);
        span.record(&mut number);
        let id = SPANS.get() + 1;
        SPANS.set(id);
        write(id, number.0);
        Id::from_u64(id)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &tracing::Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}

    fn try_close(&self, id: Id) -> bool {
        write(id.into_u64(), 0);
        true
    }
}

fn off(name: &'static str, span: fn(u64)) -> Contender {
    Contender { name, run: Box::new(move |n| Run { nanoseconds: timed(n, span), counted: n }) }
}

fn contenders() -> Vec<Contender> {
    fastrace::set_reporter(Counting, Config::default().report_interval(Duration::from_secs(86_400)));
    tracing::subscriber::set_global_default(RingSubscriber).expect("the first one");
    vec![
        off("an empty loop", |_| {}),
        off("ours, off", |n| drop(tracepoint::span!(off(n)))),
        off("`tracing`, off", |n| drop(tracing::info_span!(target: "off", "request", id = n).entered())),
        off("`fastrace`, without a parent", |_| drop(LocalSpan::enter_with_local_parent("request"))),
        ours(),
        fastrace("`fastrace`, a `LocalSpan` without the number", |_| {
            drop(LocalSpan::enter_with_local_parent("request"));
        }),
        fastrace("`fastrace`, a `LocalSpan` with the number", |n| {
            drop(LocalSpan::enter_with_local_parent("request").with_property(|| ("id", n.to_string())));
        }),
        Contender {
            name: "`tracing`, a subscriber that writes to a ring",
            run: Box::new(|n| {
                let before = SPANS.get();
                let nanoseconds = timed(n, |n| drop(tracing::info_span!("request", id = n).entered()));
                Run { nanoseconds, counted: SPANS.get() - before }
            }),
        },
    ]
}

fn main() -> Result<()> {
    let options = Options::parse();
    if cpu::pin().is_none() {
        eprintln!("spans: the system refuses to pin the thread: the figures scatter more");
    }
    let _ = clock::calibrate(Duration::from_millis(10));
    let mut contenders = contenders();
    contenders.retain(|contender| contender.name.contains(&options.only));
    let mut times = vec![Vec::new(); contenders.len()];
    for _ in 0..=options.rounds {
        for (contender, times) in contenders.iter_mut().zip(&mut times) {
            let run = (contender.run)(options.spans);
            ensure!(run.counted == options.spans, "{} has {} of {}", contender.name, run.counted, options.spans);
            times.push(run.nanoseconds);
        }
    }
    println!("| span | ns | over the loop |");
    println!("|---|---|---|");
    for (contender, of_it) in contenders.iter().zip(&times) {
        // The first round is a warm-up.
        let added = of_it[1..].iter().zip(&times[0][1..]).map(|(time, floor)| time - floor).collect();
        let (time, added) = (Interval::of(of_it[1..].to_vec()), Interval::of(added));
        println!(
            "| {} | {:.2} ({:.2} to {:.2}) | {:+.2} ({:+.2} to {:+.2}) |",
            contender.name, time.median, time.low, time.high, added.median, added.low, added.high
        );
    }
    Ok(())
}
