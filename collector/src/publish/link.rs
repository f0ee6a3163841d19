//! A connection to the broker for publishing.

use crate::broker_status::PublishStatus;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::timeout;
use tracepoint_wire::nats::{Broker, JetStream, JetStreamError};

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

/// The connection cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    #[error(transparent)]
    Refused(#[from] JetStreamError),
    #[error("the broker does not answer in time")]
    Timeout,
    #[error("the connection is lost")]
    Lost,
}

impl Link {
    /// Connects, unless the collector's time for publishing ends first.
    pub(super) async fn open(broker: &Broker, status: &PublishStatus) -> Result<Self, LinkError> {
        let is_lost = Arc::new(AtomicBool::new(false));
        let lost = Arc::clone(&is_lost);
        let lost = move || lost.store(true, Ordering::Relaxed);
        let mut opening = Box::pin(JetStream::open(broker, "tracectl collect --publish", lost));
        loop {
            if let Ok(opened) = timeout(TICK, &mut opening).await {
                return Ok(Self { stream: opened?, is_lost, is_given_up: Cell::new(false) });
            }
            if status.is_over() {
                return Err(LinkError::Timeout);
            }
        }
    }

    /// Fails if the connection can no longer be used.
    pub(super) fn check(&self) -> Result<(), LinkError> {
        if self.is_lost.load(Ordering::Relaxed) || self.is_given_up.get() {
            return Err(LinkError::Lost);
        }
        Ok(())
    }

    /// Makes all traces switch to a new connection.
    pub(super) fn give_up(&self) {
        self.is_given_up.set(true);
    }
}
