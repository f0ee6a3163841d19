//! A store of Parquet files, in the layout of `docs/parquet.md`.
//!
//! ```text
//! day=2026-11-23/host=H/session=S/event=shop%3Aanswered/part-….parquet
//! account/day=…/host=…/session=…/part-….parquet
//! losses/day=…/host=…/session=…/part-….parquet
//! .tracepoint/store.json        says that this is a store
//!             layouts/NAME      the columns of the events with this name, by which `shop:answered#2` is found
//!             …                 what the backend needs: see `local.rs` and `object.rs`
//! ```

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use tracepoint_tables::names::{base, escape};

use crate::backend::{Backend, OWN, Objects};
use crate::error::StoreError;
use crate::local::Local;
use crate::object::ObjectBackend;

/// The file that says that this is a store.
const STORE: &str = "store.json";
/// The value of [`Identity::format`].
const FORMAT: &str = "tracepoint-parquet";
/// The version that is written and read.
const VERSION: u32 = 1;

/// The contents of `store.json`.
#[derive(Serialize, Deserialize)]
struct Identity {
    format: String,
    version: u32,
}

/// A store: in a local directory, or in S3.
///
/// Its place is the path of a directory, or `s3://BUCKET/PREFIX`. Credentials, region and address of S3 are those of the standard environment
/// variables: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`, `AWS_ENDPOINT`, `AWS_ALLOW_HTTP` and others
/// ([`AmazonS3Builder::from_env`](object_store::aws::AmazonS3Builder::from_env)).
///
/// # Panics
/// Stores in S3 block, and panic where a thread of an asynchronous runtime may not block: use them from other threads, or by
/// `spawn_blocking`.
#[derive(Debug)]
pub struct Store {
    place: PathBuf,
    pub(crate) backend: Box<dyn Backend>,
}

impl Store {
    /// Opens a store, or makes one of a directory or prefix that is empty or does not exist. What a killed writer has left is completed, if it
    /// had been committed.
    ///
    /// # Errors
    /// [`StoreError::NotAStore`] if something else is there; [`StoreError::Io`].
    pub fn create(place: &Path) -> Result<Self, StoreError> {
        Self::at(place)?.created()
    }

    /// Opens a store that exists.
    ///
    /// # Errors
    /// [`StoreError::NotAStore`] if it is none, or one of another version; [`StoreError::Io`].
    pub fn open(place: &Path) -> Result<Self, StoreError> {
        Self::at(place)?.checked()
    }

    /// Opens a store to read it: also one that may not be written, in which what a killed writer has left is not completed.
    ///
    /// # Errors
    /// As those of [`open`](Self::open).
    pub fn open_to_read(place: &Path) -> Result<Self, StoreError> {
        Self::at(place)?.opened_to_read()
    }

    /// The directory, or the URL.
    pub fn path(&self) -> &Path {
        &self.place
    }

    /// The object store of a store in S3, and the prefix of the store in it; `None` for a local directory.
    pub fn objects(&self) -> Option<Objects> {
        self.backend.objects()
    }

    fn at(place: &Path) -> Result<Self, StoreError> {
        let backend: Box<dyn Backend> = match place.to_str().filter(|url| url.contains("://")) {
            Some(url) => Box::new(ObjectBackend::connect(url)?),
            None => Box::new(Local::new(place)),
        };
        Ok(Self { place: place.to_owned(), backend })
    }

    /// A store in any backend, which is neither opened nor created.
    #[cfg(test)]
    pub(crate) fn of(backend: Box<dyn Backend>) -> Self {
        Self { place: PathBuf::new(), backend }
    }

    pub(crate) fn opened_to_read(self) -> Result<Self, StoreError> {
        self.check_identity()?;
        match self.backend.recover() {
            Err(StoreError::Io { source, .. })
                if matches!(source.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {}
            other => other?,
        }
        Ok(self)
    }

    pub(crate) fn created(self) -> Result<Self, StoreError> {
        if self.identity()?.is_none() {
            self.refuse_others()?;
            self.backend.prepare()?;
            let identity = Identity { format: FORMAT.to_owned(), version: VERSION };
            let json = serde_json::to_vec(&identity).map_err(|error| StoreError::io(&self.place)(error.into()))?;
            // `false` if another process has made it meanwhile.
            self.backend.create(&Path::new(OWN).join(STORE), &json)?;
        }
        self.checked()
    }

    /// The contents of `store.json`.
    fn identity(&self) -> Result<Option<Vec<u8>>, StoreError> {
        self.backend.read(&Path::new(OWN).join(STORE))
    }

    fn not_a_store(&self, reason: &str) -> StoreError {
        StoreError::NotAStore { path: self.place.clone(), reason: reason.to_owned() }
    }

    /// Refuses a place that has files, and is no store.
    fn refuse_others(&self) -> Result<(), StoreError> {
        // Another process may have made a store, and written files, since the last look.
        if self.backend.has_others()? && self.identity()?.is_none() {
            return Err(self.not_a_store("it has other files"));
        }
        Ok(())
    }

    fn check_identity(&self) -> Result<(), StoreError> {
        let Some(json) = self.identity()? else {
            return Err(self.not_a_store("it has no `.tracepoint/store.json`"));
        };
        match serde_json::from_slice::<Identity>(&json) {
            Ok(Identity { format, version: VERSION }) if format == FORMAT => Ok(()),
            Ok(Identity { version, .. }) => Err(self.not_a_store(&format!("its version {version} is not supported"))),
            Err(error) => Err(self.not_a_store(&format!("`store.json`: {error}"))),
        }
    }

    fn checked(self) -> Result<Self, StoreError> {
        self.check_identity()?;
        self.backend.recover()?;
        Ok(self)
    }

    /// The name of events that are called `name` and have these columns: the first is called as the event, and others `name#2`, `name#3` ….
    pub(crate) fn event_name(&self, name: &str, columns: &str) -> Result<String, StoreError> {
        let base = base(name);
        let mut number = 1u32;
        loop {
            let name = if number == 1 { base.to_owned() } else { format!("{base}#{number}") };
            let path = Path::new(OWN).join("layouts").join(escape(&name));
            match self.backend.read(&path)? {
                Some(known) if known == columns.as_bytes() => return Ok(name),
                Some(_) => number += 1,
                None if self.backend.create(&path, columns.as_bytes())? => return Ok(name),
                // Another process has just created it.
                None => {}
            }
        }
    }

    /// Refuses a trace that is in the store.
    pub(crate) fn refuse_known(&self, trace: &str) -> Result<(), StoreError> {
        if self.backend.has_trace(trace)? {
            return Err(StoreError::AlreadyStored { path: self.place.clone(), trace: trace.to_owned() });
        }
        Ok(())
    }
}
