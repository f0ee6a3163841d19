//! A change of a store in S3.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::client::Client;
use super::key;
use super::lease::{Lease, Replacement};
use super::record::{Claim, Record, UPLOADS, Upload, json, record_path, unique};
use crate::backend::{Change, Output};
use crate::error::StoreError;

/// The size of an upload's parts in bytes: the minimum that S3 accepts.
const PART: usize = 5 << 20;

/// A change of a store in S3. Nothing of it is visible before it is committed.
pub(super) struct ObjectChange {
    client: Client,
    id: String,
    files: usize,
    /// Uploads that have been started.
    uploads: Arc<Mutex<Vec<Upload>>>,
    remove: Vec<String>,
    /// The right to replace files, for a change that replaces.
    lease: Option<Arc<Lease>>,
}

impl ObjectChange {
    pub(super) fn new(client: &Client, lease: Option<Arc<Lease>>) -> Self {
        let (id, uploads) = (unique(), Arc::default());
        Self { client: client.clone(), id, files: 0, uploads, remove: Vec::new(), lease }
    }

    fn take_uploads(&self) -> Vec<Upload> {
        std::mem::take(&mut *self.uploads.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Claims the traces, commits, and makes the files visible.
    async fn try_commit(&self, traces: &[(String, String)], record: &Record) -> Result<(), StoreError> {
        for (trace, _) in traces {
            self.client.claim(trace, &self.id).await?;
        }
        let error = |text: &str| Err(StoreError::io(&self.client.url(""))(io::Error::other(text)));
        match self.client.decide(&self.id, record).await? {
            Some(Record::Aborted) => {
                error("another process writes the same trace: repeat the command when that has ended")
            }
            // Another process may have completed it.
            None => Ok(()),
            Some(record) if self.client.finish(&self.id, &record).await? => Ok(()),
            Some(_) => error("its uploads were aborted, such as by a rule of the bucket: repeat the command"),
        }
    }

    /// Deletes the uploaded data, unless the transaction was committed.
    async fn undo(&self, uploads: &[Upload], traces: &[(String, String)]) -> Result<(), StoreError> {
        if let Some(Record::Committed { .. }) | None = self.client.decide(&self.id, &Record::Aborted).await? {
            return Ok(());
        }
        for (trace, _) in traces {
            self.client.release(trace, &self.id, &Claim::default()).await?;
        }
        for one in uploads {
            self.client.abort_upload(&one.path, &one.id).await?;
        }
        // The record of an aborted transaction can be deleted by its own process: no other one commits it.
        self.client.forget_uploads(&self.id).await?;
        self.client.delete(vec![record_path(&self.id)]).await
    }
}

impl Change for ObjectChange {
    fn add(&mut self, partition: &Path, extension: &str) -> Result<Box<dyn Output>, StoreError> {
        let path = key(&partition.join(format!("part-{}-{:04}.{extension}", self.id, self.files)));
        let note = format!("{UPLOADS}/{}/{:04}", self.id, self.files);
        self.files += 1;
        let (client, uploads) = (self.client.clone(), Arc::clone(&self.uploads));
        Ok(Box::new(ObjectOutput { client, path, note, uploads, upload: None, buffer: Vec::new(), bytes: 0 }))
    }

    fn remove(&mut self, path: PathBuf) {
        self.remove.push(key(&path));
    }

    fn commit(self: Box<Self>, traces: &[(String, String)]) -> Result<(), StoreError> {
        let add = self.take_uploads();
        // Use the same order in all processes.
        let mut traces = traces.to_vec();
        traces.sort();
        let record = Record::Committed { add: add.clone(), traces: traces.clone() };
        self.client.block(async {
            let result = self.try_commit(&traces, &record).await;
            if result.is_err() {
                drop(self.undo(&add, &traces).await);
            }
            result
        })
    }

    fn replace(self: Box<Self>) -> Result<bool, StoreError> {
        let (add, remove) = (self.take_uploads(), self.remove.clone());
        let Some(lease) = &self.lease else { return Ok(false) };
        self.client.block(async {
            let is_made = lease.replace(&Replacement { add: add.clone(), remove }).await?;
            if is_made {
                self.client.forget_uploads(&self.id).await?;
            } else {
                self.undo(&add, &[]).await?;
            }
            Ok(is_made)
        })
    }

    fn abandon(self: Box<Self>) {
        let uploads = self.take_uploads();
        drop(self.client.block(self.undo(&uploads, &[])));
    }
}

/// A file that is uploaded in parts.
struct ObjectOutput {
    client: Client,
    path: String,
    /// The object that registers the upload, so that it can be aborted if the process dies.
    note: String,
    uploads: Arc<Mutex<Vec<Upload>>>,
    upload: Option<Upload>,
    buffer: Vec<u8>,
    bytes: u64,
}

impl ObjectOutput {
    /// Uploads the contents of the buffer.
    fn upload(&mut self) -> Result<(), StoreError> {
        let client = self.client.clone();
        client.block(async {
            if self.upload.is_none() {
                let upload =
                    Upload { path: self.path.clone(), id: client.begin_upload(&self.path).await?, parts: Vec::new() };
                self.uploads.lock().unwrap_or_else(PoisonError::into_inner).push(upload.clone());
                client.overwrite(&self.note, &json(&upload)).await?;
                self.upload = Some(upload);
            }
            let Some(upload) = &mut self.upload else { return Ok(()) };
            let part = Bytes::from(std::mem::take(&mut self.buffer));
            self.bytes += part.len() as u64;
            upload.parts.push(client.upload_part(&upload.path, &upload.id, upload.parts.len(), part).await?);
            Ok(())
        })
    }
}

impl Write for ObjectOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PART - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..taken]);
        if self.buffer.len() >= PART {
            self.upload().map_err(io::Error::other)?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for ObjectOutput {
    fn finish(mut self: Box<Self>) -> Result<u64, StoreError> {
        if !self.buffer.is_empty() || self.upload.is_none() {
            self.upload()?;
        }
        let mut uploads = self.uploads.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = uploads.iter_mut().find(|upload| upload.path == self.path);
        if let Some((slot, upload)) = slot.zip(self.upload) {
            *slot = upload;
        }
        Ok(self.bytes)
    }
}
