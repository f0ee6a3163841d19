//! Opens stores and traces, and runs queries.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::dataframe::DataFrame;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::object_store::local::LocalFileSystem;
use datafusion::object_store::path;
use datafusion::object_store::prefix::PrefixStore;
use datafusion::object_store::{self, ObjectStore, ObjectStoreExt};
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;
use serde::Deserialize;
use tracepoint_reader::ReadError;
use tracepoint_tables::TablesError;

use crate::catalog::{ALL_VERSIONS, Catalog};
use crate::completeness::{self, MissingData, Read};
use crate::distributed::{Runner, is_sent, reduced};
use crate::error::QueryError;
use crate::planner::Planner;
use crate::table::Place;

/// The file that marks a directory as a store.
const IDENTITY: &str = ".tracepoint/store.json";
/// The supported format, and its version.
const FORMAT: (&str, u32) = ("tracepoint-parquet", 1);
/// The URL of the files in `DataFusion`'s registry of object stores.
const URL: &str = "tracepoint://store";

/// Options of an engine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EngineOptions {
    /// Memory in bytes of each query for sorting, grouping and joining. A query that needs more spills to the directory for temporary files. The data
    /// read and decoded at a time, a few row groups, come on top.
    pub memory: usize,
    /// Maximum number of threads that a query is divided among.
    pub parallelism: usize,
    /// Runs the queries, if set, in place of this process. This process determines the missing data in any case.
    pub runner: Option<Arc<dyn Runner>>,
}

impl Default for EngineOptions {
    /// 1 GiB, and all processors.
    fn default() -> Self {
        let parallelism = std::thread::available_parallelism().map_or(1, usize::from);
        Self { memory: 1 << 30, parallelism, runner: None }
    }
}

/// The contents of [`IDENTITY`].
#[derive(Deserialize)]
struct Identity {
    format: String,
    version: u32,
}

/// An open store or trace, ready for queries.
///
/// The files are listed when it is opened: data written later is not visible.
pub struct Engine {
    planner: Planner,
    memory: usize,
    runner: Option<Arc<dyn Runner>>,
}

/// The columns of a table.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TableColumns {
    /// The name of the table.
    pub name: String,
    /// Its columns, partition columns last.
    pub columns: SchemaRef,
}

/// The description of an answer, without its rows.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Description {
    /// The columns of the answer.
    pub columns: SchemaRef,
    /// Data that may be missing from it, as in [`Engine::missing`].
    pub missing: MissingData,
}

/// The rows of an answer, computed as they are read.
pub struct Answer {
    stream: SendableRecordBatchStream,
    reads: Vec<Read>,
}

impl Engine {
    /// Opens a store in a local directory.
    ///
    /// # Errors
    /// [`QueryError::NotAStore`]; an error if files cannot be listed.
    pub async fn open(directory: &Path, options: EngineOptions) -> Result<Self, QueryError> {
        let location = directory.display().to_string();
        let objects = LocalFileSystem::new_with_prefix(directory)
            .map_err(|error| QueryError::NotAStore(location.clone(), error.to_string()))?;
        let absolute = std::path::absolute(directory).ok().and_then(|path| path::Path::from_absolute_path(path).ok());
        let prefix =
            absolute.ok_or_else(|| QueryError::NotAStore(location.clone(), "its path is not UTF-8".to_owned()))?;
        let place = Place { url: "file:///".to_owned(), prefix: prefix.to_string() };
        Self::open_objects(Arc::new(objects), place, &location, options).await
    }

    /// Opens a store whose files have the prefix `prefix` in an object store. Other processes find the object store by `url`, such as `s3://BUCKET`.
    ///
    /// # Errors
    /// The same as for [`Self::open`].
    pub async fn open_in(
        objects: Arc<dyn ObjectStore>,
        url: &str,
        prefix: path::Path,
        options: EngineOptions,
    ) -> Result<Self, QueryError> {
        let location = format!("{objects}/{prefix}");
        let place = Place { url: url.to_owned(), prefix: prefix.to_string() };
        Self::open_objects(Arc::new(PrefixStore::new(objects, prefix)), place, &location, options).await
    }

    async fn open_objects(
        objects: Arc<dyn ObjectStore>,
        place: Place,
        location: &str,
        options: EngineOptions,
    ) -> Result<Self, QueryError> {
        check_identity(&*objects, location).await?;
        let url = ObjectStoreUrl::parse(URL)?;
        let context = context(&options)?;
        context.register_object_store(url.as_ref(), Arc::clone(&objects));
        let catalog = Catalog::list(objects, url, place).await?;
        Ok(Self { planner: Planner { context, catalog }, memory: options.memory, runner: options.runner })
    }

    /// Opens the store or trace at a path.
    ///
    /// # Errors
    /// [`QueryError::NeitherStoreNorTrace`]; the errors of [`open`](Self::open) and [`open_trace`](Self::open_trace).
    pub async fn open_any(path: &Path, options: EngineOptions) -> Result<Self, QueryError> {
        if path.join(IDENTITY).exists() {
            return Self::open(path, options).await;
        }
        match Self::open_trace(path, options).await {
            Err(QueryError::Trace(TablesError::Read(ReadError::NotATrace { reason, .. }))) => {
                Err(QueryError::NeitherStoreNorTrace(path.display().to_string(), reason))
            }
            opened => opened,
        }
    }

