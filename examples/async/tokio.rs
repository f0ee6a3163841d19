//! Follows tasks that move between threads: every record has a number that identifies its task.
//!
//! `cargo run --example tokio`

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::error::Error;
use tracepoint::context::{self, Context};
use tracepoint::{Channel, Session, sinks::CtfSink};
use tracepoint_reader::{Item, Trace};

tracepoint::define_trace! {
    provider = "shop";

    /// A request continues with its next step. The function does not know which request the step belongs to.
    step(n: u32) { n: u32 = n }
}

async fn request() {
    for n in 0..100 {
        tracepoint::trace!(step(n));
        tokio::task::yield_now().await; // another thread may continue
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 4)]
async fn main() -> Result<(), Box<dyn Error>> {
    let place = tempfile::tempdir()?;
    let directory = place.path().join("trace");
    let channel = Channel::discard(256 << 10).context(Context::Thread).context(Context::User);
    let session =
        Session::builder("tasks").events("shop:*").channel(channel).sink(CtfSink::create(&directory)?).start()?;

    let requests: Vec<_> = (1..=20).map(|number| tokio::spawn(context::scope(number, request()))).collect();
    for request in requests {
        request.await?;
    }
    session.stop()?;

    // The steps of each request, regardless of the thread that recorded them.
    let mut steps: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for item in Trace::open(&directory)?.items() {
        let Item::Event(event) = item else { return Err(format!("{item:?}").into()) };
        let member = |part: Option<&tracepoint_reader::StructValue>, name| part?.get(name)?.as_u64();
        let request = member(event.stream_context.as_ref(), "user").ok_or("no number")?;
        steps.entry(request).or_default().push(member(event.fields.as_ref(), "n").ok_or("no step")?);
    }
    for (request, steps) in steps {
        let in_order = steps.iter().copied().eq(0..steps.len() as u64);
        println!("request {request}: {} steps{}", steps.len(), if in_order { ", in their order" } else { "" });
    }
    Ok(())
}
