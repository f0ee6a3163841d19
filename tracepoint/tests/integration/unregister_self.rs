//! A probe that unregisters itself is disconnected immediately, and freed by the next change that is made outside probes. The test needs
//! its own process, because any such change in the process frees the probe.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use tracepoint::Probe;

tracepoint::define_trace! {
    provider = "oneself";
    recursive(n: u64);
}

/// Records when it is dropped.
struct Owned(Arc<AtomicU64>);

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_probe_unregisters_itself() {
    own_process!();
    let own: Arc<OnceLock<Mutex<Option<Probe<recursive>>>>> = Arc::default();
    let hits = Arc::new(AtomicU64::new(0));
    let drops = Arc::new(AtomicU64::new(0));
    let (handle, count, owned) = (Arc::clone(&own), Arc::clone(&hits), Owned(Arc::clone(&drops)));
    let probe = register_trace_recursive(move |_| {
        let _ = &owned;
        count.fetch_add(1, Ordering::SeqCst);
        if let Some(place) = handle.get() {
            drop(place.lock().expect("not poisoned").take());
        }
    })
    .expect("registers");
    own.set(Mutex::new(Some(probe))).expect("set once");
    trace_recursive(1);
    assert_eq!(drops.load(Ordering::SeqCst), 0, "nothing is freed while the probe may still run");
    trace_recursive(2);
    assert_eq!(hits.load(Ordering::SeqCst), 1, "it disconnected itself at the first event");
    assert!(!trace_recursive_enabled());
    tracepoint::probe::synchronize();
    assert_eq!(drops.load(Ordering::SeqCst), 1, "the next change outside frees it, once");
    tracepoint::probe::synchronize();
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}
