//! The tables of an open trace.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Schema, SchemaRef};
use tracepoint_reader::account::uuid_text;
use tracepoint_reader::metadata::{EventClass, Metadata, StreamClass};
use tracepoint_reader::{StreamIndex, Trace, TraceIndex, chunk_number};

use crate::accounts::identities;
use crate::description::{BytePath, Run, ScanDescription, Selection};
use crate::error::TablesError;
use crate::layout::Layout;
use crate::names::as_stored;
use crate::naming::Names;
use crate::place::HostSession;
use crate::streams::{place, stream_name};
use crate::survey::Survey;

/// A kind of event.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    /// The name of the table.
    pub(crate) table: Arc<str>,
    pub(crate) layout: Arc<Layout>,
}

/// The kinds of events of a stream class, by their ids.
pub(crate) type ClassKinds = HashMap<u64, Kind>;

/// A stream of a trace.
#[derive(Clone, Debug)]
pub struct TableStream {
    /// The packets of the stream.
    pub index: Arc<StreamIndex>,
    /// The columns `host` and `session`.
    pub place: HostSession,
    /// The column `stream`.
    pub name: Arc<str>,
    pub(crate) kinds: Arc<ClassKinds>,
}

impl TableStream {
    /// Returns whether the stream may have events of one of these tables.
    pub fn may_have(&self, tables: &HashSet<&str>) -> bool {
        self.kinds.values().any(|kind| tables.contains(&*kind.table))
    }

    /// Returns whether packets can be read independently for these columns. They cannot if the columns include event numbers that only counting
    /// provides.
    pub fn is_divisible(&self, columns: &Schema) -> bool {
        let packet = &self.index.stream().class.packet_context;
        let is_numbered = packet.iter().flat_map(|ty| &ty.fields).any(|field| field.name() == "events_before");
        is_numbered || columns.field_with_name("seq").is_err()
    }
}

/// The tables of an open trace: one for each kind of event, the losses, and the account.
#[derive(Debug)]
pub struct TraceTables {
    path: PathBuf,
    trace: Trace,
    index: TraceIndex,
    names: Names,
    /// By the address of the stream class, which the trace keeps alive.
    kinds: HashMap<usize, Arc<ClassKinds>>,
    events: BTreeMap<Arc<str>, SchemaRef>,
    streams: Vec<TableStream>,
    survey: OnceLock<Result<Survey, String>>,
}

impl TraceTables {
    /// Opens a directory with one trace or several, or a dt file. Reads the metadata and a packet of each stream. If events of the same name have
    /// different columns, reads more packets, to number the versions as a store does.
    ///
    /// # Errors
    /// [`TablesError::Read`], [`TablesError::GivenTwice`].
    pub fn open(path: &Path) -> Result<Self, TablesError> {
        let (path, trace) = opened(path)?;
        let names = Names::of(&trace);
        Ok(Self::new(path, trace, names))
    }

