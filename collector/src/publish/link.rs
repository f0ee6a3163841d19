//! A connection to the broker to which is published.

use super::status::Status;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::timeout;
use tracepoint_wire::nats::{Broker, JetStream};

/// The pause between two looks at whether there is time left.
const TICK: Duration = Duration::from_millis(50);

/// A connection, which is of no further use once it is lost.
pub(super) struct Link {
    pub(super) stream: JetStream,
    /// Its client says so.
    is_lost: Arc<AtomicBool>,
    /// A message was not stored.
    is_given_up: Cell<bool>,
}

impl Link {
    /// Connects, unless the collector has no more time before that.
    pub(super) async fn open(broker: &Broker, status: &Status) -> Result<Self, String> {
        let is_lost = Arc::new(AtomicBool::new(false));
        let lost = Arc::clone(&is_lost);
        let lost = move || lost.store(true, Ordering::Relaxed);
        let mut opening = Box::pin(JetStream::open(broker, "tracectl collect --publish", lost));
        loop {
            if let Ok(opened) = timeout(TICK, &mut opening).await {
                return Ok(Self { stream: opened?, is_lost, is_given_up: Cell::new(false) });
            }
            if status.is_over() {
                return Err("the broker does not answer in time".to_owned());
            }
        }
    }

    /// Why it is of no further use, if that is so.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.is_lost.load(Ordering::Relaxed) || self.is_given_up.get() {
            return Err("the connection is lost".to_owned());
        }
        Ok(())
    }

    /// Has all traces go on with another one.
    pub(super) fn give_up(&self) {
        self.is_given_up.set(true);
    }
}
