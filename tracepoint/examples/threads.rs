//! Four threads that record at full speed: `threads DIRECTORY [kill]` writes a CTF trace with 25,000 events of each thread, and prints how
//! tracepoints work on this machine. With `kill` the process is killed before the session has ended: `tracectl recover` completes the trace from
//! the rings. For `scripts/arm64.sh`.

use std::error::Error;
use std::process::{self, Command};
use std::time::Duration;
use std::{env, thread};
use tracepoint::sinks::CtfSink;
use tracepoint::{Channel, Session, runtime};

tracepoint::define_trace! {
    provider = "threads";

    /// One step of a thread.
    pub step(thread: u64, n: u64) { thread, n }
}

const THREADS: u64 = 4;
const STEPS: u64 = 25_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let directory = arguments.next().ok_or("usage: threads DIRECTORY [kill]")?;
    let session = Session::builder("threads")
        .events("threads:*")
        .channel(Channel::wait(1 << 20, Duration::from_secs(10)))
        .sink(CtfSink::create(&directory)?)
        .start()?;
    println!("{}", runtime::platform());
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || (0..STEPS).for_each(|n| tracepoint::trace!(step(thread, n))));
        }
    });
    if arguments.next().as_deref() == Some("kill") {
        Command::new("kill").args(["-KILL", &process::id().to_string()]).status()?;
    }
    session.stop()?;
    Ok(())
}
