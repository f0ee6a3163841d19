//! The cost of an event of `tracing` for different listeners: our layer, `fmt` to nowhere and to `tracing-appender`, tokio-console's layer. For
//! comparison, an event of `define_trace!` and one of `fastrace`. Two listeners store nothing: a subscriber that looks at the values, which is the
//! minimum cost of any subscriber, and a layer with a filter that does so, which is the minimum for a layer that hides nothing from other layers.
//!
//! tokio-console's layer starts only in builds with `RUSTFLAGS='--cfg tokio_unstable'`; other builds report that it is missing.
//!
//! A program has only one global subscriber, and a scoped one costs more. Each contender therefore runs in a separate process, which this program
//! starts again in each round, one contender after the other. All have the same event: two numbers, a text and a message.

use anyhow::{Context as _, Result, ensure};
use clap::{Parser, ValueEnum};
use fastrace::collector::{Config, Reporter, SpanContext, SpanRecord};
use fastrace::local::LocalSpan;
use std::hint::black_box;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tracepoint_peers::cpu;
use tracepoint_peers::interval::Interval;
use tracepoint_peers::lines::{self, CountLines};
use tracepoint_session::{Channel, Session};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::prelude::*;
use tracing_subscriber::{Layer, layer};

tracepoint::define_trace! {
    provider = "layers";
    answered(id: u64, size: u64, path: &str) { id, size, path }
}

/// Number of events per turn: fastrace keeps 10,240.
const EVENTS: u64 = 8_000;
/// Number of turns of a process; the first one is a warm-up.
const TURNS: usize = 41;

/// Measures the cost of an event of `tracing` for different listeners.
///
/// Prints a Markdown table: nanoseconds for each event, medians over the rounds with their 95 % intervals, over an empty loop.
#[derive(Debug, Parser)]
struct Options {
    /// Number of rounds
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Measure this one in this process, and print its nanoseconds for each event
    #[arg(long, hide = true)]
    contender: Option<Contender>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Contender {
    Loop,
    Declared,
    Bare,
    BareLayer,
    Layer,
    LayerOff,
    Fmt,
    Appender,
    #[cfg(tokio_unstable)]
    Console,
    Fastrace,
}

impl Contender {
    fn title(self) -> &'static str {
        match self {
            Self::Loop => "an empty loop",
            Self::Declared => "`define_trace!`, recorded",
            Self::Bare => "`tracing` with a subscriber that looks at the values",
            Self::BareLayer => "`tracing` with a layer and its filter that look at the values",
            Self::Layer => "`tracing` with our layer, recorded",
            Self::LayerOff => "`tracing` with our layer, off",
            Self::Fmt => "`tracing-subscriber` `fmt`, to nowhere",
            Self::Appender => "the same by `tracing-appender`",
            #[cfg(tokio_unstable)]
            Self::Console => "`tracing` with tokio-console's layer, which keeps no such event",
            Self::Fastrace => "`fastrace`, a `LocalSpan` with the fields",
        }
    }

    /// Nanoseconds for each event: the median of the turns.
    fn measure(self) -> Result<f64> {
        match self {
            Self::Loop => turns(|_| {}, || Ok(EVENTS)),
            Self::Declared => {
                let _session = record("layers:answered")?;
                turns(|n| tracepoint::trace!(answered(n, 2 * n, "/cart")), || Ok(EVENTS))
            }
            Self::Bare => {
                tracing::subscriber::set_global_default(Bare)?;
                turns(event, || Ok(SEEN.swap(0, Ordering::Relaxed)))
            }
            Self::BareLayer => {
                tracing_subscriber::registry().with(Bare.with_filter(LevelFilter::TRACE)).init();
                turns(event, || Ok(SEEN.swap(0, Ordering::Relaxed)))
            }
            Self::Layer | Self::LayerOff => {
                tracing_subscriber::registry().with(tracepoint_tracing::layer()).init();
                // A session in code records the callsites that are known when it starts.
                event(0);
                let _session = if self == Self::Layer { Some(record("tracing:layers*")?) } else { None };
                // The layer's interest is `sometimes` at first, and `tracing` queries it at each event. After 4096 such queries a thread of the
                // layer makes `tracing` query it once more, and the interest becomes `never`, or `always` if a session records.
                (0..EVENTS).for_each(event);
                std::thread::sleep(Duration::from_millis(200));
                turns(event, || Ok(EVENTS))
            }
            Self::Fmt => {
                tracing_subscriber::fmt().with_ansi(false).with_writer(CountLines).init();
                turns(event, || Ok(lines::take()))
            }
            Self::Appender => {
                let (writer, _guard) = cpu::anywhere(|| tracing_appender::non_blocking(CountLines));
                tracing_subscriber::fmt().with_ansi(false).with_writer(writer).init();
                turns(event, || {
                    let mut written = 0;
                    while written < EVENTS {
                        std::thread::sleep(Duration::from_millis(1));
                        written += lines::take();
                    }
                    Ok(written)
                })
            }
            #[cfg(tokio_unstable)]
            Self::Console => {
                let (layer, _server) = console_subscriber::ConsoleLayer::builder().build();
                tracing_subscriber::registry().with(layer).init();
                turns(event, || Ok(EVENTS))
            }
            Self::Fastrace => fastrace_turns(),
        }
    }
}

