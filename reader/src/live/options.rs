//! Options of a live view.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tracepoint_wire::stream::SharedKey;

/// Options of a live view.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LiveOptions {
    /// True to begin at the first packet that the relay has, false to begin at packets that arrive from now on. Relays may deliver older
    /// packets in either case.
    pub from_beginning: bool,
    /// How long the relay may leave a request unanswered. The default is 30 seconds.
    pub silence: Duration,
    /// How long to wait for the metadata of an announced trace. The default is 10 seconds.
    pub metadata_wait: Duration,
    /// Set by another thread or a signal handler to end the view.
    pub stop: Arc<AtomicBool>,
    /// The shared key of the collector. Viewing fails if exactly one of the relay and these options requires a key.
    pub key: Option<SharedKey>,
}

impl Default for LiveOptions {
    fn default() -> Self {
        let (silence, metadata_wait) = (Duration::from_secs(30), Duration::from_secs(10));
        Self { from_beginning: false, silence, metadata_wait, stop: Arc::default(), key: None }
    }
}
