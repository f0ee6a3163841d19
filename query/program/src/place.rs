//! Locations of data: a store or a trace in the file system, or a store in S3.

use std::path::{Path, PathBuf};

use tracepoint_query::{Engine, EngineOptions, QueryError};
use tracepoint_store::{Objects, Store, StoreError};

/// Opens the store in S3 at this place, if the place is a URL.
pub(crate) fn remote(place: Option<&PathBuf>) -> Result<Option<Store>, StoreError> {
    place.filter(|place| url(place).is_some()).map(|url| Store::open_to_read(url)).transpose()
}

/// Opens a store in these objects, or the store or trace at a path, for queries.
pub(crate) async fn open(place: &Path, objects: Option<Objects>, options: EngineOptions) -> Result<Engine, QueryError> {
    match (objects, url(place)) {
        (Some((objects, prefix)), Some((_, below))) => {
            let bucket = below.split('/').next().unwrap_or_default();
            Engine::open_in(objects, &format!("s3://{bucket}"), prefix, options).await
        }
        _ => Engine::open_any(place, options).await,
    }
}

/// Splits a URL at `://`.
fn url(place: &Path) -> Option<(&str, &str)> {
    place.to_str()?.split_once("://")
}
