//! The files of a store. The path of a file determines its table and its partition values.

use std::str::FromStr;

use datafusion::arrow::array::types::Date32Type;
use datafusion::arrow::compute::kernels::cast_utils::Parser;
use datafusion::common::ScalarValue;
use datafusion::object_store::ObjectMeta;
use datafusion::object_store::path::Path;
use tracepoint_tables::names::{is_cut, value_of};

/// A partition key of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Day,
    Host,
    Session,
    Event,
}

impl Key {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Host => "host",
            Self::Session => "session",
            Self::Event => "event",
        }
    }
}

impl FromStr for Key {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        [Self::Day, Self::Host, Self::Session, Self::Event].into_iter().find(|key| key.name() == name).ok_or(())
    }
}

/// The partition values in the path of a file; `None` is NULL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Partition {
    /// Days since the epoch.
    pub(crate) day: Option<i32>,
    pub(crate) host: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) event: Option<String>,
    /// True if the directory name of the host is truncated: `host` then differs from the value of the column.
    pub(crate) is_host_cut: bool,
}

impl Partition {
    pub(crate) fn value(&self, key: Key) -> ScalarValue {
        match key {
            Key::Day => ScalarValue::Date32(self.day),
            Key::Host => ScalarValue::Utf8(self.host.clone()),
            Key::Session => ScalarValue::Utf8(self.session.clone()),
            Key::Event => ScalarValue::Utf8(self.event.clone()),
        }
    }

    fn set(&mut self, key: Key, escaped: &str) {
        let value = value_of(escaped);
        match key {
            Key::Day => self.day = value.as_deref().and_then(day),
            Key::Host => (self.host, self.is_host_cut) = (value, is_cut(escaped)),
            Key::Session => self.session = value,
            Key::Event => self.event = value,
        }
    }
}

/// Parses a day such as `2026-11-23` into days since the epoch.
pub(crate) fn day(text: &str) -> Option<i32> {
    Date32Type::parse(text)
}

/// The table family of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Events,
    Account,
    Losses,
}

/// A Parquet file of a store.
#[derive(Clone, Debug)]
pub(crate) struct StoredFile {
    pub(crate) object: ObjectMeta,
    pub(crate) partition: Partition,
}

/// Parses the path of an object into family and partition; `None` if it is not a file of one of the tables.
pub(crate) fn parse(path: &Path) -> Option<(Family, Partition)> {
    let parts: Vec<_> = path.parts().collect();
    let (name, directories) = parts.split_last()?;
    let is_parquet = name.as_ref().strip_suffix(".parquet").is_some_and(|stem| !stem.starts_with('.'));
    let (family, directories) = match directories.split_first()?.0.as_ref() {
        "account" => (Family::Account, &directories[1..]),
        "losses" => (Family::Losses, &directories[1..]),
        _ => (Family::Events, directories),
    };
    let mut partition = Partition::default();
    for directory in directories {
        let (key, value) = directory.as_ref().split_once('=')?;
        partition.set(key.parse().ok()?, value);
    }
    let has_event = partition.event.is_some();
    (is_parquet && has_event == (family == Family::Events)).then_some((family, partition))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_the_values_of_partitions() {
        let of = |path: &str| parse(&Path::parse(path).expect("a path"));
        let (family, partition) =
            of("day=1970-01-11/host=web%201/session=shop/event=shop%3Aanswered%232/part-1.parquet").expect("events");
        assert_eq!(family, Family::Events);
        assert_eq!((partition.day, partition.host.as_deref()), (Some(10), Some("web 1")));
        assert_eq!(partition.event.as_deref(), Some("shop:answered#2"));
        let (family, partition) =
            of("losses/day=__HIVE_DEFAULT_PARTITION__/host=__HIVE_DEFAULT_PARTITION__/session=a~0/part-1.parquet")
                .expect("losses");
        assert_eq!((family, partition.day, partition.host), (Family::Losses, None, None));
        for other in [
            ".tracepoint/transactions/1/part-1.parquet",
            ".tracepoint/store.json",
            "part-1.parquet",
            "day=1970-01-11/host=a/session=b/part-1.parquet",
            "day=1970-01-11/host=a/session=b/event=c/part-1.json",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
