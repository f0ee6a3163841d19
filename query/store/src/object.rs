//! A store in S3: below `s3://BUCKET/PREFIX`.
//!
//! S3 has neither a rename nor a lock. It has multipart uploads, invisible until they are completed, and requests that fail if an object exists or
//! has changed. These are sufficient:
//!
//! ```text
//! .tracepoint/layouts/NAME           created once, by the first process that needs it
//!             uploads/ID/NUMBER      an upload that was begun, so that it can be aborted
//!             transactions/ID.json   what became of the transaction: created once, as committed or as aborted
//!             traces/UUID            the transaction that writes the trace; later, its last day
//!             maintenance            the process that may replace and remove files, and what it replaces
//! ```
//!
//! A writer uploads the files of a trace under their final names, but does not complete the uploads. It then claims the trace by creating
//! `traces/UUID`, and commits by creating `transactions/ID.json` with the list of uploads. From then on the trace is in the store: the writer, or the
//! next process that opens the store, completes the uploads and deletes the list. Each of these steps can be repeated, and several processes can
//! execute it at the same time.
//!
//! Writers do not wait for each other. A writer that finds a claim without a committed transaction creates the `transactions/ID.json` of that
//! transaction as aborted, and takes over the claim. Only one of the two writers can create this object. So a trace is stored once, and dead writers
//! need not be detected by a clock.
//!
//! One process at a time may replace and remove files; it holds a [lease](lease). It leaves the files of unfinished transactions alone, so a file
//! that is missing while `transactions/ID.json` exists was never visible.

mod change;
mod client;
mod failure;
mod lease;
mod record;
mod retain;
#[cfg(test)]
mod tests;

pub use client::bucket;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::backend::{Backend, Contents, Maintenance, OWN, Objects, Transaction};
use crate::error::StoreError;
use crate::files::{PartFile, Parts};
use crate::plan::{Plan, RetentionSummary};
use change::ObjectChange;
pub(crate) use client::Client;
use lease::Lease;
use record::Record;

/// A store in S3.
#[derive(Debug)]
pub(crate) struct ObjectBackend {
    client: Client,
}

impl ObjectBackend {
    /// Creates the store for a URL. Sends no request.
    pub(crate) fn connect(url: &str) -> Result<Self, StoreError> {
        Ok(Self { client: Client::connect(url)? })
    }
}

/// The key of a path in the store.
fn key(path: &Path) -> String {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

impl Client {
    /// Completes committed transactions and replacements.
    async fn recover(&self) -> Result<(), StoreError> {
        for (id, record) in self.records().await? {
            self.finish(&id, &record).await?;
        }
        lease::recover(self).await
    }

    /// Lists the Parquet files of finished transactions. Also returns whether there are files of unfinished ones.
    async fn parts(&self) -> Result<(Parts, bool), StoreError> {
        let listed = self.list("").await?;
        // List transactions after the files: a transaction that has files but is not listed has finished.
        let records = self.records().await?;
        let unfinished = records.into_iter().filter(|(_, record)| matches!(record, Record::Committed { .. }));
        let unfinished: HashSet<_> = unfinished.map(|(id, _)| id).collect();
        let (mut found, mut others) = (BTreeMap::<PathBuf, Vec<PartFile>>::new(), false);
        for (path, meta) in listed {
            let Some((directory, name)) = path.rsplit_once('/').filter(|_| path.ends_with(".parquet")) else {
                continue;
            };
            if path.split('/').any(|part| part.starts_with('.')) {
                continue;
            }
            let id = name.strip_prefix("part-").and_then(|name| name.split('-').next());
            if id.is_some_and(|id| unfinished.contains(id)) {
                others = true;
            } else {
                let file = PartFile { path: PathBuf::from(&path), bytes: meta.size };
                found.entry(PathBuf::from(directory)).or_default().push(file);
            }
        }
        for files in found.values_mut() {
            files.sort_by(|a, b| a.path.cmp(&b.path));
        }
        Ok((found.into_iter().collect(), others))
    }
}

impl Backend for ObjectBackend {
    fn has_others(&self) -> Result<bool, StoreError> {
        self.client.block(self.client.has_others(OWN))
    }

    fn prepare(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
        let path = key(path);
        let found = self.client.block(self.client.get(&path))?;
        Ok(found.map(|(contents, _)| contents.to_vec()))
    }

    fn create(&self, path: &Path, contents: &[u8]) -> Result<bool, StoreError> {
        let path = key(path);
        self.client.block(self.client.create(&path, contents))
    }

    fn recover(&self) -> Result<(), StoreError> {
        self.client.block(self.client.recover())
    }

    fn has_trace(&self, trace: &str) -> Result<bool, StoreError> {
        self.client.block(self.client.has_trace(trace))
    }

    fn begin(&self) -> Result<Transaction, StoreError> {
        Ok(Box::new(ObjectChange::new(&self.client, None)))
    }

    fn parts(&self) -> Result<Parts, StoreError> {
        self.client.block(self.client.parts()).map(|(parts, _)| parts)
    }

    fn contents(&self, file: &PartFile) -> Result<Contents, StoreError> {
        let path = key(&file.path);
        self.client.block(self.client.contents(&path)).map(Contents::Bytes)
    }

    fn maintain(&self) -> Result<Box<dyn Maintenance + '_>, StoreError> {
        let lease = Arc::new(self.client.block(Lease::acquire(&self.client))?);
        Ok(Box::new(ObjectMaintenance { client: &self.client, lease }))
    }

    fn objects(&self) -> Option<Objects> {
        Some(self.client.objects())
    }
}

/// The right to replace and remove files.
struct ObjectMaintenance<'a> {
    client: &'a Client,
    lease: Arc<Lease>,
}

impl Maintenance for ObjectMaintenance<'_> {
    fn begin(&mut self) -> Result<Transaction, StoreError> {
        Ok(Box::new(ObjectChange::new(self.client, Some(Arc::clone(&self.lease)))))
    }

    fn retain(&mut self, plan: &dyn Fn(&Parts) -> Plan) -> Result<RetentionSummary, StoreError> {
        self.client.block(retain::retain(self.client, &self.lease, plan))
    }
}
