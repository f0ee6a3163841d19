//! Serialises a table: the location of its store and relative paths of its files, or the packets of a trace. The columns come with the plan.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::{DataFusionError, internal_datafusion_err, plan_datafusion_err};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::object_store::ObjectMeta;
use datafusion::object_store::path::Path;
use serde::{Deserialize, Serialize};
use tracepoint_tables::ScanDescription;

use crate::stored_file::{Key, StoredFile, parse};
use crate::table::{Events, Place, StoreTable};
use crate::trace::DescribedTable;

/// Version of the encoding. A process with another version refuses the table.
const VERSION: u32 = 2;

#[derive(Serialize, Deserialize)]
struct EncodedTable {
    version: u32,
    table: Table,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Table {
    Store(StoredFiles),
    Trace(ScanDescription),
}

#[derive(Serialize, Deserialize)]
struct StoredFiles {
    place: Place,
    /// Names of the partition columns.
    keys: Vec<String>,
    files: Vec<File>,
}

/// A file of a table. Contains only the data needed to read it.
#[derive(Serialize, Deserialize)]
struct File {
    path: String,
    size: u64,
}

/// Encodes a table of a store or of a trace; `None` if it is another table.
///
/// # Errors
/// No errors are known.
pub fn encode_table(table: &dyn TableProvider) -> Result<Option<Vec<u8>>, DataFusionError> {
    let table = if let Some(table) = table.downcast_ref::<StoreTable>() {
        let file = |file: &StoredFile| File { path: file.object.location.to_string(), size: file.object.size };
        Table::Store(StoredFiles {
            place: table.place().clone(),
            keys: table.keys().iter().map(|key| key.name().to_owned()).collect(),
            files: table.all_files().iter().map(file).collect(),
        })
    } else if let Some(table) = table.downcast_ref::<DescribedTable>() {
        Table::Trace(table.description().clone())
    } else {
        return Ok(None);
    };
    let encoded = EncodedTable { version: VERSION, table };
    serde_json::to_vec(&encoded)
        .map(Some)
        .map_err(|error| internal_datafusion_err!("a table cannot be encoded: {error}"))
}

/// Decodes a table with these columns. This process resolves the URL of a store; a trace must be at the same path.
///
/// # Errors
/// If the bytes have another version, or are not an encoded table.
pub fn decode_table(bytes: &[u8], schema: &SchemaRef) -> Result<Arc<dyn TableProvider>, DataFusionError> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let invalid = |error: &dyn std::fmt::Display| plan_datafusion_err!("a table of a query is not valid: {error}");
    let Version { version } = serde_json::from_slice(bytes).map_err(|error| invalid(&error))?;
    if version != VERSION {
        return Err(plan_datafusion_err!(
            "the tables of the query have version {version}, and {VERSION} is needed: use the same version of tracectl-query everywhere"
        ));
    }
    let EncodedTable { table, .. } = serde_json::from_slice(bytes).map_err(|error| invalid(&error))?;
    let StoredFiles { place, keys, files } = match table {
        Table::Store(stored) => stored,
        Table::Trace(description) => return Ok(Arc::new(DescribedTable::new(description, schema))),
    };
    let keys: Vec<Key> =
        keys.iter().map(|key| key.parse()).collect::<Result<_, ()>>().map_err(|()| invalid(&"its partitions"))?;
    let columns = schema.fields().len().checked_sub(keys.len()).ok_or_else(|| invalid(&"its columns"))?;
    let columns = Schema::new_with_metadata(schema.fields()[..columns].to_vec(), schema.metadata().clone());
    let url = ObjectStoreUrl::parse(&place.url)?;
    let file = |file: &File| {
        let path = Path::parse(&file.path).ok()?;
        let (_, partition) = parse(&path)?;
        let location = Path::parse(format!("{}/{path}", place.prefix).trim_matches('/')).ok()?;
        let object =
            ObjectMeta { location, last_modified: UNIX_EPOCH.into(), size: file.size, e_tag: None, version: None };
        Some(StoredFile { object, partition })
    };
    let files: Option<Vec<_>> = files.iter().map(file).collect();
    let files = Arc::new(files.ok_or_else(|| invalid(&"the path of a file"))?);
    // Only the client needs to know the events.
    Ok(Arc::new(StoreTable::new(Events::All, files, &url, &place, Arc::new(columns), &keys)))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field};

    use super::*;

    #[test]
    fn a_table_is_the_same_after_the_way_and_its_files_have_their_places_in_full() {
        let place = Place { url: "s3://bucket".to_owned(), prefix: "a b/traces".to_owned() };
        let path =
            Path::parse("day=2026-11-24/host=web%201/session=s/event=shop%3Aasked/part-1.parquet").expect("a path");
        let (_, partition) = parse(&path).expect("a file of a store");
        let object = ObjectMeta {
            location: path.clone(),
            last_modified: UNIX_EPOCH.into(),
            size: 77,
            e_tag: None,
            version: None,
        };
        let files = Arc::new(vec![StoredFile { object, partition: partition.clone() }]);
        let columns = Arc::new(Schema::new(vec![Field::new("id", DataType::UInt64, true)]));
        let url = ObjectStoreUrl::parse("tracepoint://store").expect("a URL");
        let keys = [Key::Day, Key::Session];
        let table = StoreTable::new(Events::All, files, &url, &place, columns, &keys);
        let bytes = encode_table(&table).expect("it is encoded").expect("a table of a store");
        let decoded = decode_table(&bytes, &table.schema()).expect("it is decoded");
        assert_eq!(decoded.schema(), table.schema());
        let decoded = decoded.downcast_ref::<StoreTable>().expect("a table of a store");
        assert_eq!(decoded.keys(), keys);
        let [file] = decoded.all_files() else { panic!("one file") };
        assert_eq!((file.object.size, &file.partition), (77, &partition));
        assert_eq!(file.object.location.as_ref(), format!("a b/traces/{path}"));
    }

    #[test]
    fn tables_of_other_versions_and_what_is_none_are_refused() {
        let schema = Arc::new(Schema::empty());
        let error = |bytes: &str| decode_table(bytes.as_bytes(), &schema).expect_err("refused").to_string();
        assert!(error(r#"{"version":3,"tables":[]}"#).contains("use the same version of tracectl-query everywhere"));
        for bytes in [
            "",
            "{}",
            r#"{"version":2}"#,
            r#"{"version":2,"table":{"store":{"place":{"url":"s3://b","prefix":""},"keys":["day"],"files":[]}}}"#,
            r#"{"version":2,"table":{"trace":{"path":[47]}}}"#,
        ] {
            assert!(error(bytes).contains("is not valid"), "{bytes}");
        }
    }
}
