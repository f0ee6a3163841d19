//! Small objects that record which changes are valid, and which traces are in the store.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::UpdateVersion;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use tracepoint_tables::names::escape;

use super::client::{CONCURRENT, Client};
use crate::error::StoreError;

/// The directory of [`Record`]s.
pub(super) const TRANSACTIONS: &str = ".tracepoint/transactions";
/// The directory of [`Claim`]s.
pub(super) const TRACES: &str = ".tracepoint/traces";
/// The directory of started uploads.
pub(super) const UPLOADS: &str = ".tracepoint/uploads";

/// An uploaded file, invisible until the upload is completed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Upload {
    pub(super) path: String,
    pub(super) id: String,
    pub(super) parts: Vec<String>,
}

/// The outcome of a transaction. The first record written is final.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub(super) enum Record {
    /// Any process may complete its files. Each trace has its last day.
    Committed { add: Vec<Upload>, traces: Vec<(String, String)> },
    /// The transaction can no longer be committed.
    Aborted,
}

/// The transaction that writes a trace, or the fact that the trace is stored.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Claim {
    /// The transaction that writes it. The trace is stored once that is committed.
    pub(super) transaction: Option<String>,
    /// The trace is stored, with this last day.
    pub(super) last_day: Option<String>,
}

/// A name that is unique among all processes: a time, and a random number.
pub(super) fn unique() -> String {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    format!("{time:012x}{:016x}", RandomState::new().hash_one(std::process::id()))
}

pub(super) fn record_path(id: &str) -> String {
    format!("{TRANSACTIONS}/{id}.json")
}

pub(super) fn claim_path(trace: &str) -> String {
    format!("{TRACES}/{}", escape(trace))
}

pub(super) fn json(object: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(object).unwrap_or_default()
}

impl Client {
    /// Reads a small JSON object and its version.
    pub(super) async fn parsed<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Option<(T, UpdateVersion)>, StoreError> {
        let Some((bytes, version)) = self.get(path).await? else { return Ok(None) };
        let parsed = serde_json::from_slice(&bytes).map_err(|error| StoreError::io(&self.url(path))(error.into()))?;
        Ok(Some((parsed, version)))
    }

    /// Records the outcome of a transaction, unless it has one. Returns the valid outcome; `None` if it was committed and has finished.
    pub(super) async fn decide(&self, id: &str, record: &Record) -> Result<Option<Record>, StoreError> {
        let path = record_path(id);
        if self.create(&path, &json(record)).await? {
            return Ok(Some(record.clone()));
        }
        Ok(self.parsed(&path).await?.map(|(record, _)| record))
    }

    /// Claims a trace for a transaction. An uncommitted transaction that has the claim is aborted, because its process may be dead.
    pub(super) async fn claim(&self, trace: &str, id: &str) -> Result<(), StoreError> {
        let path = claim_path(trace);
        let mine = json(&Claim { transaction: Some(id.to_owned()), last_day: None });
        loop {
            let Some((claim, version)) = self.parsed::<Claim>(&path).await? else {
                if self.create(&path, &mine).await? {
                    return Ok(());
                }
                continue;
            };
            let is_free = match claim.transaction {
                Some(own) if own == id => return Ok(()),
                Some(other) => match self.decide(&other, &Record::Aborted).await? {
                    Some(Record::Aborted) => true,
                    Some(Record::Committed { .. }) => false,
                    None => continue,
                },
                None => claim.last_day.is_none(),
            };
            if !is_free {
                return Err(StoreError::AlreadyStored(self.url(""), trace.to_owned()));
            }
            if self.update(&path, &mine, version).await?.is_some() {
                return Ok(());
            }
        }
    }

