//! The tables of a store, found by listing its files once.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::common::plan_datafusion_err;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::type_coercion::binary::type_union_coercion;
use datafusion::object_store::ObjectStore;
use futures::TryStreamExt;

use crate::error::QueryError;
use crate::nearest::nearest;
use crate::stored_file::{Family, Key, StoredFile, parse};
use crate::table::{Events, StoreTable};

/// The table of the common columns of all events.
pub(crate) const EVENTS: &str = "events";
/// The table of the tracer's counts.
pub(crate) const ACCOUNT: &str = "account";
/// The table of what is missing.
pub(crate) const LOSSES: &str = "losses";
/// The end of the name of a table of all versions of an event.
const ALL_VERSIONS: &str = "#*";

/// The partitions of what is no event.
const PLACE: [Key; 3] = [Key::Day, Key::Host, Key::Session];

type FileList = Arc<Vec<StoredFile>>;

/// The tables of a store, and their files.
pub(crate) struct Catalog {
    objects: Arc<dyn ObjectStore>,
    url: ObjectStoreUrl,
    /// By the names of their tables.
    events: BTreeMap<String, FileList>,
    account: FileList,
    losses: FileList,
}

impl Catalog {
    /// Lists the files of a store.
    pub(crate) async fn list(objects: Arc<dyn ObjectStore>, url: ObjectStoreUrl) -> Result<Self, QueryError> {
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
                Family::Events if [EVENTS, ACCOUNT, LOSSES].contains(&&*name) => {
                    events.entry(format!("event={name}")).or_default().push(file);
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
        Ok(Self { objects, url, events, account, losses })
    }

    pub(crate) fn objects(&self) -> &Arc<dyn ObjectStore> {
        &self.objects
    }

    /// The names of all tables, those of a single event first.
    pub(crate) fn names(&self) -> Vec<String> {
        let several = self.events.keys().filter(|name| self.versions(name).len() > 1);
        let several = several.map(|name| format!("{name}{ALL_VERSIONS}"));
        let fixed = [EVENTS, ACCOUNT, LOSSES].map(str::to_owned);
        self.events.keys().cloned().chain(several).chain(fixed).collect()
    }

    /// The events that are called `base`, `base#2` and so on.
    pub(crate) fn versions(&self, base: &str) -> Vec<&str> {
        let is_version = |name: &str| {
            let number = name.strip_prefix(base);
            number.is_some_and(|number| {
                let digits = number.strip_prefix('#');
                number.is_empty() || digits.is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))
            })
        };
        self.events.keys().map(String::as_str).filter(|name| is_version(name)).collect()
    }

    /// The events whose rows a table of this name has, if there is such a table.
    fn events_of(&self, name: &str) -> Option<Events> {
        let known = |name: &str| self.events.contains_key(name).then(|| Events::These(vec![name.to_owned()]));
        let versions = || {
            let found = self.versions(name.strip_suffix(ALL_VERSIONS)?);
            (!found.is_empty()).then(|| Events::These(found.into_iter().map(str::to_owned).collect()))
        };
        match name {
            EVENTS => Some(Events::All),
            ACCOUNT | LOSSES => Some(Events::None),
            _ => known(name).or_else(versions),
        }
    }

    /// That there is no table of this name.
    pub(crate) fn unknown(&self, name: &str) -> QueryError {
        let names = self.names();
        QueryError::UnknownTable { name: name.to_owned(), nearest: nearest(name, names.iter().map(String::as_str)) }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.events_of(name).is_some()
    }

    /// A table, with its columns, which are read from a file of each kind of event.
    pub(crate) async fn table(
        &self,
        state: &SessionState,
        name: &str,
    ) -> datafusion::common::Result<Option<StoreTable>> {
        let Some(events) = self.events_of(name) else { return Ok(None) };
        let of_events = |names: &[String]| -> FileList {
            match names {
                [one] => Arc::clone(&self.events[one]),
                several => Arc::new(several.iter().flat_map(|name| self.events[name].iter().cloned()).collect()),
            }
        };
        let of_all = || Arc::new(self.events.values().flat_map(|files| files.iter().cloned()).collect());
        let (files, columns, keys) = match &events {
            Events::All => (of_all(), common_columns(), &[Key::Day, Key::Session, Key::Event][..]),
            Events::These(names) => {
                let keys = [Key::Day, Key::Session, Key::Event];
                // A table of one event does not repeat its name.
                let count = if names.len() > 1 { 3 } else { 2 };
                let columns = self.columns_of(state, names).await?;
                return Ok(Some(StoreTable::new(events.clone(), of_events(names), &self.url, columns, &keys[..count])));
            }
            Events::None if name == ACCOUNT => (Arc::clone(&self.account), account_columns(), &PLACE[..]),
            Events::None => (Arc::clone(&self.losses), losses_columns(), &PLACE[..]),
        };
        Ok(Some(StoreTable::new(events, files, &self.url, columns, keys)))
    }

    /// The columns of all of these events, by their names.
    async fn columns_of(&self, state: &SessionState, names: &[String]) -> datafusion::common::Result<SchemaRef> {
        let mut columns: Vec<Field> = Vec::new();
        for name in names {
            // All files of an event have the same columns. The newest is the last that `retain` removes.
            let Some(newest) = self.events[name].last() else { continue };
            let format = ParquetFormat::new();
            let schema = format.infer_schema(state, &self.objects, std::slice::from_ref(&newest.object)).await?;
            for field in schema.fields() {
                let Some(known) = columns.iter_mut().find(|known| known.name() == field.name()) else {
                    columns.push(field.as_ref().clone());
                    continue;
                };
                let both = type_union_coercion(known.data_type(), field.data_type()).ok_or_else(|| {
                    let (this, other) = (field.data_type(), known.data_type());
                    plan_datafusion_err!(
                        "the column {:?} of {name:?} is {this}, and {other} in another version of the event; name the versions one by one",
                        field.name()
                    )
                })?;
                *known = Field::new(known.name(), both, true);
            }
        }
        Ok(Arc::new(Schema::new(columns)))
    }
}

fn time_type() -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()))
}

fn schema<const N: usize>(columns: [(&str, DataType); N]) -> SchemaRef {
    Arc::new(Schema::new(columns.map(|(name, ty)| Field::new(name, ty, true)).to_vec()))
}

/// The columns that all events have.
fn common_columns() -> SchemaRef {
    schema([
        ("ts", time_type()),
        ("host", DataType::Utf8View),
        ("pid", DataType::UInt32),
        ("tid", DataType::UInt32),
        ("thread", DataType::Utf8View),
        ("stream", DataType::Utf8View),
        ("seq", DataType::UInt64),
        ("lost_before", DataType::UInt64),
    ])
}

fn account_columns() -> SchemaRef {
    schema([
        ("trace", DataType::Utf8View),
        ("pid", DataType::UInt32),
        ("scope", DataType::Utf8View),
        ("channel", DataType::UInt64),
        ("name", DataType::Utf8View),
        ("stream", DataType::Utf8View),
        ("what", DataType::Utf8View),
        ("reason", DataType::Utf8View),
        ("count", DataType::UInt64),
    ])
}

fn losses_columns() -> SchemaRef {
    schema([
        ("from_ts", time_type()),
        ("to_ts", time_type()),
        ("stream", DataType::Utf8View),
        ("what", DataType::Utf8View),
        ("events", DataType::UInt64),
        ("packets", DataType::UInt64),
        ("reason", DataType::Utf8View),
    ])
}
