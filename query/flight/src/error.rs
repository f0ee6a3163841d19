//! Errors of the server, and the statuses that clients receive for failed queries.

use std::net::SocketAddr;

use thiserror::Error;
use tonic::Status;
use tracepoint_query::QueryError;

/// An error that prevents serving.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address is not loopback, and there is no token, so other hosts could query the store.
    #[error("{0} is no loopback address: whoever reaches it could read the store; give a token by `--token`")]
    Open(SocketAddr),
    /// The address cannot be bound.
    #[error("cannot listen on {0}: {1}")]
    Bind(SocketAddr, std::io::Error),
    /// The store or the trace cannot be opened.
    #[error(transparent)]
    Store(#[from] QueryError),
    /// The server failed.
    #[error("the server has failed: {0}")]
    Failed(#[from] tonic::transport::Error),
}

/// The gRPC status for an error of a query.
pub(crate) fn status(error: &QueryError) -> Status {
    let text = error.to_string();
    match error {
        QueryError::UnknownTable { .. } => Status::not_found(text),
        QueryError::Invalid { .. } => Status::invalid_argument(text),
        QueryError::Memory(_) => Status::resource_exhausted(text),
        QueryError::Removed(_) => Status::aborted(text),
        QueryError::NotAStore { .. } | QueryError::NeitherStoreNorTrace { .. } => Status::failed_precondition(text),
        _ => Status::internal(text),
    }
}
