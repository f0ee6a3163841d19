//! Forks a child while another thread of the parent makes the first use of the core in the process.
//!
//! The first use happens once per process, so each attempt is a process: this program, run again, with an environment variable for the
//! delay between the beginning of the first use and the fork.

use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

tracepoint::define_trace! {
    provider = "fork_first";
    fired();
}

const VARIABLE: &str = "TRACEPOINT_TEST_FORK_AFTER";

/// Registers a probe, fires once while it is registered and once afterwards. The probe of the other thread, which a child may inherit,
/// has its own counter.
fn use_once() -> bool {
    let hits: &AtomicU64 = Box::leak(Box::default());
    let Ok(probe) = register_trace_fired(|| {
        hits.fetch_add(1, Ordering::Relaxed);
    }) else {
        return false;
    };
    trace_fired();
    drop(probe);
    trace_fired();
    hits.load(Ordering::Relaxed) == 1
}

/// Forks this time after another thread began the first use; returns the child's exit status.
fn fork_after(delay: Duration) -> libc::c_int {
    let start = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            start.wait();
            assert!(use_once());
        });
        start.wait();
        let began = Instant::now();
        while began.elapsed() < delay {
            std::hint::spin_loop();
        }
        // SAFETY: the child uses the core, whose fork handlers are under test, and malloc, whose locks the C library leaves free in the
        // child. It ends with `_exit`, or by the alarm if it hangs.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: both take plain numbers.
            unsafe {
                libc::alarm(10);
                libc::_exit(i32::from(!use_once()));
            }
        }
        let mut status = 0;
        // SAFETY: `status` is a valid place, `pid` a child of this process for which no other thread waits.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        status
    })
}

#[test]
fn a_fork_during_the_first_use() {
    own_process!();
    if let Ok(delay) = std::env::var(VARIABLE) {
        let status = fork_after(Duration::from_micros(delay.parse().expect("a number")));
        assert_eq!(status, 0, "0: all was well in the child; 14: it hung");
        return;
    }
    let program = std::env::current_exe().expect("the path of this program");
    for delay in (0..40).map(|n| n * 20) {
        let output = Command::new(&program)
            .args(["--exact", "fork_first::a_fork_during_the_first_use"])
            .env(VARIABLE, delay.to_string())
            .output()
            .expect("this program can be run");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "after {delay} µs: {said}");
    }
}
