//! The cost of one event at its site, on this machine and in this build: measured once, when it is first needed.

use crate::catalog::OWN;
use crate::channel_room;
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;
use tracepoint_core::channel::{AnonymousMemory, Channel, OpenChannel};
use tracepoint_core::marker::{Subscriber, Subscription};
use tracepoint_sinks::own_thread;

tracepoint_core::define_trace! {
    provider = "tracepoint";

    /// Fired to measure the cost of an event.
    #[level(Debug)]
    pub(super) measured(n: u64, twice: u64) { n: u64 = n, twice: u64 = twice }
}

/// The number of events fired to warm up, and the number measured.
const WARM_UP: u64 = 1000;
const EVENTS: u64 = 20_000;
/// The cost of an event from `docs/costs.md`, used if it cannot be measured.
const DEFAULT_COST: Duration = Duration::from_nanos(12);

/// Returns the time that `count` events take: events of 16 bytes, without filter or contexts, in one recording. Other events take longer.
pub(super) fn of_events(count: u64) -> Duration {
    static COST: OnceLock<Duration> = OnceLock::new();
    let of_many = *COST.get_or_init(|| measure().unwrap_or(DEFAULT_COST * EVENTS as u32));
    Duration::from_nanos(u64::try_from(of_many.as_nanos() * u128::from(count) / u128::from(EVENTS)).unwrap_or(u64::MAX))
}

/// Measures the processor time of `EVENTS` events, in about a millisecond on a separate thread with a separate channel.
fn measure() -> Option<Duration> {
    let thread = own_thread::spawn_traced("tracepoint-cost", || {
        let channel = Channel::overwrite(64 << 10).spares(1).max_rings(1);
        let channel = OpenChannel::open(channel, [0; 16], 0, 1, Box::new(AnonymousMemory)).ok()?;
        let taken = subscribed(&channel).and_then(|subscription| {
            let taken = channel.restrict_this_thread().then(fire);
            drop(subscription);
            taken
        });
        channel_room::close(&channel);
        taken
    });
    thread.ok()?.join().ok()?
}

fn subscribed(channel: &Arc<OpenChannel>) -> Option<Subscription> {
    let marker = tracepoint_core::markers().find(|marker| marker.provider() == OWN && marker.name() == "measured")?;
    marker.subscribe(Subscriber::record(Arc::clone(channel), channel.add_event().ok()?)).ok()
}

fn fire() -> Duration {
    let fire = |count| (0..count).for_each(|n| tracepoint_core::trace!(measured(n, 2 * n)));
    fire(WARM_UP);
    let began = own_thread::cpu_time();
    fire(EVENTS);
    own_thread::cpu_time().saturating_sub(began)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_take_time_in_proportion() {
        let many = of_events(1 << 20);
        assert!(many > Duration::ZERO);
        assert!(of_events(2 << 20) + Duration::from_nanos(2) >= many * 2);
        assert_eq!(of_events(0), Duration::ZERO);
        let _ = of_events(u64::MAX);
    }

    #[test]
    fn the_cost_can_be_measured() {
        assert!(measure().is_some_and(|taken| taken > Duration::ZERO));
    }
}
