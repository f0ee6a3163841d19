//! After `unregister` returns, the probe is not running and never runs again, and its captured values were dropped once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

tracepoint::define_trace! {
    provider = "unregister";
    fired(n: u64) { n: u64 = n }
}

/// Counts drops; a probe that runs after its canary was dropped is a violation.
struct Canary {
    alive: AtomicBool,
    drops: Arc<AtomicU64>,
    violations: Arc<AtomicU64>,
}

impl Canary {
    fn sing(&self) {
        if !self.alive.load(Ordering::SeqCst) {
            self.violations.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        if !self.alive.swap(false, Ordering::SeqCst) {
            self.violations.fetch_add(1, Ordering::SeqCst);
        }
        self.drops.fetch_add(1, Ordering::SeqCst);
    }
}

/// Number of registrations per thread; the long mode makes over a million changes in all.
fn rounds() -> u64 {
    match std::env::var("TRACEPOINT_ROUNDS") {
        Ok(rounds) => rounds.parse().expect("a number"),
        Err(_) => 5_000,
    }
}

#[test]
fn probes_are_registered_and_unregistered_while_threads_fire() {
    own_process!();
    let drops = Arc::new(AtomicU64::new(0));
    let violations = Arc::new(AtomicU64::new(0));
    let stop = AtomicBool::new(false);
    let rounds = rounds();
    thread::scope(|scope| {
        for n in 0..2 {
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    tracepoint::trace!(fired(n));
                }
            });
        }
        let changers: Vec<_> = (0..2)
            .map(|_| {
                let (drops, violations) = (Arc::clone(&drops), Arc::clone(&violations));
                scope.spawn(move || {
                    for round in 0..rounds {
                        let canary = Canary {
                            alive: AtomicBool::new(true),
                            drops: Arc::clone(&drops),
                            violations: Arc::clone(&violations),
                        };
                        let returned = Arc::new(AtomicBool::new(false));
                        let (returned_seen, late) = (Arc::clone(&returned), Arc::clone(&violations));
                        let probe = register_trace_fired(move |_| {
                            canary.sing();
                            if returned_seen.load(Ordering::SeqCst) {
                                late.fetch_add(1, Ordering::SeqCst);
                            }
                        })
                        .expect("registers");
                        if round % 16 == 0 {
                            thread::yield_now();
                        }
                        unregister_trace_fired(probe);
                        returned.store(true, Ordering::SeqCst);
                        assert_eq!(
                            Arc::strong_count(&returned),
                            1,
                            "the closure was dropped before unregister returned"
                        );
                    }
                })
            })
            .collect();
        for changer in changers {
            changer.join().expect("no panic");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(violations.load(Ordering::SeqCst), 0);
    assert_eq!(drops.load(Ordering::SeqCst), 2 * rounds);
    assert!(!trace_fired_enabled(), "the key is off when the last probe has gone");
}
