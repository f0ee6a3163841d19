//! Errors of a cluster, each with its remedy.

use std::path::PathBuf;

use thiserror::Error;

/// An error of a cluster.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// An invalid address.
    #[error("`{address}` is no address: {reason}; write HOST:PORT")]
    Address {
        /// The address.
        address: String,
        /// The fault.
        reason: String,
    },
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {reason}")]
    Bind {
        /// The address.
        address: String,
        /// The error of the operating system.
        reason: String,
    },
    /// The scheduler cannot be reached.
    #[error(
        "the scheduler {scheduler} cannot be reached: {reason}; start one: `tracectl query scheduler --bind {scheduler}`"
    )]
    NoScheduler {
        /// Its address.
        scheduler: String,
        /// The cause.
        reason: String,
    },
    /// The scheduler has no executor.
    #[error(
        "the scheduler {scheduler} has no executor; start one on each machine: `tracectl query executor --scheduler {scheduler}`"
    )]
    NoExecutor {
        /// Its address.
        scheduler: String,
    },
    /// Scheduler and client have different versions.
    #[error(
        "the scheduler {scheduler} is of another version: {reason} Use the same version of tracectl-query everywhere"
    )]
    Version {
        /// Its address.
        scheduler: String,
        /// The versions.
        reason: String,
    },
    /// An executor cannot read a file.
    #[error(
        "an executor cannot read a file of the store or the trace: {reason}. That must be at the same path on the hosts of all executors, or a store in \
         S3, with credentials in the environment of each; or `compact` or `retain` has removed the file: then repeat the query"
    )]
    NoFile {
        /// The file, and the cause.
        reason: String,
    },
    /// Any other failure of the query.
    #[error("the query failed on the cluster: {reason}")]
    Failed {
        /// The cause.
        reason: String,
    },
    /// The directory for intermediate results cannot be used.
    #[error("{}: {reason}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The error of the operating system.
        reason: String,
    },
}

impl ClusterError {
    /// Classifies the failure of a query by the text that the scheduler reports.
    pub(crate) fn of(scheduler: &str, text: &str) -> Self {
        let scheduler = scheduler.to_owned();
        let reason = text.trim().to_owned();
        if reason.contains("must have the same major version") {
            Self::Version { scheduler, reason }
        } else if ["not found", "NotFound", "No such file", "no such directory", "Permission denied"]
            .iter()
            .any(|sign| reason.contains(sign))
        {
            Self::NoFile { reason }
        } else if reason.contains("ConnectError") || reason.contains("transport error") {
            Self::NoScheduler { scheduler, reason }
        } else if reason.contains("no executors remain") {
            Self::NoExecutor { scheduler }
        } else {
            Self::Failed { reason }
        }
    }
}
