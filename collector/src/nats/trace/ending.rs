//! The end of collecting a trace.

use super::{End, TICK, Trace};
use crate::nats::lease::{CommitResult, State};
use crate::nats::stale;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Maximum time for completing files when a trace ends here.
const END_TIME: Duration = Duration::from_secs(10);

impl Trace {
    pub(super) async fn finish(mut self, end: End) {
        let at = match end {
            End::Lost(at) => {
                self.of.say(format!("another collector goes on with `{}`", self.name));
                Some(at)
            }
            End::Released => {
                self.until(END_TIME, |trace| {
                    trace.pop_dealt();
                    trace.waiting.is_empty()
                })
                .await;
                match self.last_commit(State::Released).await {
                    CommitResult::Lost(at) => Some(at),
                    // If the commit failed, the lease expires, and the next collector here checks it.
                    CommitResult::Unknown(_) => None,
                    CommitResult::Committed => Some(self.held.lease.position.clone()),
                }
            }
            End::Done => {
                // No more messages arrive, so none is waited for.
                self.dealt = self.received;
                self.close().await;
                match self.last_commit(State::Done).await {
                    CommitResult::Lost(at) => Some(at),
                    CommitResult::Unknown(_) => None,
                    CommitResult::Committed => {
                        stale::unmark(&self.root);
                        if let Err(error) = self.broker.purge_all(&self.subject).await {
                            self.of.say(error.to_string());
                        }
                        let _ = self.broker.stream.delete_consumer(&self.consumer_name()).await;
                        return;
                    }
                }
            }
        };
        self.close().await;
        let _ = self.broker.stream.delete_consumer(&self.consumer_name()).await;
        if let Some(at) = at
            && let Some(message) = stale::end(&self.root, &self.name, &at)
        {
            self.of.say(message);
        }
    }

    /// Commits until the result is known or the lease has expired.
    async fn last_commit(&mut self, state: State) -> CommitResult {
        loop {
            let committed = self.commit(state).await;
            if !matches!(committed, CommitResult::Unknown(_)) || self.held.is_in_doubt(self.of.settings.lease) {
                return committed;
            }
            sleep(super::AGAIN).await;
        }
    }

    /// Closes the session and waits until its files are complete.
    async fn close(&mut self) {
        {
            let hub = &mut self.of.shared.hub.borrow_mut();
            self.control.ended(hub, Instant::now());
            hub.close_session(self.session, Instant::now());
        }
        self.until(END_TIME, |trace| {
            let hub = trace.of.shared.hub.borrow();
            hub.session(trace.session).is_none_or(crate::hub::Session::is_closed)
        })
        .await;
    }

    async fn until(&mut self, time: Duration, mut is_so: impl FnMut(&mut Self) -> bool) {
        let until = Instant::now() + time;
        while !is_so(self) && Instant::now() < until {
            sleep(TICK).await;
        }
    }
}
