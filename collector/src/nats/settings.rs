//! Settings for taking traces from a broker.

use std::time::Duration;
use tracepoint_wire::nats;

/// Default time after which an unchanged lease may be taken over.
pub const DEFAULT_LEASE: Duration = Duration::from_secs(10);
/// Minimum lease time. Commits happen at a quarter of it, and must succeed in time.
pub const MIN_LEASE: Duration = Duration::from_secs(1);

/// Settings for taking traces from a broker.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) broker: nats::Broker,
    pub(crate) lease: Duration,
}
