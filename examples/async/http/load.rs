//! The clients: each connection sends requests of all routes in turn.

use axum::body::{Body, Bytes};
use axum::http::{Method, Request};
use http_body_util::BodyExt;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Size in bytes of an uploaded document.
const DOCUMENT: usize = 64 << 10;

/// Sends requests until the time is over. Returns the number of requests without an answer, or with a status other than 200.
pub(crate) async fn run(address: SocketAddr, connections: u16, time: Duration) -> anyhow::Result<u64> {
    let end = Instant::now() + time;
    let mut clients = JoinSet::new();
    for seed in 0..u32::from(connections) {
        clients.spawn(send(address, seed, end));
    }
    Ok(clients.join_all().await.into_iter().sum())
}

async fn send(address: SocketAddr, seed: u32, end: Instant) -> u64 {
    let client = Client::builder(TokioExecutor::new()).build_http::<Body>();
    let document = Bytes::from(vec![b'x'; DOCUMENT]);
    let mut failures = 0;
    for number in seed.. {
        if Instant::now() >= end {
            break;
        }
        let (method, path, body) = match number % 8 {
            0 => (Method::POST, "/documents".to_owned(), Body::from(document.clone())),
            1..=3 => (Method::GET, format!("/items/{}", number % 1009), Body::empty()),
            _ => (Method::GET, "/".to_owned(), Body::empty()),
        };
        let request = Request::builder().method(method).uri(format!("http://{address}{path}"));
        let Ok(request) = request.body(body) else { return failures + 1 };
        let answered = match client.request(request).await {
            Ok(answer) => answer.status().is_success() && answer.into_body().collect().await.is_ok(),
            Err(_) => false,
        };
        failures += u64::from(!answered);
    }
    failures
}
