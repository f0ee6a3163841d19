//! A probe that panics in a signal handler, while the interrupted thread is changing probes: nothing hangs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

tracepoint::define_trace! {
    provider = "signal_panic";
    in_handler(n: u64);
    changed(n: u64);
}

static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_signal(_: libc::c_int) {
    trace_in_handler(HANDLED.fetch_add(1, Ordering::Relaxed));
}

/// Runs `body` with SIGUSR1 blocked.
fn without_signals<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: the set is made by sigemptyset before it is used; the calls change this thread's mask and nothing else.
    let set = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGUSR1);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        set
    };
    let result = body();
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut()) };
    result
}

#[test]
fn a_panic_in_a_handler_takes_no_lock() {
    own_process!();
    tracepoint::probe::silence_panics();
    // SAFETY: the handler has the signature for sigaction without SA_SIGINFO, and only traces. SIGALRM, whose default ends
    // the process, turns a hang into a failure.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()), 0);
        libc::alarm(120);
    }
    let tracepoint = tracepoint::find("signal_panic:in_handler").expect("listed");
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        // SAFETY: pthread_self takes nothing and cannot fail.
        let target = unsafe { libc::pthread_self() };
        let stop = &stop;
        scope.spawn(move || {
            while HANDLED.load(Ordering::Relaxed) <= 200 {
                thread::sleep(Duration::from_micros(100));
                // SAFETY: the target outlives this scope.
                unsafe { libc::pthread_kill(target, libc::SIGUSR1) };
            }
            stop.store(true, Ordering::Relaxed);
        });
        while !stop.load(Ordering::Relaxed) {
            // Unwinding allocates, and a handler must not allocate while its thread is inside the allocator: block signals there.
            let probe =
                without_signals(|| register_trace_in_handler(|_| std::panic::panic_any(())).expect("registers"));
            for _ in 0..1_000 {
                assert!(tracepoint.probe_count() <= 1);
            }
            without_signals(|| drop(probe));
        }
    });
    assert!(HANDLED.load(Ordering::Relaxed) > 100, "signals arrived");
    assert!(tracepoint.probe_panics() > 0, "probes panicked in the handler");
    assert!(!tracepoint.is_on());
}
