//! A connection to the broker for publishing.

use crate::broker_status::PublishStatus;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::timeout;
use tracepoint_wire::nats::{Broker, JetStream};

/// Interval at which the remaining time is checked.
const TICK: Duration = Duration::from_millis(50);

/// A connection. It is replaced once it is lost.
pub(super) struct Link {
    pub(super) stream: JetStream,
    /// Set by the client when the connection is lost.
    is_lost: Arc<AtomicBool>,
    /// Set when a message was not stored.
    is_given_up: Cell<bool>,
}

impl Link {
    /// Connects, unless the collector's time for publishing ends first.
    pub(super) async fn open(broker: &Broker, status: &PublishStatus) -> Result<Self, String> {
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

    /// Fails if the connection can no longer be used.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.is_lost.load(Ordering::Relaxed) || self.is_given_up.get() {
            return Err("the connection is lost".to_owned());
        }
        Ok(())
    }

    /// Makes all traces switch to a new connection.
    pub(super) fn give_up(&self) {
        self.is_given_up.set(true);
    }
}
