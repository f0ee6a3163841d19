//! Errors of a cluster, each with its remedy.

use thiserror::Error;

/// An error of a cluster.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// An invalid address, and the fault.
    #[error("`{0}` is no address: {1}; write HOST:PORT")]
    Address(String, String),
    /// The address cannot be bound, for this reason.
    #[error("cannot listen on {0}: {1}")]
    Bind(String, String),
    /// The scheduler at this address cannot be reached, for this reason.
    #[error("the scheduler {0} cannot be reached: {1}; start one: `tracectl query scheduler --bind {0}`")]
    NoScheduler(String, String),
    /// The scheduler at this address has no executor.
    #[error("the scheduler {0} has no executor; start one on each machine: `tracectl query executor --scheduler {0}`")]
    NoExecutor(String),
    /// The scheduler at this address has another version than this client.
    #[error("the scheduler {0} is of another version: {1} Use the same version of tracectl-query everywhere")]
    Version(String, String),
    /// An executor cannot read a file: the file, and the cause.
    #[error(
        "an executor cannot read a file of the store or the trace: {0}. That must be at the same path on the hosts of all executors, or a store in \
         S3, with credentials in the environment of each; or `compact` or `retain` has removed the file: then repeat the query"
    )]
    NoFile(String),
    /// Any other failure of the query.
    #[error("the query failed on the cluster: {0}")]
    Failed(String),
}

impl ClusterError {
    /// Classifies the failure of a query by the text that the scheduler reports.
    pub(crate) fn of(scheduler: &str, text: &str) -> Self {
        let scheduler = scheduler.to_owned();
        let reason = text.trim().to_owned();
        if reason.contains("must have the same major version") {
            Self::Version(scheduler, reason)
        } else if ["not found", "NotFound", "No such file", "no such directory", "Permission denied"]
            .iter()
            .any(|sign| reason.contains(sign))
        {
            Self::NoFile(reason)
        } else if reason.contains("ConnectError") || reason.contains("transport error") {
            Self::NoScheduler(scheduler, reason)
        } else if reason.contains("no executors remain") {
            Self::NoExecutor(scheduler)
        } else {
            Self::Failed(reason)
        }
    }
}