#[inline(never)]
fn event(n: u64) {
    tracing::info!(target: "layers", id = n, size = 2 * n, path = "/cart", "answered");
}

/// Records into rings in memory, which keep the newest packets.
fn record(rule: &str) -> Result<Session> {
    let channel = Channel::overwrite(4 << 20);
    Ok(Session::builder("layers").events(rule).channel(channel).in_memory().start()?)
}

/// The median of several turns; after each, `kept` returns the number of events that were kept.
fn turns(event: impl Fn(u64), mut kept: impl FnMut() -> Result<u64>) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..TURNS {
        times.push(turn(&event));
        let kept = kept()?;
        ensure!(kept == EVENTS, "{kept} of {EVENTS}");
    }
    Ok(median(times))
}

#[inline(always)]
fn turn(event: impl Fn(u64)) -> f64 {
    let began = Instant::now();
    for n in 0..EVENTS {
        event(black_box(n));
    }
    began.elapsed().as_secs_f64() * 1e9 / EVENTS as f64
}

fn median(mut times: Vec<f64>) -> f64 {
    times.remove(0);
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

static SEEN: AtomicU64 = AtomicU64::new(0);

/// Looks at the values.
struct Bare;

impl Bare {
    fn see(event: &Event<'_>) {
        struct Values(u64);
        impl Visit for Values {
            fn record_u64(&mut self, _: &Field, value: u64) {
                self.0 ^= value;
            }
            fn record_str(&mut self, _: &Field, value: &str) {
                self.0 ^= value.len() as u64;
            }
            fn record_debug(&mut self, _: &Field, value: &dyn std::fmt::Debug) {
                black_box(value);
            }
        }
        let mut values = Values(0);
        event.record(&mut values);
        black_box(values.0);
        SEEN.store(SEEN.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

impl Subscriber for Bare {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        Self::see(event);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

impl<S: Subscriber> Layer<S> for Bare {
    fn on_event(&self, event: &Event<'_>, _: layer::Context<'_, S>) {
        Self::see(event);
    }
}

static REPORTED: AtomicU64 = AtomicU64::new(0);

struct Counting;

impl Reporter for Counting {
    fn report(&mut self, spans: Vec<SpanRecord>) {
        let answered = spans.iter().filter(|span| span.name == "answered");
        REPORTED.fetch_add(answered.count() as u64, Ordering::Relaxed);
    }
}

fn fastrace_turns() -> Result<f64> {
    fastrace::set_reporter(Counting, Config::default().report_interval(Duration::from_secs(86_400)));
    let mut times = Vec::new();
    for _ in 0..TURNS {
        let root = fastrace::Span::root("layers", SpanContext::random());
        let guard = root.set_local_parent();
        times.push(turn(|n| {
            let span = LocalSpan::enter_with_local_parent("answered");
            let fields = || [("id", n.to_string()), ("size", (2 * n).to_string()), ("path", "/cart".to_owned())];
            drop(span.with_properties(fields));
        }));
        drop(guard);
        drop(root);
        fastrace::flush();
        let kept = REPORTED.swap(0, Ordering::Relaxed);
        ensure!(kept == EVENTS, "{kept} of {EVENTS}");
    }
    Ok(median(times))
}

fn main() -> Result<()> {
    let options = Options::parse();
    if let Some(contender) = options.contender {
        if cpu::pin().is_none() {
            eprintln!("layers: the system refuses to pin the thread: the figures scatter more");
        }
        println!("{}", contender.measure()?);
        return Ok(());
    }
    if cfg!(not(tokio_unstable)) {
        eprintln!("layers: WITHOUT tokio-console: build with RUSTFLAGS='--cfg tokio_unstable' for its row");
    }
    let this = std::env::current_exe()?;
    let contenders = Contender::value_variants();
    let mut times = vec![Vec::new(); contenders.len()];
    for _ in 0..options.rounds {
        for (contender, times) in contenders.iter().zip(&mut times) {
            let name = contender.to_possible_value().context("a name")?;
            let output = Command::new(&this).args(["--contender", name.get_name()]).output()?;
            ensure!(output.status.success(), "{}: {}", name.get_name(), String::from_utf8_lossy(&output.stderr));
            times.push(String::from_utf8(output.stdout)?.trim().parse::<f64>()?);
        }
    }
    println!("| event | ns | over the loop |");
    println!("|---|---|---|");
    for (contender, of_it) in contenders.iter().zip(&times) {
        let added = of_it.iter().zip(&times[0]).map(|(time, floor)| time - floor).collect();
        let (time, added) = (Interval::of(of_it.clone()), Interval::of(added));
        println!(
            "| {} | {:.1} ({:.1} to {:.1}) | {:+.1} ({:+.1} to {:+.1}) |",
            contender.title(),
            time.median,
            time.low,
            time.high,
            added.median,
            added.low,
            added.high
        );
    }
    Ok(())
}
