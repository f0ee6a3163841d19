//! A web server under load. Nothing is recorded: `tracectl` shows its latencies by route while it runs.
//!
//! `cargo run --release --example http`, and in another terminal
//! `tracectl hist 'latency(http:req_begin, http:req_end by id)' --by route`

#![forbid(unsafe_code)]

mod load;
mod server;

use anyhow::Context as _;
use clap::Parser;
use comfy_table::{Table, presets};
use std::time::Duration;
use tokio::net::TcpListener;
use tracepoint::probes::Latency;

/// Serves requests, and sends them itself.
#[derive(Debug, Parser)]
#[command(after_help = "Example:\n  http --connections 4 --seconds 60")]
struct Args {
    /// Seconds during which requests are sent
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,

    /// Number of connections that send requests, each one request after the other
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    connections: u16,

    /// The port to listen on, on the loopback interface; 0 selects a free one
    #[arg(long, default_value_t = 0, value_name = "PORT")]
    port: u16,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let _agent = tracepoint::Agent::start();
    let listener = TcpListener::bind(("127.0.0.1", args.port)).await.context("the port cannot be listened on")?;
    let address = listener.local_addr()?;
    tokio::spawn(async { axum::serve(listener, server::router()).await });

    // The same statistic that `tracectl hist` requests from outside.
    let latency = Latency::between("http:req_begin", "http:req_end", Some("id"), &["route"])?;
    println!("http://{address}, process {}, for {} s; its latencies, while it runs:", std::process::id(), args.seconds);
    println!("  tracectl hist 'latency(http:req_begin, http:req_end by id)' --by route");
    let failures = load::run(address, args.connections, Duration::from_secs(args.seconds)).await?;
    print_table(&latency);
    anyhow::ensure!(failures == 0, "{failures} requests failed");
    Ok(())
}

fn print_table(latency: &Latency) {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(["route", "requests", "p50", "p99", "max"]);
    for group in latency.snapshot().0.groups {
        let times = group.value;
        let time = |percent| times.percentile(percent).map_or("-".to_owned(), |ns| format!("{:.0} µs", ns / 1e3));
        table.add_row([group.keys[0].to_string(), times.count().to_string(), time(50.0), time(99.0), time(100.0)]);
    }
    println!("{table}");
}
