//! Where traces are taken from.

use std::time::Duration;
use tracepoint_wire::nats;

/// The time after which a lease that does not change may be taken, by default.
pub const DEFAULT_LEASE: Duration = Duration::from_secs(10);
/// The shortest one: commits are a quarter of it apart, and must come through.
pub const LEAST_LEASE: Duration = Duration::from_secs(1);

/// Where traces are taken from.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) broker: nats::Broker,
    pub(crate) lease: Duration,
}
