//! Code shared by the benches: the events that they fire, channels to record them, and the lower bound of a drain.
#![deny(unsafe_code)]

mod children;
pub mod floor;

pub use children::children_time;

use std::sync::Arc;
use std::time::Duration;
use tracepoint::filter::{Expression, Program};
use tracepoint::marker::{Aggregate, FieldView, Subscriber, Subscription};
use tracepoint::{Marker, find};
use tracepoint_ring::channel::{AnonymousMemory, Channel, OpenChannel};
use tracepoint_ring::clock;

tracepoint::define_trace! {
    provider = "bench";

    /// The small workload: two 32-bit numbers and a 64-bit one, 24 bytes with the header word.
    pub small(a: i32, b: i32, c: i64) { a: i32 = a, b: i32 = b, c: i64 = c }

    /// The workload with text.
    pub text(name: &str, n: u64) { name: str = name, n: u64 = n }
}

/// Recording into `n` channels at once: one evaluation, `n` records.
#[derive(Debug)]
pub struct Recording {
    channels: Vec<Arc<OpenChannel>>,
    subscriptions: Vec<Subscription>,
}

impl Recording {
    /// Subscribes `n` flight-recorder channels, whose rings never fill, to the marker called `name`. The clock is the time stamp
    /// counter, if there is one.
    ///
    /// # Panics
    ///
    /// If there is no such marker, or no memory for the rings.
    pub fn start(name: &str, n: usize) -> Self {
        Self::into(name, n, &Self::channel())
    }

    /// The channels of [`start`](Self::start).
    pub fn channel() -> Channel {
        Channel::overwrite(256 << 10).spares(1)
    }

    /// The same with other channels.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    pub fn into(name: &str, n: usize, config: &Channel) -> Self {
        // As a session does. If the counter is unreliable, the clock is `clock_gettime`.
        let _ = clock::calibrate(Duration::from_millis(10));
        let marker: &'static Marker = find(name).expect("declared above").marker().expect("has fields");
        let channels: Vec<_> = (0..n)
            .map(|class| {
                OpenChannel::open(config.clone(), [9; 16], class as u32, 1, Box::new(AnonymousMemory)).expect("memory")
            })
            .collect();
        let subscriptions = channels
            .iter()
            .map(|channel| {
                let id = channel.add_event().expect("room for one event");
                marker.subscribe(Subscriber::record(Arc::clone(channel), id)).expect("sites can be switched")
            })
            .collect();
        Self { channels, subscriptions }
    }

    /// Number of committed records, over all channels.
    pub fn recorded(&self) -> u64 {
        self.channels.iter().flat_map(|channel| channel.account().events).map(|event| event.recorded).sum()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        Subscription::end_all(std::mem::take(&mut self.subscriptions));
        for channel in &self.channels {
            channel.close();
        }
    }
}

/// The work of a trigger at an event that its rule does not match.
struct Watch(Program);

impl Aggregate for Watch {
    fn observe(&self, _: u64, event: FieldView<'_>) {
        assert!(!self.0.accepts(|field| event.get(field)), "no event matches");
    }
}

/// Subscribes a trigger's watch to the small workload, for events that never occur.
///
/// # Panics
///
/// If sites cannot be switched.
pub fn watch() -> Subscription {
    let marker = find("bench:small").expect("declared above").marker().expect("has fields");
    let filter = Expression::parse("c > 4_000_000_000").expect("a filter").compile(marker.fields()).expect("it fits");
    let range = filter.first_range().expect("it begins with a comparison");
    marker.subscribe(Subscriber::aggregate(Arc::new(Watch(filter))).in_range(range)).expect("sites can be switched")
}
