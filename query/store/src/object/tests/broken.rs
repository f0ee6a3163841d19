//! Objects that a process can access with a limited number of requests, as if it died after the last one.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use object_store::memory::InMemory;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

#[derive(Debug)]
pub(super) struct Broken {
    objects: Arc<InMemory>,
    /// Number of requests left.
    left: AtomicUsize,
    /// True if the last request is executed and only its response is lost.
    is_last_done: bool,
    is_read_only: bool,
}

impl Broken {
    /// Objects that the process may not change.
    pub(super) fn read_only(objects: Arc<InMemory>) -> Self {
        Self { is_read_only: true, ..Self::new(objects, usize::MAX, false) }
    }

    /// Executes a request that changes objects.
    async fn change<T>(&self, request: impl Future<Output = Result<T>>) -> Result<T> {
        if self.is_read_only {
            return Err(Error::PermissionDenied { path: String::new(), source: "read only".into() });
        }
        self.request(request).await
    }

    pub(super) fn new(objects: Arc<InMemory>, requests: usize, is_last_done: bool) -> Self {
        Self { objects, left: AtomicUsize::new(requests), is_last_done, is_read_only: false }
    }

    fn gone() -> Error {
        Error::Generic { store: "broken", source: "no more requests".into() }
    }

    /// Executes a request.
    async fn request<T>(&self, request: impl Future<Output = Result<T>>) -> Result<T> {
        // Let another thread send one.
        std::thread::yield_now();
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(1)));
        match left.unwrap_or(0) {
            1 if self.is_last_done => request.await.and(Err(Self::gone())),
            0 | 1 => Err(Self::gone()),
            _ => request.await,
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("broken")
    }
}

/// Converts the error for a missing upload to the one that S3 returns.
fn no_upload<T>(result: Result<T>) -> Result<T> {
    result.map_err(|error| match error {
        Error::Generic { source, .. } => Error::NotFound { path: String::new(), source },
        other => other,
    })
}

#[async_trait]
impl MultipartStore for Broken {
    async fn create_multipart(&self, path: &Path) -> Result<String> {
        self.change(self.objects.create_multipart(path)).await
    }

    async fn put_part(&self, path: &Path, id: &String, index: usize, data: PutPayload) -> Result<PartId> {
        self.change(self.objects.put_part(path, id, index, data)).await
    }

    async fn complete_multipart(&self, path: &Path, id: &String, parts: Vec<PartId>) -> Result<PutResult> {
        self.change(async { no_upload(self.objects.complete_multipart(path, id, parts).await) }).await
    }

    async fn abort_multipart(&self, path: &Path, id: &String) -> Result<()> {
        self.change(async { no_upload(self.objects.abort_multipart(path, id).await) }).await
    }
}

#[async_trait]
impl ObjectStore for Broken {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.change(self.objects.put_opts(path, payload, options)).await
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        // Uploads go through `MultipartStore`.
        Err(Error::NotImplemented { operation: "put_multipart_opts".to_owned(), implementer: "Broken".to_owned() })
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.request(self.objects.get_opts(path, options)).await
    }

    async fn get_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.request(self.objects.get_ranges(path, ranges)).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        // A deletion of several objects counts as one request. The last request of a process deletes at most one object.
        let (objects, left) = (Arc::clone(&self.objects), &self.left);
        let left = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(1)));
        let some = if left.unwrap_or(0) > 1 { usize::MAX } else { usize::from(self.is_last_done) };
        let deleted = objects.delete_stream(paths.take(some).boxed());
        if some < usize::MAX { deleted.chain(stream::iter([Err(Self::gone())])).boxed() } else { deleted }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        if self.left.load(Ordering::Relaxed) <= 1 {
            return stream::iter([Err(Self::gone())]).boxed();
        }
        self.objects.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.request(self.objects.list_with_delimiter(prefix)).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.change(self.objects.copy_opts(from, to, options)).await
    }
}
