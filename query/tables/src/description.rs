//! What a scan of a trace reads: all that another process needs that sees the same files.

use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use arrow_schema::SchemaRef;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::TablesError;
use crate::naming::Names;

/// The tables of whose rows a scan consists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Selection {
    /// The events of these tables, by their names.
    Events(Vec<String>),
    /// The same, but only the columns that all events have.
    Common(Vec<String>),
    /// What is missing.
    Losses,
    /// The account.
    Account,
}

impl Selection {
    /// The tables of events.
    pub fn tables(&self) -> &[String] {
        match self {
            Self::Events(tables) | Self::Common(tables) => tables,
            Self::Losses | Self::Account => &[],
        }
    }
}

/// Packets of a stream, by their numbers in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The stream, as an index of the streams of the description.
    pub stream: usize,
    /// The packets.
    pub packets: Range<usize>,
}

/// A path, in which any bytes may be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BytePath(pub PathBuf);

impl Serialize for BytePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_os_str().as_bytes().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for BytePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(PathBuf::from(OsString::from_vec(Vec::deserialize(deserializer)?))))
    }
}

/// Columns, as Arrow writes them in front of a stream of batches.
mod columns {
    use arrow_ipc::reader::StreamReader;
    use arrow_ipc::writer::StreamWriter;
    use arrow_schema::SchemaRef;
    use serde::de::Error as _;
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(schema: &SchemaRef, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        let written = StreamWriter::try_new(&mut bytes, schema).and_then(|mut writer| writer.finish());
        written.map_err(S::Error::custom)?;
        bytes.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SchemaRef, D::Error> {
        let bytes = Vec::<u8>::deserialize(deserializer)?;
        Ok(StreamReader::try_new(bytes.as_slice(), None).map_err(D::Error::custom)?.schema())
    }
}

/// A scan of a trace, divided into partitions. It says all that there is to know, so that a partition may be read by another process that sees the
/// trace at the same path: [`Scan`](crate::Scan) reads it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScanDescription {
    path: BytePath,
    /// The tables.
    pub selection: Selection,
    /// The columns that are wanted, each of the name and the type that it has in the table.
    #[serde(with = "columns")]
    pub schema: SchemaRef,
    /// Rows from this time on, and before that one, in nanoseconds since the epoch, are enough.
    pub times: Range<Option<i64>>,
    /// At most so many rows of each partition are enough.
    pub limit: Option<usize>,
    /// The most rows of a batch.
    pub batch_rows: usize,
    /// The first files of the streams, from the path on.
    pub(crate) streams: Vec<BytePath>,
    /// What each partition reads. Losses and the account have one partition, which is empty here.
    pub partitions: Vec<Vec<Run>>,
    /// The names of tables.
    pub(crate) names: Names,
}

impl ScanDescription {
    pub(crate) fn new(path: &Path, names: Names, selection: Selection, schema: SchemaRef) -> Self {
        Self {
            path: BytePath(path.to_owned()),
            selection,
            schema,
            times: None..None,
            limit: None,
            batch_rows: 8192,
            streams: Vec::new(),
            partitions: vec![Vec::new()],
            names,
        }
    }

    /// The trace.
    pub fn path(&self) -> &Path {
        &self.path.0
    }

    /// The description as bytes, for another process.
    ///
    /// # Errors
    /// None that is known.
    pub fn to_bytes(&self) -> Result<Vec<u8>, TablesError> {
        Ok(serde_json::to_vec(self)?)
    }

    /// Reads what [`to_bytes`](Self::to_bytes) has written.
    ///
    /// # Errors
    /// [`TablesError::Description`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TablesError> {
        Ok(serde_json::from_slice(bytes)?)
    }
}
