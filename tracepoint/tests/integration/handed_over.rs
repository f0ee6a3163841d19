//! Events that the fast path hands over to the full path, which continues in the read-side section that the fast path has entered: all
//! except the first of each thread here, because a probe is connected. The section lasts until the probes have returned, and ends then in
//! every case.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

tracepoint::define_trace! {
    provider = "handed_over";
    outer(n: u64) { n: u64 = n }
    inner(n: u64) { n: u64 = n }
    panics(n: u64) { n: u64 = n }
    interrupted(n: u64) { n: u64 = n }
    in_handler(n: u64) { n: u64 = n }
    other();
}

/// Starts a thread that unregisters a probe, which waits for a grace period, and sends when that has elapsed.
fn grace_period() -> Receiver<()> {
    let (elapsed, waiting) = channel();
    thread::spawn(move || {
        register_trace_other(|| ()).expect("registers").unregister();
        let _ = elapsed.send(());
    });
    waiting
}

/// Fails if this thread has not left its section.
fn is_outside() {
    grace_period().recv_timeout(Duration::from_secs(60)).expect("a grace period elapses: this thread is in no section");
}

#[test]
fn a_probe_fires_inside() {
    own_process!();
    static INNER: AtomicU64 = AtomicU64::new(0);
    let inside = register_trace_inner(|n| {
        INNER.fetch_add(n, Ordering::Relaxed);
    });
    let (begun, waiting) = channel();
    let probe = register_trace_outer(move |n| {
        trace_inner(n);
        // The inner event has not ended the section.
        let elapsed = grace_period();
        let soon = elapsed.recv_timeout(Duration::from_millis(100));
        assert_eq!(soon, Err(RecvTimeoutError::Timeout), "the section lasts as long as the probe");
        begun.send(elapsed).expect("the test receives");
    });
    for n in 1..=3 {
        trace_outer(n);
        let elapsed: Receiver<()> = waiting.recv_timeout(Duration::from_secs(60)).expect("the probe did not panic");
        elapsed.recv_timeout(Duration::from_secs(60)).expect("the section has ended with the event");
    }
    assert_eq!(INNER.load(Ordering::Relaxed), 1 + 2 + 3);
    drop((probe, inside));
}

#[test]
fn a_probe_panics() {
    own_process!();
    static OTHERS: AtomicU64 = AtomicU64::new(0);
    let panicking = register_trace_panics(|n| assert!(n < 2, "the second event"));
    let behind = register_trace_panics_prio(-1, |_| {
        OTHERS.fetch_add(1, Ordering::Relaxed);
    });
    for n in 1..=3 {
        trace_panics(n);
        is_outside();
    }
    assert_eq!(
        OTHERS.load(Ordering::Relaxed),
        3,
        "the probe behind the one that panicked runs, and later events are served"
    );
    assert_eq!(tracepoint::find("handed_over:panics").expect("listed").probe_panics(), 1);
    drop((panicking, behind));
}

/// Signals arrive at any instruction, also between the fast path, which has entered the section, and the full path.
#[cfg(unix)]
#[test]
fn a_signal_comes_in_between() {
    own_process!();
    static HANDLED: AtomicU64 = AtomicU64::new(0);
    extern "C" fn on_signal(_: libc::c_int) {
        trace_in_handler(HANDLED.fetch_add(1, Ordering::Relaxed));
    }
    let runs: Arc<[AtomicU64; 2]> = Arc::default();
    let (of_main, of_handler) = (Arc::clone(&runs), Arc::clone(&runs));
    let probes = (
        register_trace_interrupted(move |_| {
            of_main[0].fetch_add(1, Ordering::Relaxed);
        }),
        register_trace_in_handler(move |_| {
            of_handler[1].fetch_add(1, Ordering::Relaxed);
        }),
    );
    // SAFETY: the handler has the signature for sigaction without SA_SIGINFO, and only traces, which is safe in handlers.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()), 0);
    }
    let stop = AtomicBool::new(false);
    let mut fired = 0;
    thread::scope(|scope| {
        // SAFETY: pthread_self takes nothing and cannot fail.
        let target = unsafe { libc::pthread_self() };
        let stop = &stop;
        scope.spawn(move || {
            while HANDLED.load(Ordering::Relaxed) < 500 {
                thread::sleep(Duration::from_micros(50));
                // SAFETY: the target outlives this scope.
                unsafe { libc::pthread_kill(target, libc::SIGUSR1) };
            }
            stop.store(true, Ordering::Relaxed);
        });
        while !stop.load(Ordering::Relaxed) {
            trace_interrupted(fired);
            fired += 1;
        }
    });
    is_outside();
    assert_eq!(runs[0].load(Ordering::Relaxed), fired, "every event ran its probe");
    assert_eq!(runs[1].load(Ordering::Relaxed), HANDLED.load(Ordering::Relaxed), "those of handlers too");
    drop(probes);
}
