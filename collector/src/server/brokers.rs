//! Starts and ends the tasks that take traces from a broker and that publish traces to one.

use super::{END_TIME, TICK};
use crate::broker_status::{CollectStatus, PublishStatus};
use crate::options::{MIN_LEASE, NatsOptions, Options, PublishOptions};
use crate::shared::ServerState;
use crate::{nats, publish};
use std::rc::Rc;
use std::time::Instant;
use tokio::task::LocalSet;
use tokio::time::sleep;

/// The tasks to start.
#[derive(Debug)]
pub(super) struct Brokers {
    collects: Option<(NatsOptions, nats::Owner, Rc<CollectStatus>)>,
    publishes: Option<(PublishOptions, Rc<PublishStatus>)>,
}

impl Brokers {
    /// Creates the tasks' state. `owner` is for leases.
    pub(super) fn new(options: &Options, owner: Option<nats::Owner>) -> Self {
        let takes = options.nats.clone().map(|nats| NatsOptions { lease: nats.lease.max(MIN_LEASE), ..nats });
        Self {
            collects: takes.zip(owner).map(|(settings, owner)| (settings, owner, Rc::default())),
            publishes: options.publish.clone().map(|settings| {
                let status = Rc::new(PublishStatus::new(settings.flush));
                (settings, status)
            }),
        }
    }

    /// Returns the state of the task that takes traces.
    pub(super) fn collecting(&self) -> Option<Rc<CollectStatus>> {
        self.collects.as_ref().map(|(_, _, status)| Rc::clone(status))
    }

    /// Returns the state of the task that publishes.
    pub(super) fn publishing(&self) -> Option<Rc<PublishStatus>> {
        self.publishes.as_ref().map(|(_, status)| Rc::clone(status))
    }

    /// Starts the tasks.
    pub(super) fn start(self, shared: &Rc<ServerState>, tasks: &LocalSet) {
        if let Some((settings, owner, status)) = self.collects {
            let shared = Rc::clone(shared);
            tasks.spawn_local(async move {
                nats::search(shared, Rc::clone(&status), settings, owner).await;
                status.has_ended.set(true);
            });
        }
        if let Some((settings, status)) = self.publishes {
            let shared = Rc::clone(shared);
            tasks.spawn_local(async move {
                publish::publish(shared, Rc::clone(&status), settings).await;
                status.has_ended.set(true);
            });
        }
    }
}

/// Asks the task that takes traces to release its leases, and waits. Meanwhile the hub keeps storing packets that have arrived.
pub(super) async fn release(shared: &ServerState) {
    let Some(status) = &shared.nats else { return };
    status.is_ending.set(true);
    let end = Instant::now() + END_TIME * 2;
    while !status.has_ended.get() && Instant::now() < end {
        sleep(TICK).await;
        shared.hub.borrow_mut().tick(Instant::now());
    }
}

/// Publishes stored packets until the time for that is over. All sessions are closed.
pub(super) async fn flush(shared: &ServerState) {
    let Some(status) = &shared.publish else { return };
    status.end();
    while !status.has_ended.get() {
        sleep(TICK).await;
    }
}
