//! Settings for publishing.

use std::time::Duration;
use tracepoint_wire::nats;

/// Default time for publishing during shutdown.
pub const DEFAULT_FLUSH: Duration = Duration::from_secs(10);

/// Settings for publishing.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) broker: nats::Broker,
    /// Maximum time for publishing during shutdown.
    pub(crate) flush: Duration,
}
