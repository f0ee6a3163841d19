//! Runs queries of stores of traces on several machines, using Ballista.
//!
//! A [`Cluster`] is the client of a scheduler; an engine runs its queries there by
//! [`EngineOptions::runner`](tracepoint_query::EngineOptions::runner). The [scheduler](run_scheduler) divides a query into stages and tasks and
//! assigns them to [executors](run_executor), which read the files of the store and each other's intermediate results. All three are parts of one
//! program and must have the same version. `docs/query.md` lists the commands, and the risks of an open scheduler or executor port.
//!
//! Use this crate directly, as the runner of a `tracepoint_query::Engine`; `tracectl query --cluster` is the command.
//!
//! A plan is reduced to the files and packets that it needs before it is sent. The scheduler turns a table of a store into an ordinary scan of
//! Parquet files, which executors run without code of this project. It divides a table of a trace like a scan of files, one for each partition;
//! executors turn their parts back into scans of packets (`codec`).
//!
//! Failures and their handling:
//!
//! * An executor dies: the scheduler drops it after [`EXECUTOR_TIMEOUT`] without a heartbeat, or when another executor cannot fetch its results. Its
//!   tasks are repeated on other executors. If none is left, the query fails.
//! * No executor is registered: the client checks with the scheduler before it sends a query, and while it waits ([`Cluster`]).
//! * The scheduler dies: its client's stream ends, and the query fails.
//! * The client dies: its query runs to the end, and the results are removed after five minutes.

mod address;
mod client;
mod codec;
mod error;
mod executor;
mod objects;
mod scheduler;
mod watch;

use std::time::Duration;

pub use client::Cluster;
pub use error::ClusterError;
pub use executor::{ExecutorOptions, run_executor};
pub use scheduler::{SchedulerOptions, run_scheduler};

/// An executor without a heartbeat for this time is considered dead.
pub const EXECUTOR_TIMEOUT: Duration = Duration::from_secs(15);
/// Interval between heartbeats of an executor.
const HEARTBEAT: Duration = Duration::from_secs(3);
/// Maximum size of a message in bytes. Messages are plans with their files, and batches of rows.
const MESSAGE: u32 = 64 << 20;
