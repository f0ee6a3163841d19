//! Requests to an object store, below the prefix of a store.

use std::fmt;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path as ObjectPath;
use object_store::{Error, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, RetryConfig, UpdateVersion};
use tokio::runtime::Runtime;

use super::failure;
use crate::error::StoreError;

/// Maximum number of concurrent requests of one kind.
pub(super) const CONCURRENT: usize = 16;

/// The value of [`Client::expiry`].
const EXPIRY: Duration = Duration::from_secs(30);

/// An object store that supports multipart uploads.
pub(super) trait Api: ObjectStore + MultipartStore {}
impl<T: ObjectStore + MultipartStore> Api for T {}

/// An object store, and a prefix in it. Paths are relative to the prefix.
#[derive(Clone)]
pub(crate) struct Client {
    api: Arc<dyn Api>,
    prefix: ObjectPath,
    url: Arc<str>,
    pub(super) runtime: Arc<Runtime>,
    /// A process that replaces files is considered dead after this time without a renewal.
    pub(super) expiry: Duration,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.url).finish()
    }
}

fn s3(bucket: &str) -> Result<AmazonS3, Error> {
    let retry = RetryConfig { max_retries: 5, retry_timeout: Duration::from_secs(60), ..RetryConfig::default() };
    AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry).build()
}

/// Opens a bucket of S3, configured by the environment like a [`Store`](crate::Store). Sends no request.
///
/// # Errors
/// If the environment is not valid.
pub fn bucket(name: &str) -> Result<Arc<dyn ObjectStore>, Error> {
    Ok(Arc::new(s3(name)?))
}

impl Client {
    /// Creates the client for `s3://BUCKET/PREFIX`, configured by the environment. Sends no request.
    pub(super) fn connect(url: &str) -> Result<Self, StoreError> {
        let invalid = |reason: &str| {
            let text = format!("{reason}; name a directory, or s3://BUCKET/PREFIX");
            StoreError::io(Path::new(url))(io::Error::new(io::ErrorKind::InvalidInput, text))
        };
        let (scheme, place) = url.split_once("://").ok_or_else(|| invalid("it is no URL"))?;
        if !matches!(scheme, "s3" | "s3a") {
            return Err(invalid(&format!("stores at `{scheme}://` are not supported")));
        }
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        let prefix = ObjectPath::parse(prefix).map_err(|error| invalid(&error.to_string()))?;
        if bucket.is_empty() {
            return Err(invalid("it names no bucket"));
        }
        let s3 = s3(bucket).map_err(|error| invalid(&error.to_string()))?;
        Self::new(Arc::new(s3), prefix, url, EXPIRY)
    }

