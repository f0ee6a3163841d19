//! A web service with a database. Its code has no annotations: axum, h2, tower-http and sqlx use `tracing` and `log`, and the two
//! lines at the top of `main` turn their events into tracepoints.
//!
//! ```sh
//! cd examples/service && cargo build
//! tracectl record -e 'tracing:*' -o /tmp/service -- target/debug/tracepoint-service-example 100
//! tracectl stat /tmp/service
//! tracectl report /tmp/service -o service.html
//! ```
//!
//! The argument is the number of requests that the program sends to itself before it ends; without one, it serves until it is stopped.
#![forbid(unsafe_code)]

use anyhow::Result;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Router, routing::get};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sqlx::sqlite::{SqlitePool, SqlitePoolOptions};
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpStream};
use tower_http::trace::TraceLayer;
use tracing_subscriber::prelude::*;

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::registry().with(tracepoint_tracing::layer()).init();
    tracepoint_tracing::log::init()?;
    let _agent = tracepoint::Agent::start()?;

    let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
    sqlx::query("create table items (id integer primary key, name text not null)").execute(&pool).await?;
    for (id, name) in ["apple", "pear", "plum"].into_iter().enumerate() {
        sqlx::query("insert into items values (?, ?)").bind(i64::try_from(id)?).bind(name).execute(&pool).await?;
    }
    let service = Router::new().route("/items/{id}", get(item)).layer(TraceLayer::new_for_http()).with_state(pool);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    println!("http://{address}/items/1");
    let server = tokio::spawn(async move { axum::serve(listener, service).await });
    match std::env::args().nth(1) {
        Some(requests) => ask(address, requests.parse()?).await,
        None => Ok(server.await??),
    }
}

async fn item(State(pool): State<SqlitePool>, Path(id): Path<i64>) -> Result<String, StatusCode> {
    let found = sqlx::query_scalar("select name from items where id = ?").bind(id).fetch_optional(&pool).await;
    found.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?.ok_or(StatusCode::NOT_FOUND)
}

/// Sends `requests` requests over HTTP/2; each fourth is for a missing item.
async fn ask(address: SocketAddr, requests: u32) -> Result<()> {
    let stream = TokioIo::new(TcpStream::connect(address).await?);
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await?;
    tokio::spawn(connection);
    for request in 0..requests {
        let url = format!("http://{address}/items/{}", request % 4);
        let answer = sender.send_request(hyper::Request::get(url).body(Empty::<Bytes>::new())?).await?;
        answer.into_body().collect().await?;
    }
    Ok(())
}