    /// Opens a trace: a directory with one trace or several, or a dt file. The tables are the same as in a store that contains only this trace.
    ///
    /// Queries read the packets whose times and streams may match. An event that the metadata declares but that was not recorded is a table
    /// without rows.
    ///
    /// # Errors
    /// [`QueryError::Trace`].
    pub async fn open_trace(path: &Path, options: EngineOptions) -> Result<Self, QueryError> {
        let (context, catalog) = (context(&options)?, Catalog::open_trace(path).await?);
        Ok(Self { planner: Planner { context, catalog }, memory: options.memory, runner: options.runner })
    }

    /// True for a trace, false for a store.
    pub fn is_of_trace(&self) -> bool {
        self.planner.catalog.is_of_trace()
    }

    /// All tables and their columns. Omits the table of all versions of an event if a column has types without a common supertype. Reads the metadata
    /// of one file per kind of event.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub async fn tables(&self) -> Result<Vec<TableColumns>, QueryError> {
        let Planner { context, catalog } = &self.planner;
        let (state, mut tables) = (context.state(), Vec::new());
        for name in catalog.names() {
            match catalog.table(&state, &name).await.map_err(QueryError::from) {
                Ok(Some(table)) => tables.push(TableColumns { name, columns: table.schema() }),
                // A query of this table reports the column at fault.
                Err(QueryError::Invalid { .. }) if name.ends_with(ALL_VERSIONS) => {}
                other => _ = other?,
            }
        }
        Ok(tables)
    }

    /// Plans a query and starts it. Only queries are accepted: no statement changes the store or reads other files.
    ///
    /// # Errors
    /// [`QueryError::UnknownTable`], [`QueryError::Invalid`]; an error if a file cannot be read.
    pub async fn query(&self, sql: &str) -> Result<Answer, QueryError> {
        let plan = self.planner.plan(sql).await?;
        let state = self.planner.context.state();
        let optimized = state.optimize(&plan)?;
        let reads = completeness::reads(&state, &optimized)?;
        let stream = match &self.runner {
            Some(runner) if is_sent(&optimized)? => {
                let reduced = tokio::task::spawn_blocking(move || reduced(&state, optimized)).await;
                runner.run(reduced.map_err(|error| QueryError::Failed(error.to_string()))??).await?
            }
            _ => DataFrame::new(self.with_own_memory(state)?, plan).execute_stream().await?,
        };
        Ok(Answer { stream, reads })
    }

    /// A session state whose memory pool belongs to one query alone.
    fn with_own_memory(&self, state: SessionState) -> Result<SessionState, QueryError> {
        let runtime = RuntimeEnvBuilder::from_runtime_env(state.runtime_env());
        let runtime = runtime.with_memory_pool(Arc::new(FairSpillPool::new(self.memory))).build_arc()?;
        Ok(SessionStateBuilder::new_from_existing(state).with_runtime_env(runtime).build())
    }

    /// Plans a query without running it. Reads the tables `losses` and `account`.
    ///
    /// # Errors
    /// The same as for [`Self::query`].
    pub async fn describe(&self, sql: &str) -> Result<Description, QueryError> {
        let plan = self.planner.plan(sql).await?;
        let state = self.planner.context.state();
        let columns = Arc::clone(plan.schema().inner());
        let reads = completeness::reads(&state, &state.optimize(&plan)?)?;
        Ok(Description { columns, missing: completeness::missing(&self.planner, &reads).await? })
    }

    /// Determines what may be missing from an answer: events lost in the times and partitions that the query reads, damage there, and traces whose
    /// counts are not final. Reads the tables `losses` and `account`.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn missing<'a>(
        &'a self,
        answer: &'a Answer,
    ) -> impl Future<Output = Result<MissingData, QueryError>> + Send + 'a {
        // Borrow only the reads of the answer: its stream is not `Sync`, and the future must be `Send`.
        let reads = &answer.reads;
        async move { completeness::missing(&self.planner, reads).await }
    }
}

fn context(options: &EngineOptions) -> Result<SessionContext, QueryError> {
    let pool = Arc::new(FairSpillPool::new(options.memory));
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc()?;
    let mut state = match &options.runner {
        Some(runner) => runner.state(runtime),
        None => SessionStateBuilder::new().with_runtime_env(runtime).with_default_features().build(),
    };
    let config = state.config_mut();
    config.options_mut().execution.target_partitions = options.parallelism.max(1);
    config.options_mut().sql_parser.collect_spans = true;
    Ok(SessionContext::new_with_state(state))
}

async fn check_identity(objects: &dyn ObjectStore, location: &str) -> Result<(), QueryError> {
    let not_a_store = |reason: String| QueryError::NotAStore(location.to_owned(), reason);
    let json = match objects.get(&path::Path::from(IDENTITY)).await {
        Err(object_store::Error::NotFound { .. }) => return Err(not_a_store(format!("it has no `{IDENTITY}`"))),
        read => read?.bytes().await?,
    };
    match serde_json::from_slice::<Identity>(&json) {
        Ok(Identity { format, version }) if (&*format, version) == FORMAT => Ok(()),
        Ok(Identity { version, .. }) => Err(not_a_store(format!("its version {version} is not supported"))),
        Err(error) => Err(not_a_store(format!("`store.json`: {error}"))),
    }
}

impl Answer {
    /// The columns of the answer.
    pub fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// If a file cannot be read, the memory does not suffice, or a value cannot be computed.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>, QueryError> {
        Ok(self.stream.try_next().await?)
    }
}
