//! Opens a store, and runs queries.

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
use crate::completeness::{self, Missing, Read};
use crate::distributed::{Runner, is_sent, reduced};
use crate::error::QueryError;
use crate::planner::Planner;
use crate::table::Place;

/// The file that says that a directory is a store.
const IDENTITY: &str = ".tracepoint/store.json";
/// The format and its version that are read.
const FORMAT: (&str, u32) = ("tracepoint-parquet", 1);
/// The place of the files in `DataFusion`'s registry of object stores.
const URL: &str = "tracepoint://store";

/// What a query may use.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EngineOptions {
    /// The bytes of memory of each query for what is sorted, grouped and joined; beyond that, it is spilled to the directory for temporary files. What is
    /// read and decoded at a time comes on top: a few row groups.
    pub memory: usize,
    /// How many threads' worth of work a query is divided into.
    pub parallelism: usize,
    /// Who runs queries, if it is not this process. What may be missing in an answer is found out by this process in any case.
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

/// A store or a trace that is open for queries.
///
/// The files are listed when it is opened: what is written later is not seen.
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
    /// Its columns, those of partitions last.
    pub columns: SchemaRef,
}

/// What an answer would be like.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Description {
    /// The columns of the answer.
    pub columns: SchemaRef,
    /// What may be missing in it: as of [`Engine::missing`].
    pub missing: Missing,
}

/// The rows of an answer, which are computed as they are read.
pub struct Answer {
    stream: SendableRecordBatchStream,
    reads: Vec<Read>,
}

impl Engine {
    /// Opens a store in a local directory.
    ///
    /// # Errors
    /// [`QueryError::NotAStore`], or that files cannot be listed.
    pub async fn open(directory: &Path, options: EngineOptions) -> Result<Self, QueryError> {
        let location = directory.display().to_string();
        let objects = LocalFileSystem::new_with_prefix(directory)
            .map_err(|error| QueryError::NotAStore { location: location.clone(), reason: error.to_string() })?;
        let absolute = std::path::absolute(directory).ok().and_then(|path| path::Path::from_absolute_path(path).ok());
        let prefix = absolute.ok_or_else(|| QueryError::NotAStore {
            location: location.clone(),
            reason: "its path is not UTF-8".to_owned(),
        })?;
        let place = Place { url: "file:///".to_owned(), prefix: prefix.to_string() };
        Self::open_objects(Arc::new(objects), place, &location, options).await
    }

    /// Opens a store whose files have this prefix in an object store. Other processes find that by its URL, such as `s3://BUCKET`.
    ///
    /// # Errors
    /// As of [`Self::open`].
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

    /// Opens what is at a path: a store in a directory, or a trace.
    ///
    /// # Errors
    /// [`QueryError::NeitherStoreNorTrace`]; those of [`open`](Self::open) and [`open_trace`](Self::open_trace).
    pub async fn open_any(path: &Path, options: EngineOptions) -> Result<Self, QueryError> {
        if path.join(IDENTITY).exists() {
            return Self::open(path, options).await;
        }
        match Self::open_trace(path, options).await {
            Err(QueryError::Trace(TablesError::Read(ReadError::NotATrace { reason, .. }))) => {
                Err(QueryError::NeitherStoreNorTrace { location: path.display().to_string(), reason })
            }
            opened => opened,
        }
    }

    /// Opens a trace, which has the same tables as a store that has only this trace: a directory with a trace or with several, or a dt file.
    ///
    /// Queries read its packets: those that may have what is asked for by their times and streams. An event that was not recorded is a table
    /// without rows, if the metadata declares it.
    ///
    /// # Errors
    /// [`QueryError::Trace`].
    pub async fn open_trace(path: &Path, options: EngineOptions) -> Result<Self, QueryError> {
        let (context, catalog) = (context(&options)?, Catalog::open_trace(path).await?);
        Ok(Self { planner: Planner { context, catalog }, memory: options.memory, runner: options.runner })
    }

    /// Whether it is a trace, and not a store.
    pub fn is_of_trace(&self) -> bool {
        self.planner.catalog.is_of_trace()
    }

    /// All tables and their columns, but for those of all versions of an event where a column has types that have no common one. Reads the description of
    /// one file of each kind of event.
    ///
    /// # Errors
    /// That a file cannot be read.
    pub async fn tables(&self) -> Result<Vec<TableColumns>, QueryError> {
        let Planner { context, catalog } = &self.planner;
        let (state, mut tables) = (context.state(), Vec::new());
        for name in catalog.names() {
            match catalog.table(&state, &name).await.map_err(QueryError::from) {
                Ok(Some(table)) => tables.push(TableColumns { name, columns: table.schema() }),
                // A query of it says which column it is.
                Err(QueryError::Invalid { .. }) if name.ends_with(ALL_VERSIONS) => {}
                other => _ = other?,
            }
        }
        Ok(tables)
    }

    /// Plans a query and begins to run it. Only queries are run: no statement changes the store or reads other files.
    ///
    /// # Errors
    /// [`QueryError::UnknownTable`], [`QueryError::Invalid`]; that a file cannot be read.
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

    /// The state for one query: what others use does not count.
    fn with_own_memory(&self, state: SessionState) -> Result<SessionState, QueryError> {
        let runtime = RuntimeEnvBuilder::from_runtime_env(state.runtime_env());
        let runtime = runtime.with_memory_pool(Arc::new(FairSpillPool::new(self.memory))).build_arc()?;
        Ok(SessionStateBuilder::new_from_existing(state).with_runtime_env(runtime).build())
    }

    /// Plans a query, and does not run it. Reads the tables `losses` and `account`.
    ///
    /// # Errors
    /// As of [`Self::query`].
    pub async fn describe(&self, sql: &str) -> Result<Description, QueryError> {
        let plan = self.planner.plan(sql).await?;
        let state = self.planner.context.state();
        let columns = Arc::clone(plan.schema().inner());
        let reads = completeness::reads(&state, &state.optimize(&plan)?)?;
        Ok(Description { columns, missing: completeness::missing(&self.planner, &reads).await? })
    }

    /// What may be missing in an answer: events that were lost in the times and partitions that the query reads, damage there, and traces whose
    /// counts are not final. Reads the tables `losses` and `account`.
    ///
    /// # Errors
    /// That a file cannot be read.
    pub fn missing<'a>(&'a self, answer: &'a Answer) -> impl Future<Output = Result<Missing, QueryError>> + Send + 'a {
        // Of the answer, only this goes to another thread: its stream cannot be shared.
        let reads = &answer.reads;
        async move { completeness::missing(&self.planner, reads).await }
    }
}

/// A session of `DataFusion`.
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
    let not_a_store = |reason: String| QueryError::NotAStore { location: location.to_owned(), reason };
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
    /// That a file cannot be read, that memory does not suffice, or that a value cannot be computed.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>, QueryError> {
        Ok(self.stream.try_next().await?)
    }
}
