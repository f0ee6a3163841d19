//! What an event costs where it happens, on this machine and in this build: measured once, when somebody asks.

use crate::catalog::OWN;
use crate::own_thread::{self, leave_signals_to_the_program};
use std::sync::Arc;
use std::sync::OnceLock;
use std::thread::Builder;
use std::time::Duration;
use tracepoint_core::channel::{AnonymousMemory, Channel, OpenChannel};
use tracepoint_core::marker::{Subscriber, Subscription};

tracepoint_core::define_trace! {
    provider = "tracepoint";

    /// Fired to find out what that takes.
    #[level(Debug)]
    pub(super) measured(n: u64, twice: u64) { n: u64 = n, twice: u64 = twice }
}

/// How many events are fired before it is measured, and how many while.
const BEFORE: u64 = 1000;
const EVENTS: u64 = 20_000;
/// Where it cannot be measured: that of `docs/costs.md`.
const KNOWN: Duration = Duration::from_nanos(12);

/// What so many events take. An event is one of 16 bytes, without filter and contexts, alone in its channel: others take more.
pub(super) fn of_events(count: u64) -> Duration {
    static COST: OnceLock<Duration> = OnceLock::new();
    let of_many = *COST.get_or_init(|| measure().unwrap_or(KNOWN * EVENTS as u32));
    Duration::from_nanos(u64::try_from(of_many.as_nanos() * u128::from(count) / u128::from(EVENTS)).unwrap_or(u64::MAX))
}

/// The processor time of `EVENTS` events, on a thread that no recording has anything of; a millisecond or so.
fn measure() -> Option<Duration> {
    let thread = Builder::new().name("tracepoint-cost".to_owned()).spawn(|| {
        leave_signals_to_the_program();
        let channel = Channel::overwrite(64 << 10).spares(1).max_rings(1);
        let channel = OpenChannel::open(channel, [0; 16], 0, 1, Box::new(AnonymousMemory)).ok()?;
        let taken = subscribed(&channel).and_then(|subscription| {
            let taken = channel.restrict_this_thread().then(fire);
            drop(subscription);
            taken
        });
        channel.close();
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
    fire(BEFORE);
    let began = own_thread::taken();
    fire(EVENTS);
    own_thread::taken().saturating_sub(began)
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
    fn it_can_be_measured() {
        assert!(measure().is_some_and(|taken| taken > Duration::ZERO));
    }
}
