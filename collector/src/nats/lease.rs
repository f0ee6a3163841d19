//! The lease of a trace: the collector that has it, and its progress.
//!
//! A lease is replaced only by compare-and-set on the revision that was read, so each transition has one winner. [`Lease::claim`],
//! [`OwnedLease::commit`] and [`CommitResult::Lost`] implement the transitions; the table of states is in `docs/nats.md`.

use super::broker::{Broker, BrokerError};
use crate::hub::position::{MAX, Position};
use async_nats::jetstream::kv;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use tracepoint_wire::nats::BUCKET;

/// Maximum size of an entry that is read; entries are written up to half of that.
const LARGEST: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// Its owner collects the trace.
    Held,
    /// No collector has the trace. If the broker has further messages of it, any collector may take the lease.
    Released,
    /// The complete trace is stored.
    Done,
}

/// An entry of the bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lease {
    pub(super) state: State,
    /// The id of the collector that has it or had it last.
    pub(super) owner: String,
    /// Number of owners so far, from 1.
    pub(super) epoch: u64,
    /// Changes with each commit.
    count: u64,
    /// Every message of the broker's stream up to this one is processed.
    pub(super) sequence: u64,
    /// The position up to which the trace is stored.
    pub(super) position: Position,
    /// The ends of earlier epochs.
    #[serde(default)]
    ended: Vec<EndedEpoch>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct EndedEpoch {
    owner: String,
    epoch: u64,
    position: Position,
}

impl Lease {
    /// Returns the lease of a trace that no collector has had before.
    pub(super) fn first(owner: &str) -> Self {
        let position = Position { chunk: 1, streams: Vec::new() };
        Self {
            state: State::Held,
            owner: owner.to_owned(),
            epoch: 1,
            count: 0,
            sequence: 0,
            position,
            ended: Vec::new(),
        }
    }

    /// Decodes and validates an entry, which others may have written.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let lease: Self = serde_json::from_slice(bytes.get(..bytes.len().min(LARGEST))?).ok()?;
        let is_plausible = (1..=MAX).contains(&lease.epoch)
            && lease.count <= MAX
            && lease.position.is_plausible()
            && lease.ended.iter().all(|ended| ended.position.is_plausible());
        is_plausible.then_some(lease)
    }

    /// Reads the lease of a trace, and its revision.
    pub(super) async fn read(broker: &Broker, key: &str) -> Result<Option<(Self, u64)>, BrokerError> {
        let entry = broker.leases.entry(key).await.map_err(|error| BrokerError::new("read a lease", &error))?;
        let Some(entry) = entry.filter(|entry| entry.operation == kv::Operation::Put) else { return Ok(None) };
        let lease = Self::parse(&entry.value);
        lease.map(|lease| Some((lease, entry.revision))).ok_or_else(|| {
            BrokerError(format!(
                "the lease `{key}` in the bucket `{BUCKET}` is damaged; delete it (`nats kv del {BUCKET} {key}`), and the trace begins again"
            ))
        })
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        // Numbers and strings can always be written as JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Returns this lease as taken by a collector: with a new epoch, or the same one if that collector holds it already.
    pub(super) fn claim(&self, owner: &str) -> Self {
        let mut lease = Self { state: State::Held, count: self.count + 1, ..self.clone() };
        if self.state == State::Held && self.owner == owner {
            return lease;
        }
        let (former, epoch, position) = (self.owner.clone(), self.epoch, self.position.clone());
        lease.ended.push(EndedEpoch { owner: former, epoch, position });
        (lease.owner, lease.epoch) = (owner.to_owned(), self.epoch + 1);
        lease.position.chunk += 1;
        lease
    }

    /// Returns the end of an epoch of this collector; `None` while the epoch lasts.
    pub(super) fn end_of(&self, owner: &str, epoch: u64) -> Option<&Position> {
        if self.epoch == epoch && self.owner == owner {
            return (self.state == State::Released).then_some(&self.position);
        }
        self.ended.iter().find(|ended| ended.epoch == epoch && ended.owner == owner).map(|ended| &ended.position)
    }

    /// Returns whether a server with this message limit accepts the next version.
    pub(super) fn has_room(&self, max_payload: usize) -> bool {
        self.bytes().len() * 2 < max_payload.min(LARGEST)
    }
}

/// A lease that this collector holds.
#[derive(Clone, Debug)]
pub(super) struct OwnedLease {
    pub(super) key: String,
    pub(super) lease: Lease,
    revision: u64,
    /// When the last successful update was requested.
    pub(super) renewed: Instant,
}

/// The result of a commit.
#[derive(Debug)]
pub(super) enum CommitResult {
    Committed,
    /// Another collector has the lease; the position is the end of this one's epoch.
    Lost(Position),
    /// Not known yet; with an error message if something failed.
    Unknown(Option<String>),
}

impl OwnedLease {
    /// Creates a lease, or takes over the one with this revision. `None` if another collector was first.
    pub(super) async fn take(
        broker: &Broker,
        key: &str,
        owner: &str,
        found: Option<(&Lease, u64)>,
    ) -> Result<Option<Self>, BrokerError> {
        let renewed = Instant::now();
        let lease = found.map_or_else(|| Lease::first(owner), |(found, _)| found.claim(owner));
        let revision = found.map_or(0, |(_, revision)| revision);
        let taken = broker.leases.update(key, lease.bytes().into(), revision).await;
        match taken {
            Ok(revision) => Ok(Some(Self { key: key.to_owned(), lease, revision, renewed })),
            Err(error) if error.kind() == kv::UpdateErrorKind::WrongLastRevision => Ok(None),
            Err(error) => Err(BrokerError::new("take a lease", &error)),
        }
    }

