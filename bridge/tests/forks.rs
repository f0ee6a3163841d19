//! A child forked while another thread reaches new callsites can reach one as well. A separate program, because it forks while a thread runs.
#![cfg(unix)]
#![allow(unsafe_code, reason = "fork")]

use std::thread;
use std::time::{Duration, Instant};
use tracing_subscriber::prelude::*;

macro_rules! ten {
    ($($reach:tt)*) => {
        { $($reach)* }
        { $($reach)* }
        { $($reach)* }
        { $($reach)* }
        { $($reach)* }
        { $($reach)* }
        { $($reach)* }
        { $($reach)* }
        { $($reach)* }
        { $($reach)* }
    };
}

/// Reaches a thousand callsites.
#[allow(clippy::cognitive_complexity, reason = "a thousand times one event")]
fn reach_many() {
    ten! { ten! { ten! { tracing::info!("new"); } } }
}

/// Forks a child that reaches a new callsite, and waits for it.
fn child_ends() -> bool {
    // SAFETY: the child runs code that takes only locks of the allocator and of this library, which are held around a fork, and ends without running
    // destructors.
    let child = unsafe { libc::fork() };
    if child == 0 {
        tracing::info!("in the child");
        // SAFETY: ends the process.
        unsafe { libc::_exit(0) };
    }
    let end = Instant::now() + Duration::from_secs(20);
    let mut status = 0;
    // SAFETY: `status` is alive, and the child is ours.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
        if Instant::now() > end {
            // SAFETY: as above.
            unsafe { (libc::kill(child, libc::SIGKILL), libc::waitpid(child, &raw mut status, 0)) };
            return false;
        }
        thread::sleep(Duration::from_micros(200));
    }
    status == 0
}

#[test]
fn a_child_reaches_new_callsites() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::registry().with(tracepoint_tracing::layer()).try_init()?;
    let reaching = thread::spawn(reach_many);
    let mut forks = 0;
    while forks == 0 || !reaching.is_finished() {
        assert!(child_ends(), "child {forks} hangs");
        forks += 1;
    }
    reaching.join().map_err(|_| "panicked")?;
    Ok(())
}
