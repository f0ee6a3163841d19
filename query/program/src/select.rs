//! `tracectl query 'SELECT …' PATH`, and `--tables`.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytesize::ByteSize;
use clap::Args;
use serde_json::json;
use tracepoint_query::distributed::Runner;
use tracepoint_query::{Answer, Engine, EngineOptions, QueryError};
use tracepoint_store::{Objects, Store};

use crate::answer::{AnswerWriter, Format};
use crate::{END, Outcome, VerbResult};
use crate::{cluster, output, place};

/// A query, and the format of its answer.
#[derive(Debug, Args)]
pub(crate) struct Select {
    /// A query; event names must be in double quotes
    #[arg(value_name = "SQL", requires = "store")]
    #[cfg_attr(feature = "flight", arg(required_unless_present_any = ["tables", "serve"]))]
    #[cfg_attr(not(feature = "flight"), arg(required_unless_present = "tables"))]
    sql: Option<String>,
    /// A store, or a trace: a directory with one trace or several, or a dt file; or a store as `s3://BUCKET/PREFIX`, with credentials in the
    /// environment
    #[arg(value_name = "PATH")]
    store: Option<PathBuf>,
    /// List the tables of a store or a trace, and their columns
    #[arg(long, value_name = "PATH", conflicts_with_all = ["sql", "store", "csv"])]
    tables: Option<PathBuf>,
    /// Write one JSON object for each row
    #[arg(long)]
    json: bool,
    /// Write CSV, with a header
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// With `--csv`, put `'` in front of texts that a spreadsheet would interpret as formulas
    #[arg(long, requires = "csv")]
    guard_formulas: bool,
    /// Run the query on the cluster of this scheduler; see `tracectl query scheduler`
    #[arg(long, value_name = "HOST:PORT", hide = cfg!(not(feature = "cluster")))]
    cluster: Option<String>,
    /// Maximum number of tasks per step of a query on a cluster
    #[arg(long, value_name = "N", default_value_t = 16, requires = "cluster", hide = cfg!(not(feature = "cluster")))]
    tasks: usize,
    /// The memory for sorting, grouping and joining; beyond it, files in TMPDIR are used
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    memory: ByteSize,
    #[cfg(feature = "flight")]
    #[command(flatten)]
    serve: crate::serve::Serve,
}

/// The result of a verb, from a thread of the runtime.
type SelectResult<T = Outcome> = Result<T, Box<dyn Error + Send + Sync>>;

impl Select {
    pub(crate) fn run(self) -> VerbResult {
        #[cfg(feature = "flight")]
        if self.serve.is_given() {
            return self.serve.run(self.memory);
        }
        // A store in S3 has connections of its own: keep it until the query ends.
        let remote = place::remote(self.tables.as_ref().or(self.store.as_ref()))?;
        let objects = remote.as_ref().and_then(Store::objects);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let outcome = runtime.block_on(self.interruptible(objects));
        // Wait for the tasks: the spill files of a query are removed when its tasks end.
        runtime.shutdown_timeout(END);
        match outcome {
            // The reader has closed the pipe, as `head` does.
            Err(error) if is_closed_pipe(&*error) => Ok(Outcome::Success),
            outcome => Ok(outcome.map_err(|error| -> Box<dyn Error> { error })?),
        }
    }

    async fn interruptible(self, objects: Option<Objects>) -> SelectResult {
        let runner = self.runner().await?;
        let cancelled = runner.clone();
        // Run in a separate task, so that a blocking write does not delay the interrupt.
        let query = tokio::spawn(async move { self.select(objects, runner).await });
        tokio::select! {
            outcome = query => outcome?,
            interrupted = tokio::signal::ctrl_c() => {
                interrupted?;
                if let Some(runner) = cancelled {
                    runner.cancel().await;
                }
                Ok(Outcome::Interrupted)
            }
        }
    }

    /// The runner of the query, if it runs in other processes.
    async fn runner(&self) -> SelectResult<Option<Arc<dyn Runner>>> {
        match &self.cluster {
            Some(scheduler) => Ok(Some(cluster::connect(scheduler, self.tasks).await?)),
            None => Ok(None),
        }
    }

    async fn select(&self, objects: Option<Objects>, runner: Option<Arc<dyn Runner>>) -> SelectResult {
        match (&self.tables, &self.sql, &self.store) {
            (Some(store), ..) => self.list(&self.open(store, objects, runner).await?).await,
            (None, Some(sql), Some(store)) => self.answer(&self.open(store, objects, runner).await?, sql).await,
            _ => unreachable!("clap requires a query and a store"),
        }
    }

    async fn open(
        &self,
        store: &Path,
        objects: Option<Objects>,
        runner: Option<Arc<dyn Runner>>,
    ) -> Result<Engine, QueryError> {
        let mut options = EngineOptions::default();
        options.memory = usize::try_from(self.memory.as_u64()).unwrap_or(usize::MAX);
        if runner.is_some() {
            options.parallelism = self.tasks;
        }
        options.runner = runner;
        place::open(store, objects, options).await
    }

    async fn answer(&self, engine: &Engine, sql: &str) -> SelectResult {
        let mut answer = engine.query(sql).await?;
        let format = match (self.json, self.csv) {
            (true, _) => Format::Json,
            (_, true) => Format::Csv { guards_formulas: self.guard_formulas },
            _ => Format::Table,
        };
        let written = write(&mut answer, format).await;
        // Report missing data for the rows already written, even if the reader has stopped.
        let mut is_damaged = false;
        let is_read = match &written {
            Ok(()) => true,
            Err(error) => is_closed_pipe(&**error),
        };
        if is_read {
            let missing = engine.missing(&answer).await?;
            missing.notes.iter().for_each(|note| output::message("note", note));
            is_damaged = missing.damage > 0 && engine.is_of_trace();
        }
        // The damage in a store was reported when the trace was written into it.
        written.map(|()| if is_damaged { Outcome::Incomplete } else { Outcome::Success })
    }

    async fn list(&self, engine: &Engine) -> SelectResult {
        for table in engine.tables().await? {
            let columns = table.columns.fields().iter().map(|field| (field.name(), field.data_type().to_string()));
            if self.json {
                let columns: Vec<_> = columns.map(|(name, ty)| json!({ "name": name, "type": ty })).collect();
                output::json(&json!({ "table": table.name, "columns": columns }))?;
            } else {
                output::line(&format!("\"{}\"", table.name))?;
                columns.into_iter().try_for_each(|(name, ty)| output::line(&format!("    {name} {ty}")))?;
            }
        }
        Ok(Outcome::Success)
    }
}

async fn write(answer: &mut Answer, format: Format) -> SelectResult<()> {
    let mut writer = AnswerWriter::new(format, answer.schema());
    while let Some(rows) = answer.next().await? {
        if writer.write(&rows)?.is_break() {
            break;
        }
    }
    Ok(writer.finish()?)
}

fn is_closed_pipe(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}
