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

/// The file that marks a store.
const STORE: &str = "store.json";
/// The value of [`Identity::format`].
const FORMAT: &str = "tracepoint-parquet";
/// The supported version.
const VERSION: u32 = 1;

/// The contents of `store.json`.
#[derive(Serialize, Deserialize)]
struct Identity {
    format: String,
    version: u32,
}

/// A store: in a local directory, or in S3.
///
/// The location is the path of a directory, or `s3://BUCKET/PREFIX`. Credentials, region and endpoint of S3 come from the standard environment
/// variables: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`, `AWS_ENDPOINT`, `AWS_ALLOW_HTTP` and others
/// ([`AmazonS3Builder::from_env`](object_store::aws::AmazonS3Builder::from_env)).
///
/// # Panics
/// Operations on stores in S3 block. They panic if called where a thread of an asynchronous runtime must not block: call them on other threads, or
/// with `spawn_blocking`.
#[derive(Debug)]
pub struct Store {
    place: PathBuf,
    pub(crate) backend: Box<dyn Backend>,
}

impl Store {
    /// Opens a store, or creates one in a directory or prefix that is empty or missing. Completes the committed changes of killed writers.
    ///
    /// # Errors
    /// [`StoreError::NotAStore`] if the place has other contents; [`StoreError::Io`].
    pub fn create(place: &Path) -> Result<Self, StoreError> {
        Self::at(place)?.created()
    }

    /// Opens an existing store.
    ///
    /// # Errors
    /// [`StoreError::NotAStore`] if it is not a store, or has another version; [`StoreError::Io`].
    pub fn open(place: &Path) -> Result<Self, StoreError> {
        Self::at(place)?.checked()
    }

    /// Opens a store for reading. It may be read-only; changes of killed writers are then not completed.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn open_to_read(place: &Path) -> Result<Self, StoreError> {
        Self::at(place)?.opened_to_read()
    }

    /// The directory, or the URL.
    pub fn path(&self) -> &Path {
        &self.place
    }

    /// The object store of a store in S3, and the store's prefix in it; `None` for a local directory.
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

    /// A store on any backend, neither opened nor created.
    #[cfg(test)]
    pub(crate) fn of(backend: Box<dyn Backend>) -> Self {
        Self { place: PathBuf::new(), backend }
    }

    pub(crate) fn opened_to_read(self) -> Result<Self, StoreError> {
        self.check_identity()?;
        match self.backend.recover() {
            Err(StoreError::Io(_, source))
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
            // `false`: another process has created it meanwhile.
            self.backend.create(&Path::new(OWN).join(STORE), &json)?;
        }
        self.checked()
    }

    /// The contents of `store.json`.
    fn identity(&self) -> Result<Option<Vec<u8>>, StoreError> {
        self.backend.read(&Path::new(OWN).join(STORE))
    }

    fn not_a_store(&self, reason: &str) -> StoreError {
        StoreError::NotAStore(self.place.clone(), reason.to_owned())
    }

    /// Refuses a place that has files but is not a store.
    fn refuse_others(&self) -> Result<(), StoreError> {
        // Check again for the store: another process may have created it, and written files, since the first check.
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

    /// The name under which events called `name` with these columns are stored: the event's name for the first layout, then `name#2`, `name#3` ….
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

    /// Refuses a trace that the store has already.
    pub(crate) fn refuse_known(&self, trace: &str) -> Result<(), StoreError> {
        if self.backend.has_trace(trace)? {
            return Err(StoreError::AlreadyStored(self.place.clone(), trace.to_owned()));
        }
        Ok(())
    }
}
