//! The description of a scan: everything that another process with access to the same files needs to execute it.

use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use arrow_schema::SchemaRef;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::TablesError;
use crate::naming::Names;

/// The tables that a scan reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Selection {
    /// The events of these tables.
    Events(Vec<String>),
    /// The events of these tables, restricted to the columns that all events share.
    Common(Vec<String>),
    /// The losses.
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

/// A range of packets of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The index of the stream in the description.
    pub stream: usize,
    /// The packets.
    pub packets: Range<usize>,
}

/// A path that may contain any bytes.
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

/// Serialises columns as the schema at the start of an Arrow stream.
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

/// A scan of a trace, divided into partitions. It is self-contained: another process that has the trace at the same path can read a partition with
/// [`Scan`](crate::Scan).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScanDescription {
    path: BytePath,
    /// The tables.
    pub selection: Selection,
    /// The columns to read, each with its name and type in the table.
    #[serde(with = "columns")]
    pub schema: SchemaRef,
    /// The range of times to read, in nanoseconds since the epoch: start inclusive, end exclusive. Rows outside of it may be returned as well.
    pub times: Range<Option<i64>>,
    /// Maximum number of rows needed from each partition.
    pub limit: Option<usize>,
    /// Maximum number of rows per batch.
    pub batch_rows: usize,
    /// The first files of the streams, relative to the path.
    pub(crate) streams: Vec<BytePath>,
    /// The packets that each partition reads. Losses and account have one partition, which is empty here.
    pub partitions: Vec<Vec<Run>>,
    /// The table names.
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

    /// The path of the trace.
    pub fn path(&self) -> &Path {
        &self.path.0
    }

    /// Serialises the description for another process.
    ///
    /// # Errors
    /// No errors are known.
    pub fn to_bytes(&self) -> Result<Vec<u8>, TablesError> {
        Ok(serde_json::to_vec(self)?)
    }

    /// Deserialises the output of [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    /// [`TablesError::Description`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TablesError> {
        Ok(serde_json::from_slice(bytes)?)
    }
}