    pub(super) fn new(api: Arc<dyn Api>, prefix: ObjectPath, url: &str, expiry: Duration) -> Result<Self, StoreError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = Arc::new(runtime.map_err(StoreError::io(Path::new(url)))?);
        Ok(Self { api, prefix, url: url.trim_end_matches('/').into(), runtime, expiry })
    }

    pub(super) fn objects(&self) -> (Arc<dyn ObjectStore>, ObjectPath) {
        (Arc::<dyn Api>::clone(&self.api), self.prefix.clone())
    }

    /// Blocks until requests have completed.
    pub(super) fn block<T>(&self, requests: impl Future<Output = T>) -> T {
        self.runtime.block_on(requests)
    }

    fn at(&self, path: &str) -> Result<ObjectPath, StoreError> {
        let whole = format!("{}/{path}", self.prefix);
        ObjectPath::parse(whole.trim_matches('/')).map_err(|error| self.failed(path)(error.into()))
    }

    /// The URL of an object.
    pub(super) fn url(&self, path: &str) -> PathBuf {
        if path.is_empty() { PathBuf::from(&*self.url) } else { format!("{}/{path}", self.url).into() }
    }

    pub(super) fn failed(&self, path: &str) -> impl FnOnce(Error) -> StoreError {
        let url = self.url(path);
        move |error| StoreError::Io(url, failure::described(&error))
    }

    /// Reads an object and its version.
    pub(super) async fn get(&self, path: &str) -> Result<Option<(Bytes, UpdateVersion)>, StoreError> {
        let found = match self.api.get(&self.at(path)?).await {
            Err(Error::NotFound { source, .. }) if !failure::is_of_bucket(&*source) => return Ok(None),
            other => other.map_err(self.failed(path))?,
        };
        let version = UpdateVersion { e_tag: found.meta.e_tag.clone(), version: found.meta.version.clone() };
        Ok(Some((found.bytes().await.map_err(self.failed(path))?, version)))
    }

    /// Reads an object that must exist.
    pub(super) async fn contents(&self, path: &str) -> Result<Bytes, StoreError> {
        let found = self.api.get(&self.at(path)?).await.map_err(self.failed(path))?;
        found.bytes().await.map_err(self.failed(path))
    }

    pub(super) async fn exists(&self, path: &str) -> Result<bool, StoreError> {
        match self.api.head(&self.at(path)?).await {
            Err(Error::NotFound { .. }) => Ok(false),
            other => other.map(|_| true).map_err(self.failed(path)),
        }
    }

    /// Creates an object; returns `false` if it exists with other contents. Equal contents count as created, because the response to an earlier
    /// attempt may have been lost.
    pub(super) async fn create(&self, path: &str, contents: &[u8]) -> Result<bool, StoreError> {
        let (at, contents) = (self.at(path)?, Bytes::copy_from_slice(contents));
        loop {
            let put = self.api.put_opts(&at, contents.clone().into(), PutMode::Create.into()).await;
            let Err(Error::AlreadyExists { source, .. }) = put else {
                return put.map(|_| true).map_err(self.failed(path));
            };
            match self.get(path).await? {
                Some((found, _)) => return Ok(found == contents),
                // It existed, and has been deleted.
                None if source.is::<Error>() => return Ok(false),
                // Refused because of a concurrent request, which may fail itself: retry.
                None => {}
            }
        }
    }

    /// Replaces an object that has this version. Returns the new version; `None` if the object has changed.
    pub(super) async fn update(
        &self,
        path: &str,
        contents: &[u8],
        version: UpdateVersion,
    ) -> Result<Option<UpdateVersion>, StoreError> {
        let (at, contents) = (self.at(path)?, Bytes::copy_from_slice(contents));
        match self.api.put_opts(&at, contents.clone().into(), PutMode::Update(version).into()).await {
            Err(Error::Precondition { .. }) => {
                Ok(self.get(path).await?.filter(|(found, _)| *found == contents).map(|(_, version)| version))
            }
            other => other.map(|put| Some(put.into())).map_err(self.failed(path)),
        }
    }

    /// Creates or replaces an object.
    pub(super) async fn overwrite(&self, path: &str, contents: &[u8]) -> Result<(), StoreError> {
        let contents = Bytes::copy_from_slice(contents);
        self.api.put(&self.at(path)?, contents.into()).await.map(|_| ()).map_err(self.failed(path))
    }

    /// Deletes objects, if they exist.
    pub(super) async fn delete(&self, paths: Vec<String>) -> Result<(), StoreError> {
        let paths: Vec<_> = paths.iter().map(|path| self.at(path)).collect::<Result<_, _>>()?;
        let mut results = self.api.delete_stream(stream::iter(paths.into_iter().map(Ok)).boxed());
        while let Some(result) = results.next().await {
            match result {
                Err(Error::NotFound { source, .. }) if !failure::is_of_bucket(&*source) => {}
                other => _ = other.map_err(self.failed(""))?,
            }
        }
        Ok(())
    }

    /// Lists the objects below a path, with paths relative to the prefix.
    pub(super) async fn list(&self, path: &str) -> Result<Vec<(String, ObjectMeta)>, StoreError> {
        let at = self.at(path)?;
        let below = |meta: ObjectMeta| {
            let path = meta.location.as_ref().strip_prefix(self.prefix.as_ref())?;
            Some((path.trim_start_matches('/').to_owned(), meta))
        };
        let metas: Vec<_> = self.api.list(Some(&at)).try_collect().await.map_err(self.failed(path))?;
        Ok(metas.into_iter().filter_map(below).collect())
    }

    /// Returns whether there are objects outside of `own`.
    pub(super) async fn has_others(&self, own: &str) -> Result<bool, StoreError> {
        let listed = self.api.list_with_delimiter(Some(&self.prefix)).await.map_err(self.failed(""))?;
        let own = self.at(own)?;
        Ok(!listed.objects.is_empty() || listed.common_prefixes.iter().any(|prefix| *prefix != own))
    }

    pub(super) async fn begin_upload(&self, path: &str) -> Result<String, StoreError> {
        self.api.create_multipart(&self.at(path)?).await.map_err(self.failed(path))
    }

    pub(super) async fn upload_part(
        &self,
        path: &str,
        upload: &String,
        index: usize,
        part: Bytes,
    ) -> Result<String, StoreError> {
        let part = self.api.put_part(&self.at(path)?, upload, index, part.into()).await;
        part.map(|part| part.content_id).map_err(self.failed(path))
    }

    /// Makes an upload visible. Returns `false` if the upload is gone, and the object does not exist.
    pub(super) async fn complete_upload(
        &self,
        path: &str,
        upload: &String,
        parts: &[String],
    ) -> Result<bool, StoreError> {
        let parts = parts.iter().map(|part| PartId { content_id: part.clone() }).collect();
        match self.api.complete_multipart(&self.at(path)?, upload, parts).await {
            // Another process has completed or aborted the upload.
            Err(Error::NotFound { source, .. }) if !failure::is_of_bucket(&*source) => self.exists(path).await,
            other => other.map(|_| true).map_err(self.failed(path)),
        }
    }

    /// Aborts an upload, if it exists.
    pub(super) async fn abort_upload(&self, path: &str, upload: &String) -> Result<(), StoreError> {
        match self.api.abort_multipart(&self.at(path)?, upload).await {
            Err(Error::NotFound { .. }) => Ok(()),
            other => other.map_err(self.failed(path)),
        }
    }
}
