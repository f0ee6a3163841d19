//! The server: three routes that do some work, and a layer that fires an event at each end of a request.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{MatchedPath, Path, Request};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::{get, post};
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint::trace;

tracepoint::define_trace! {
    provider = "http";

    /// A request has arrived. Its route is the pattern of its path.
    req_begin(id: u64, route: &str) { id: u64 = id, route: str = route }

    /// A request was answered.
    req_end(id: u64, route: &str, status: u16) { id: u64 = id, route: str = route, status: u16 = status }
}

pub(crate) fn router() -> Router {
    Router::new()
        .route("/", get(async || "hello\n"))
        .route("/items/{number}", get(item))
        .route("/documents", post(document))
        .layer(from_fn(traced))
}

/// Fires the events of a request. Both are off until a session or a statistic enables them.
async fn traced(request: Request, next: Next) -> Response {
    // Ordering: Relaxed, because the numbers need only be distinct.
    static LAST: AtomicU64 = AtomicU64::new(0);
    let id = LAST.fetch_add(1, Ordering::Relaxed);
    let pattern = request.extensions().get::<MatchedPath>().cloned();
    let route = pattern.as_ref().map_or("none", MatchedPath::as_str);
    trace!(req_begin(id, route));
    let response = next.run(request).await;
    trace!(req_end(id, route, response.status().as_u16()));
    response
}

/// Computes an item; the time grows with its number.
async fn item(Path(number): Path<u16>) -> String {
    let mut digest = blake3::hash(&number.to_le_bytes());
    for _ in 0..number {
        digest = blake3::hash(digest.as_bytes());
    }
    digest.to_string()
}

/// Answers with the digest of a document.
async fn document(body: Bytes) -> String {
    blake3::hash(&body).to_string()
}
