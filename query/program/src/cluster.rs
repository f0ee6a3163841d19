//! `tracectl query scheduler` and `executor`: the processes of a cluster.

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use bytesize::ByteSize;
use clap::Args;
use tempfile::TempDir;
use tracepoint_cluster::{Cluster, ClusterError, ExecutorOptions, SchedulerOptions, run_executor, run_scheduler};
use tracepoint_query::distributed::Runner;

use crate::output;
use crate::{Outcome, VerbResult};

/// Stack size of a thread. Plans are trees, and planning recurses over them.
const STACK: usize = 16 << 20;

/// Connects to the scheduler of a cluster, which divides each step of a query into at most `tasks` tasks.
pub(crate) async fn connect(scheduler: &str, tasks: usize) -> Result<Arc<dyn Runner>, ClusterError> {
    Ok(Arc::new(Cluster::connect(scheduler, tasks).await?))
}

/// Runs the scheduler of a cluster, until an interrupt
///
/// Runs queries started with `--cluster` by distributing their tasks to its executors. Access is neither authenticated nor encrypted: anyone who can
/// connect can run queries, and read everything that the executors can read. The default address is therefore loopback; use `--bind` only with a
/// network that is restricted to the machines of the cluster. Prints its address to the standard output once it listens, and logs to the standard
/// error, in more detail with `RUST_LOG=info`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl query scheduler
  tracectl query scheduler --bind 10.0.0.1:50050")]
pub(crate) struct Scheduler {
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:50050")]
    bind: SocketAddr,
}

impl Scheduler {
    pub(crate) fn run(&self) -> VerbResult {
        let options = SchedulerOptions { bind: self.bind };
        serve(run_scheduler(options, listening))
    }
}

/// Runs an executor of a cluster, until an interrupt
///
/// Runs tasks of queries, and keeps their results until other executors have read them. A store in a directory must be at the same path on the hosts
/// of all executors; for a store in S3, each needs the credentials in its environment. Access is not authenticated: anyone who can connect to its two
/// ports can run queries, and read everything that it can read. Bind it to a network that is restricted to the machines of the cluster. Prints its
/// address to the standard output, and logs to the standard error, in more detail with `RUST_LOG=info`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl query executor --scheduler 127.0.0.1:50050
  tracectl query executor --scheduler 10.0.0.1:50050 --bind 10.0.0.2:50051 --memory 8GiB --directory /var/tmp/executor")]
pub(crate) struct Executor {
    /// The scheduler
    #[arg(long, value_name = "HOST:PORT")]
    scheduler: String,
    /// The address to listen on; the next port is used as well. 0: free ports
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    bind: SocketAddr,
    /// The name or address announced to the other processes, if it differs from `--bind`
    #[arg(long, value_name = "HOST")]
    advertise: Option<String>,
    /// Maximum number of tasks at a time; by default the number of processors
    #[arg(long, value_name = "N")]
    slots: Option<usize>,
    /// The memory for sorting, grouping and joining, shared by all tasks; beyond it, files are used
    #[arg(long, value_name = "SIZE", default_value = "2GiB")]
    memory: ByteSize,
    /// The parent of its directory for intermediate results; by default TMPDIR
    #[arg(long, value_name = "PATH")]
    directory: Option<PathBuf>,
}

impl Executor {
    pub(crate) fn run(&self) -> VerbResult {
        let own = match &self.directory {
            Some(directory) => TempDir::with_prefix_in("executor-", directory),
            None => TempDir::with_prefix("tracectl-executor-"),
        };
        let place = self.directory.clone().unwrap_or_else(std::env::temp_dir);
        let own = own.map_err(|error| format!("{}: {error}", place.display()))?;
        let options = ExecutorOptions {
            scheduler: self.scheduler.clone(),
            bind: self.bind,
            advertise: self.advertise.clone(),
            tasks: self.slots.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
            memory: self.memory.as_u64(),
            directory: own.path().to_owned(),
        };
        serve(run_executor(options, listening))
    }
}

/// Reports the address of a process that is ready.
fn listening(address: SocketAddr) {
    // Ignore a failed write: the parent process has closed the pipe.
    _ = output::line(&format!("listening on {address}"));
}

/// Runs a process of a cluster, and logs warnings of its dependencies to the standard error.
fn serve(process: impl Future<Output = Result<(), ClusterError>>) -> VerbResult {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(STACK).build()?;
    runtime.block_on(process).map_err(Box::<dyn Error>::from)?;
    Ok(Outcome::Interrupted)
}
