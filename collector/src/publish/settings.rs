//! Where traces are published.

use std::time::Duration;
use tracepoint_wire::nats;

/// How long is published at the end, by default.
pub const DEFAULT_FLUSH: Duration = Duration::from_secs(10);

/// Where traces are published.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) broker: nats::Broker,
    /// How long is published at the end.
    pub(crate) flush: Duration,
}
