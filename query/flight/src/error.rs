//! Why nothing is served, and what clients are told when a query fails.

use std::net::SocketAddr;

use thiserror::Error;
use tonic::Status;
use tracepoint_query::QueryError;

/// Why nothing is served.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Others than this host could query the store, without a token.
    #[error("{0} is no loopback address: whoever reaches it could read the store; give a token by `--token`")]
    Open(SocketAddr),
    /// Nothing can be bound to the address.
    #[error("cannot listen on {0}: {1}")]
    Bind(SocketAddr, std::io::Error),
    /// The store or the trace cannot be opened.
    #[error(transparent)]
    Store(#[from] QueryError),
    /// The server has failed.
    #[error("the server has failed: {0}")]
    Failed(#[from] tonic::transport::Error),
}

/// What a client is told of an error of a query.
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