    /// Commits the progress of the trace.
    pub(super) async fn commit(
        &mut self,
        broker: &Broker,
        state: State,
        sequence: u64,
        position: Position,
    ) -> CommitResult {
        let renewed = Instant::now();
        let mut lease = Lease { state, sequence, position, count: self.lease.count + 1, ..self.lease.clone() };
        match broker.leases.update(&self.key, lease.bytes().into(), self.revision).await {
            Ok(revision) => {
                (self.lease, self.revision, self.renewed) = (lease, revision, renewed);
                return CommitResult::Committed;
            }
            Err(error) if error.kind() != kv::UpdateErrorKind::WrongLastRevision => {
                return CommitResult::Unknown(Some(BrokerError::new("renew a lease", &error).to_string()));
            }
            Err(_) => {}
        }
        // Another collector has the lease, or an earlier commit succeeded and its answer was lost.
        match Lease::read(broker, &self.key).await {
            Ok(Some((found, revision))) => {
                let is_ours = found.owner == lease.owner && found.epoch == lease.epoch;
                if !is_ours {
                    return CommitResult::Lost(self.end(&found));
                }
                lease.count = found.count;
                (self.lease, self.revision, self.renewed) = (found, revision, renewed);
                CommitResult::Unknown(None)
            }
            // A server that has just become the bucket's leader may not have it yet.
            Ok(None) => CommitResult::Unknown(Some(format!("there is no lease `{}`; it is tried again", self.key))),
            Err(error) => CommitResult::Unknown(Some(error.to_string())),
        }
    }

    /// Returns the position at which this epoch ended.
    fn end(&self, found: &Lease) -> Position {
        found.end_of(&self.lease.owner, self.lease.epoch).unwrap_or(&self.lease.position).clone()
    }

    /// Returns whether another collector may have taken the lease, so that nothing more may be written.
    pub(super) fn is_in_doubt(&self, lease: Duration) -> bool {
        self.renewed.elapsed() >= lease * 2 / 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::Index;

    fn position(chunk: u64) -> Position {
        Position { chunk, streams: Vec::new() }
    }

    #[test]
    fn an_owner_goes_on_and_another_one_begins_an_epoch() {
        let first = Lease::first("a");
        let again = first.claim("a");
        assert_eq!((again.epoch, again.position.chunk), (1, 1));
        assert_eq!(first.end_of("a", 1), None, "it goes on");
        let second = again.claim("b");
        assert_eq!((second.epoch, second.position.chunk, second.owner.as_str()), (2, 2, "b"));
        assert_eq!(second.end_of("a", 1), Some(&position(1)));
        assert_eq!(second.end_of("b", 1), None);
        let released = Lease { state: State::Released, ..second };
        assert_eq!(released.end_of("b", 2), Some(&position(2)));
        let third = released.claim("b");
        assert_eq!((third.epoch, third.position.chunk), (3, 3), "a chunk that has ended does not go on");
        assert_eq!(third.end_of("b", 2), Some(&position(2)));
        assert_eq!(Lease::parse(&third.bytes()), Some(third));
    }

    #[test]
    fn entries_that_cannot_be_are_refused() {
        let good = Lease::first("a");
        for bad in [
            Lease { epoch: 0, ..good.clone() },
            Lease { epoch: u64::MAX, ..good.clone() },
            Lease { count: u64::MAX, ..good.clone() },
            Lease { position: position(u64::MAX), ..good.clone() },
            Lease { position: position(0), ..good.clone() },
            Lease { ended: vec![EndedEpoch { owner: "b".to_owned(), epoch: 1, position: position(0) }], ..good },
        ] {
            assert_eq!(Lease::parse(&bad.bytes()), None);
        }
        let name = br#"{"state":"held","owner":"a","epoch":1,"count":0,"sequence":0,"position":{"chunk":1,"streams":[{"class":0,"instance":0,"name":"../x","next":0,"recorded":0,"packets":0,"written":0,"discarded":0}]}}"#;
        assert_eq!(Lease::parse(name), None);
        assert!(Lease::parse(&String::from_utf8_lossy(name).replace("../x", "c_0").into_bytes()).is_some());
        assert_eq!(Lease::parse(b"{}"), None);
    }

    proptest! {
        /// Entries written by others are rejected, or can be taken over like this collector's own.
        #[test]
        fn an_entry_that_was_changed_anywhere_is_refused_or_goes_on(
            changes in vec((any::<Index>(), "[0-9]{1,20}|[\\x00-\\x7f]{0,3}"), 1..4),
        ) {
            let text = r#"{"state":"held","owner":"a","epoch":2,"count":7,"sequence":90,"position":{"chunk":2,"streams":[{"class":0,"instance":1,"name":"c_1","next":5,"recorded":50,"packets":5,"written":49,"discarded":1}]},"ended":[{"owner":"b","epoch":1,"position":{"chunk":1,"streams":[]}}]}"#;
            prop_assert!(Lease::parse(text.as_bytes()).is_some());
            let mut bytes = text.as_bytes().to_vec();
            for (place, change) in changes {
                let at = place.index(bytes.len());
                bytes.splice(at..=at, change.bytes());
            }
            if let Some(lease) = Lease::parse(&bytes) {
                prop_assert_eq!(Lease::parse(&lease.bytes()), Some(lease.clone()));
                let next = lease.claim("another");
                prop_assert_eq!((next.epoch, next.position.chunk), (lease.epoch + 1, lease.position.chunk + 1));
            }
        }
    }
}
