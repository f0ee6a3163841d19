//! The server.

use std::net::SocketAddr;
use std::sync::Arc;

use arrow_flight::flight_service_server::FlightServiceServer;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;

use crate::access::{Access, Token};
use crate::error::ServeError;
use crate::service::Service;
use crate::stores::{Opener, Stores};

/// Options of the server.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The address to listen on; its port may be 0.
    pub bind: SocketAddr,
    /// The secret that clients must send. Without one, only a loopback address is served.
    pub token: Option<Token>,
    /// Maximum number of queries that run at the same time. Further queries wait, and are refused after a minute.
    pub queries: usize,
}

/// Serves a store until an interrupt. Calls `ready` with the address once the server listens.
///
/// # Errors
/// [`ServeError`].
pub async fn serve(options: ServeOptions, open: Opener, ready: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    if !options.bind.ip().is_loopback() && options.token.is_none() {
        return Err(ServeError::Open(options.bind));
    }
    let bind = |error| ServeError::Bind(options.bind, error);
    let listener = TcpListener::bind(options.bind).await.map_err(bind)?;
    let address = listener.local_addr().map_err(bind)?;
    let stores = Stores::open(open).await?;
    let slots = Arc::new(Semaphore::new(options.queries.max(1)));
    let service = Service { stores, slots };
    ready(address);
    let served = Server::builder()
        .add_service(FlightServiceServer::with_interceptor(service, Access(options.token)))
        .serve_with_incoming(TcpListenerStream::new(listener));
    // Running queries end with their connections: a client that fetches rows for hours does not delay the shutdown.
    tokio::select! {
        served = served => Ok(served?),
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}