    /// Opens the trace of a description.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn of(description: &ScanDescription) -> Result<Self, TablesError> {
        let (path, trace) = opened(description.path())?;
        Ok(Self::new(path, trace, description.names.clone()))
    }

    fn new(path: PathBuf, trace: Trace, names: Names) -> Self {
        let index = trace.index();
        let (mut kinds, mut events) = (HashMap::new(), BTreeMap::new());
        for class in trace.metadata().flat_map(|(_, metadata)| metadata.streams()) {
            let mut of_class = ClassKinds::new();
            for event in class.events.values() {
                let layout = Arc::new(Layout::of(event, class));
                let table = table_name(&names, event, &layout);
                let columns = events.entry(Arc::clone(&table)).or_insert_with(|| Arc::clone(layout.schema()));
                debug_assert_eq!(columns, layout.schema());
                of_class.insert(event.id, Kind { table, layout });
            }
            kinds.insert(Arc::as_ptr(class) as usize, Arc::new(of_class));
        }
        let stream = |index: &Arc<StreamIndex>| {
            let stream = index.stream();
            let class = Arc::as_ptr(&stream.class) as usize;
            TableStream {
                index: Arc::clone(index),
                place: place(&stream.metadata, stream.file.parent()),
                name: stream_name(&stream.metadata, stream.class.id, stream.instance, &stream.file),
                kinds: kinds.get(&class).map(Arc::clone).unwrap_or_default(),
            }
        };
        let streams = index.streams().iter().map(stream).collect();
        Self { path, trace, index, names, kinds, events, streams, survey: OnceLock::new() }
    }

    /// The absolute path of the trace.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The table names of events, with the columns as in a store. An event declared in the metadata has a table even if the trace has no such event.
    pub fn events(&self) -> impl Iterator<Item = (&str, &SchemaRef)> {
        self.events.iter().map(|(name, columns)| (&**name, columns))
    }

    /// The streams of the trace.
    pub fn streams(&self) -> &[TableStream] {
        &self.streams
    }

    /// Describes a scan. Streams in the partitions are indices into [`streams`](Self::streams).
    pub fn describe(
        &self,
        selection: Selection,
        columns: SchemaRef,
        partitions: Vec<Vec<(usize, Range<usize>)>>,
    ) -> ScanDescription {
        let mut description = ScanDescription::new(&self.path, self.names.clone(), selection, columns);
        let mut known = HashMap::new();
        let streams = &mut description.streams;
        let mut run = |(stream, packets): (usize, Range<usize>)| {
            let number = *known.entry(stream).or_insert_with(|| {
                streams.push(BytePath(self.relative(&self.streams[stream].index)));
                streams.len() - 1
            });
            Run { stream: number, packets }
        };
        description.partitions = partitions.into_iter().map(|runs| runs.into_iter().map(&mut run).collect()).collect();
        description
    }

    /// Finds the stream with this first file, whose path is in a description.
    pub(crate) fn stream(&self, file: &BytePath) -> Result<&TableStream, TablesError> {
        let found = self.streams.iter().find(|stream| self.relative(&stream.index) == file.0);
        found.ok_or_else(|| TablesError::Removed(self.path.clone(), file.0.clone()))
    }

    fn relative(&self, index: &StreamIndex) -> PathBuf {
        let file = &index.stream().file;
        file.strip_prefix(&self.path).unwrap_or(file).to_owned()
    }

    /// The table `losses`, with its partition columns. The first call of this function or of [`account`](Self::account) reads the complete trace.
    ///
    /// # Errors
    /// No errors are known.
    pub fn losses(&self) -> Result<RecordBatch, TablesError> {
        Ok(self.survey()?.losses.clone())
    }

    /// The table `account`, with its partition columns. The first call of this function or of [`losses`](Self::losses) reads the complete trace.
    ///
    /// # Errors
    /// No errors are known.
    pub fn account(&self) -> Result<RecordBatch, TablesError> {
        Ok(self.survey()?.account.clone())
    }

    /// Number of damaged parts of the trace: unreadable packets, and metadata. Costs the same as [`losses`](Self::losses).
    ///
    /// # Errors
    /// No errors are known.
    pub fn damage(&self) -> Result<u64, TablesError> {
        Ok(self.survey()?.damage)
    }

    fn survey(&self) -> Result<&Survey, ArrowError> {
        let name = |event: &Arc<EventClass>, class: &Arc<StreamClass>| self.raw_name(event, class);
        let survey = self.survey.get_or_init(|| Survey::of(&self.trace, &name).map_err(|error| error.to_string()));
        survey.as_ref().map_err(|error| ArrowError::ComputeError(error.clone()))
    }

    /// The complete name of an event in the account, never truncated.
    fn raw_name(&self, event: &EventClass, class: &Arc<StreamClass>) -> String {
        let known = self.kinds.get(&(Arc::as_ptr(class) as usize)).and_then(|kinds| kinds.get(&event.id));
        match known {
            Some(kind) => self.names.name(&event.name, &kind.layout),
            None => self.names.name(&event.name, &Layout::of(event, class)),
        }
    }

    /// Returns whether the trace with this UUID consists of chunks.
    pub fn is_in_chunks(&self, uuid: &str) -> bool {
        let is_of = |metadata: &Metadata| metadata.uuid().map(uuid_text).as_deref() == Some(uuid);
        self.trace.metadata().any(|(path, metadata)| chunk_number(path).is_some() && is_of(metadata))
    }

    /// The index of the trace, built without reading the complete packets.
    pub fn index(&self) -> &TraceIndex {
        &self.index
    }
}

fn opened(path: &Path) -> Result<(PathBuf, Trace), TablesError> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let trace = Trace::open(&path)?;
    identities(&trace)?;
    Ok((path, trace))
}

/// The table name of an event, as in a store.
fn table_name(names: &Names, event: &EventClass, layout: &Layout) -> Arc<str> {
    as_stored(Some(&names.name(&event.name, layout))).unwrap_or_default().into()
}