    /// Replaces the claim of a transaction.
    pub(super) async fn release(&self, trace: &str, id: &str, new: &Claim) -> Result<(), StoreError> {
        let path = claim_path(trace);
        match self.parsed::<Claim>(&path).await? {
            // A process that replaces it concurrently writes the same, or has aborted this transaction.
            Some((Claim { transaction: Some(owner), .. }, version)) if owner == id => {
                self.update(&path, &json(new), version).await.map(|_| ())
            }
            _ => Ok(()),
        }
    }

    /// Returns whether a trace is in the store.
    pub(super) async fn has_trace(&self, trace: &str) -> Result<bool, StoreError> {
        match self.parsed::<Claim>(&claim_path(trace)).await? {
            Some((Claim { transaction: Some(id), .. }, _)) => {
                let record = self.parsed::<Record>(&record_path(&id)).await?;
                Ok(matches!(record, Some((Record::Committed { .. }, _))))
            }
            Some((claim, _)) => Ok(claim.last_day.is_some()),
            None => Ok(false),
        }
    }

    /// Makes files visible. Returns `false` if an upload is gone; that file can then never become visible.
    pub(super) async fn complete_uploads(&self, add: &[Upload]) -> Result<bool, StoreError> {
        let complete = |one: &Upload| {
            let (client, one) = (self.clone(), one.clone());
            async move { client.complete_upload(&one.path, &one.id, &one.parts).await }
        };
        let completed = stream::iter(add.iter().map(complete)).buffer_unordered(CONCURRENT);
        let completed: Vec<_> = completed.try_collect().await?;
        Ok(completed.into_iter().all(|is_there| is_there))
    }

    /// Executes the remaining steps of a committed transaction. Returns `false` if that is impossible and the transaction was undone. Several
    /// processes may do this at the same time.
    pub(super) async fn finish(&self, id: &str, record: &Record) -> Result<bool, StoreError> {
        let Record::Committed { add, traces } = record else { return Ok(false) };
        if !self.complete_uploads(add).await? {
            return self.roll_back(id, add, traces).await;
        }
        for (trace, last_day) in traces {
            self.release(trace, id, &Claim { transaction: None, last_day: Some(last_day.clone()) }).await?;
        }
        self.forget_uploads(id).await?;
        self.delete(vec![record_path(id)]).await?;
        Ok(true)
    }

    /// Undoes a transaction one of whose uploads was aborted, for example by a rule of the bucket. Returns `true` if the transaction had finished
    /// before.
    async fn roll_back(&self, id: &str, add: &[Upload], traces: &[(String, String)]) -> Result<bool, StoreError> {
        // While the record exists, no process compacts or removes its files: a missing file was never visible.
        if self.parsed::<Record>(&record_path(id)).await?.is_none() {
            return Ok(true);
        }
        self.overwrite(&record_path(id), &json(&Record::Aborted)).await?;
        self.delete(add.iter().map(|one| one.path.clone()).collect()).await?;
        for (trace, _) in traces {
            self.release(trace, id, &Claim::default()).await?;
        }
        self.forget_uploads(id).await?;
        Ok(false)
    }

    /// Deletes the registrations of a transaction's uploads.
    pub(super) async fn forget_uploads(&self, id: &str) -> Result<(), StoreError> {
        let notes = self.list(&format!("{UPLOADS}/{id}")).await?;
        self.delete(notes.into_iter().map(|(path, _)| path).collect()).await
    }

    /// The recorded transactions, by id.
    pub(super) async fn records(&self) -> Result<Vec<(String, Record)>, StoreError> {
        let read = |(path, _): (String, _)| async move {
            let id = path.rsplit('/').next().and_then(|name| name.strip_suffix(".json")).map(Arc::<str>::from);
            let record = self.parsed::<Record>(&path).await?;
            Ok::<_, StoreError>(id.zip(record).map(|(id, (record, _))| (id.to_string(), record)))
        };
        let listed = self.list(TRANSACTIONS).await?;
        let read: Vec<_> = stream::iter(listed).map(read).buffer_unordered(CONCURRENT).try_collect().await?;
        Ok(read.into_iter().flatten().collect())
    }
}
