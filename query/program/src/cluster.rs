//! `tracectl query scheduler` and `executor`: the processes of a cluster.

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;

use bytesize::ByteSize;
use clap::Args;
use tempfile::TempDir;
use tracepoint_cluster::{ClusterError, ExecutorOptions, SchedulerOptions, run_executor, run_scheduler};

use crate::output;
use crate::{Outcome, VerbResult};

/// The stack of a thread: plans are trees, which are planned by recursion.
const STACK: usize = 16 << 20;

/// Runs the scheduler of a cluster, until an interrupt
///
/// Queries with `--cluster` go to it, and it hands their tasks to its executors. There is no authentication and no encryption: anyone who can
/// connect can run queries, and read what the executors can read. So it listens on the loopback address, if no other is given; bind it to a
/// network that only the machines of the cluster reach. It writes its address on the standard output when it listens, and what happens on the
/// standard error, more with `RUST_LOG=info`.
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
/// It runs tasks of queries, and keeps their results until others have read them. A store in a directory must be at the same path on the hosts of
/// all executors; for one in S3, credentials are in the environment. There is no authentication: anyone who can connect to its two ports can run queries,
/// and read what it can read. Bind it to a network that only the machines of the cluster reach. It writes its address on the standard output, and what happens on the
/// standard error, more with `RUST_LOG=info`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl query executor --scheduler 127.0.0.1:50050
  tracectl query executor --scheduler 10.0.0.1:50050 --bind 10.0.0.2:50051 --memory 8GiB --directory /var/tmp/executor")]
pub(crate) struct Executor {
    /// The scheduler
    #[arg(long, value_name = "HOST:PORT")]
    scheduler: String,
    /// The address to listen on; the next port, too. 0: free ports
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    bind: SocketAddr,
    /// The name or address that the others reach it at, if it is not that of `--bind`
    #[arg(long, value_name = "HOST")]
    advertise: Option<String>,
    /// How many tasks it runs at a time: as many as there are processors, if this is not given
    #[arg(long, value_name = "N")]
    slots: Option<usize>,
    /// The memory for what is sorted, grouped and joined by all tasks together; beyond it, files are used
    #[arg(long, value_name = "SIZE", default_value = "2GiB")]
    memory: ByteSize,
    /// Where intermediate results are kept, in a directory of their own; TMPDIR, if this is not given
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

/// Tells that a process can be reached.
fn listening(address: SocketAddr) {
    // A failed write is ignored: whoever started it does not want to know.
    _ = output::line(&format!("listening on {address}"));
}

/// Runs a process of a cluster, with warnings of what it is built from on the standard error.
fn serve(process: impl Future<Output = Result<(), ClusterError>>) -> VerbResult {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(STACK).build()?;
    runtime.block_on(process).map_err(Box::<dyn Error>::from)?;
    Ok(Outcome::Interrupted)
}
