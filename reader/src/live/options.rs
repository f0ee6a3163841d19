//! How a session is viewed.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tracepoint_wire::stream::SharedKey;

/// How a session is viewed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LiveOptions {
    /// Whether to begin at the first packet that the relay has, rather than at those that arrive from now on. Relays may deliver older
    /// packets all the same.
    pub from_beginning: bool,
    /// How long the relay may leave a request unanswered. The default is 30 seconds.
    pub silence: Duration,
    /// How long it is waited for the metadata of a trace that was announced. The default is 10 seconds.
    pub metadata_wait: Duration,
    /// Set by another thread or a signal handler to end the view.
    pub stop: Arc<AtomicBool>,
    /// The key that the collector has, too. Without one, a collector that asks for it is an error; with one, a relay that does not.
    pub key: Option<SharedKey>,
}

impl Default for LiveOptions {
    fn default() -> Self {
        let (silence, metadata_wait) = (Duration::from_secs(30), Duration::from_secs(10));
        Self { from_beginning: false, silence, metadata_wait, stop: Arc::default(), key: None }
    }
}
