//! The tables of a store, found by listing its files once.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::session_state::SessionState;
use datafusion::object_store::{ObjectStore, ObjectStoreExt, path};
use futures::TryStreamExt;

use super::columns::{account_columns, as_wanted, common_columns, losses_columns, union};
use super::{ACCOUNT, FIXED};
use crate::error::QueryError;
use crate::stored_file::{Family, StoredFile, parse};
use crate::table::{Events, Place, StoreTable};

type FileList = Arc<Vec<StoredFile>>;

pub(super) struct StoredTables {
    objects: Arc<dyn ObjectStore>,
    url: ObjectStoreUrl,
    place: Place,
    /// Files by table name.
    pub(super) events: BTreeMap<String, FileList>,
    account: FileList,
    losses: FileList,
}

impl StoredTables {
    /// Lists the files of a store.
    pub(super) async fn list(
        objects: Arc<dyn ObjectStore>,
        url: ObjectStoreUrl,
        place: Place,
    ) -> Result<Self, QueryError> {
        let mut events: BTreeMap<String, Vec<StoredFile>> = BTreeMap::new();
        let (mut account, mut losses) = (Vec::new(), Vec::new());
        let mut found = objects.list(None);
        while let Some(object) = found.try_next().await? {
            let Some((family, partition)) = parse(&object.location) else { continue };
            let name = partition.event.clone().unwrap_or_default();
            let file = StoredFile { object, partition };
            match family {
                Family::Account => account.push(file),
                Family::Losses => losses.push(file),
                Family::Events if FIXED.contains(&&*name) => {
                    events.entry(super::renamed(&name)).or_default().push(file);
                }
                Family::Events => events.entry(name).or_default().push(file),
            }
        }
        drop(found);
        let sorted = |mut files: Vec<StoredFile>| {
            files.sort_by(|a, b| a.object.location.cmp(&b.object.location));
            Arc::new(files)
        };
        let events = events.into_iter().map(|(name, files)| (name, sorted(files))).collect();
        let (account, losses) = (sorted(account), sorted(losses));
        Ok(Self { objects, url, place, events, account, losses })
    }

    /// The last day of a trace, as text, if the complete trace is in the store.
    pub(super) async fn last_day(&self, trace: &str) -> Option<String> {
        let path = path::Path::from_iter([".tracepoint", "traces", trace]);
        let day = self.objects.get(&path).await.ok()?.bytes().await.ok()?;
        Some(std::str::from_utf8(&day).ok()?.to_owned())
    }

    /// A table of these events. Its columns are read from one file per kind of event.
    pub(super) async fn table(
        &self,
        state: &SessionState,
        name: &str,
        events: Events,
    ) -> datafusion::common::Result<StoreTable> {
        let of_events = |names: &[String]| -> FileList {
            match names {
                [one] => Arc::clone(&self.events[one]),
                several => Arc::new(several.iter().flat_map(|name| self.events[name].iter().cloned()).collect()),
            }
        };
        let of_all = || Arc::new(self.events.values().flat_map(|files| files.iter().cloned()).collect());
        let keys = events.keys();
        let (files, columns) = match &events {
            Events::All => (of_all(), common_columns()),
            Events::These(names) => (of_events(names), self.columns_of(state, names).await?),
            Events::None if name == ACCOUNT => (Arc::clone(&self.account), account_columns()),
            Events::None => (Arc::clone(&self.losses), losses_columns()),
        };
        Ok(StoreTable::new(events, files, &self.url, &self.place, as_wanted(state, columns), keys))
    }

    /// The union of the columns of these events, matched by name.
    async fn columns_of(&self, state: &SessionState, names: &[String]) -> datafusion::common::Result<SchemaRef> {
        let mut columns = Vec::new();
        for name in names {
            // All files of an event have the same columns; `retain` removes the newest file last.
            let Some(newest) = self.events[name].last() else { continue };
            let format = ParquetFormat::new();
            let schema = format.infer_schema(state, &self.objects, std::slice::from_ref(&newest.object)).await?;
            columns.push((name.as_str(), schema));
        }
        union(columns)
    }
}
