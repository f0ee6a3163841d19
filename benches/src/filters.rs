//! A program for counting instructions: `filters EXPRESSION N` fires N events that the filter rejects.
//!
//! Run it twice under callgrind with different N; the difference, minus that of the filter `false`, is the cost of the expression per
//! event. `scripts/costs.sh` does so.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use tracepoint::marker::Subscriber;
use tracepoint_ring::channel::{AnonymousMemory, Channel, OpenChannel};
use tracepoint_session_spec::filter::Expression;

tracepoint::define_trace! {
    provider = "bench";
    filtered(i: i32, u: u64, f: f64, s: &str, data: &[u8]) {
        i: i32 = i,
        u: u64 = u,
        f: f64 = f,
        b: bool = i == 0,
        e: enum u8 { Idle = 0, Run = 1 } = 1,
        s: str = s,
        t: str = s,
        data: [u8] = data,
    }
}

fn run(expression: &str, n: u64) -> Result<(), Box<dyn std::error::Error>> {
    let marker = tracepoint::find("bench:filtered")?.marker().ok_or("no fields")?;
    let program = Expression::parse(expression)?.compile(marker.fields())?;
    let channel = OpenChannel::open(Channel::discard(64 << 10), [9; 16], 0, 1, Box::new(AnonymousMemory))?;
    let subscriber = Subscriber::record(Arc::clone(&channel), channel.add_event()?).filter(Arc::new(program));
    let subscription = marker.subscribe(subscriber)?;
    for i in 0..n {
        tracepoint::trace!(filtered(
            black_box(7),
            black_box(i),
            black_box(0.5),
            black_box("postgres: writer"),
            b"GET /index.html "
        ));
    }
    drop(subscription);
    channel.close();
    let filtered = channel.account().events[0].filtered;
    if filtered == n {
        Ok(())
    } else {
        Err(format!("{filtered} of {n} events were refused: none should be wanted").into())
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (expression, n) = (arguments.next(), arguments.next().and_then(|n| n.parse::<u64>().ok()));
    let (Some(expression), Some(n)) = (expression, n) else {
        eprintln!("usage: filters EXPRESSION N");
        return ExitCode::from(2);
    };
    match run(&expression, n) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
