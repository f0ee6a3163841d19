//! Runs queries of stores of traces on several machines, by Ballista.
//!
//! A [`Cluster`] is the client of a scheduler, and runs the queries of an engine there:
//! [`EngineOptions::runner`](tracepoint_query::EngineOptions::runner). The [scheduler](run_scheduler) divides a query into stages and tasks, and hands
//! them to [executors](run_executor), which read the files of the store and each other's intermediate results. All three are parts of one program,
//! of one version. `docs/query.md` has the commands, and what an open port of a scheduler or an executor means.
//!
//! What can go wrong, and what is done then:
//!
//! * An executor dies: it is given up after [`EXECUTOR_TIMEOUT`] without a sign of life, or when another cannot fetch its results. Its tasks run
//!   again on others. If none is left, the query fails.
//! * There is no executor: the client asks the scheduler before it sends a query, and while it waits ([`Cluster`]).
//! * The scheduler dies: the stream of its client ends, and the query fails.
//! * The client dies: its query runs to the end, and its results are removed after five minutes.

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

/// After this time without a sign of life, an executor is taken for dead.
pub const EXECUTOR_TIMEOUT: Duration = Duration::from_secs(15);
/// How often an executor gives a sign of life.
const HEARTBEAT: Duration = Duration::from_secs(3);
/// The bytes of the largest message: plans with their files, and batches of rows.
const MESSAGE: u32 = 64 << 20;
