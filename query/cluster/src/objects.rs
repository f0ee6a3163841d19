//! Resolves the URLs of stores in a plan to object stores, for schedulers and executors.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::common::{DataFusionError, exec_datafusion_err};
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::object_store::ObjectStore;
use datafusion::object_store::local::LocalFileSystem;
use tracepoint_store::bucket;

/// The local file system, and the S3 buckets that the credentials in the environment give access to.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    local: Arc<LocalFileSystem>,
    buckets: Mutex<HashMap<String, Arc<dyn ObjectStore>>>,
}

impl ObjectStoreRegistry for Objects {
    /// Does nothing: stores are resolved by URL only.
    fn register_store(&self, _: &url::Url, store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        Some(store)
    }

    fn get_store(&self, url: &url::Url) -> Result<Arc<dyn ObjectStore>, DataFusionError> {
        match (url.scheme(), url.host_str()) {
            ("file", _) => Ok(Arc::<LocalFileSystem>::clone(&self.local)),
            ("s3", Some(name)) => {
                let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(known) = buckets.get(name) {
                    return Ok(Arc::clone(known));
                }
                let found = bucket(name).map_err(|error| DataFusionError::External(error.into()))?;
                buckets.insert(name.to_owned(), Arc::clone(&found));
                Ok(found)
            }
            _ => Err(exec_datafusion_err!("stores at {url} are not supported")),
        }
    }
}
