//! Why a query does not run on a cluster, and what mends that.

use std::path::PathBuf;

use thiserror::Error;

/// An error of a cluster.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// An address is not valid.
    #[error("`{address}` is no address: {reason}; write HOST:PORT")]
    Address {
        /// The address.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Nothing can be bound to an address.
    #[error("cannot listen on {address}: {reason}")]
    Bind {
        /// The address.
        address: String,
        /// Why.
        reason: String,
    },
    /// There is no scheduler.
    #[error(
        "the scheduler {scheduler} cannot be reached: {reason}; start one: `tracectl query scheduler --bind {scheduler}`"
    )]
    NoScheduler {
        /// Its address.
        scheduler: String,
        /// Why.
        reason: String,
    },
    /// A scheduler has no executor.
    #[error(
        "the scheduler {scheduler} has no executor; start one on each machine: `tracectl query executor --scheduler {scheduler}`"
    )]
    NoExecutor {
        /// Its address.
        scheduler: String,
    },
    /// A scheduler and a client are of different versions.
    #[error(
        "the scheduler {scheduler} is of another version: {reason} Use the same version of tracectl-query everywhere"
    )]
    Version {
        /// Its address.
        scheduler: String,
        /// Which versions.
        reason: String,
    },
    /// An executor cannot read a file.
    #[error(
        "an executor cannot read a file of the store or the trace: {reason}. That must be at the same path on the hosts of all executors, or a store in \
         S3, with credentials in the environment of each; or `compact` or `retain` has removed the file: then repeat the query"
    )]
    NoFile {
        /// Which file.
        reason: String,
    },
    /// The query failed otherwise.
    #[error("the query failed on the cluster: {reason}")]
    Failed {
        /// Why.
        reason: String,
    },
    /// The directory for intermediate results cannot be used.
    #[error("{}: {reason}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl ClusterError {
    /// What the failure of a query on this scheduler means.
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
