//! Probes that register probes, and probes that fire their own tracepoint.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tracepoint::Probe;

tracepoint::define_trace! {
    provider = "inside";
    outer(n: u64);
    inner(n: u64);
    depth();
}

#[test]
fn a_probe_registers_another() {
    own_process!();
    static INNER_HITS: AtomicU64 = AtomicU64::new(0);
    let kept: Arc<Mutex<Vec<Probe<inner>>>> = Arc::default();
    let keep = Arc::clone(&kept);
    let probe = register_trace_outer(move |_| {
        let inner = register_trace_inner(|n| {
            INNER_HITS.fetch_add(n, Ordering::Relaxed);
        });
        keep.lock().expect("not poisoned").push(inner.expect("registers"));
    })
    .expect("registers");
    trace_outer(1);
    trace_outer(1);
    trace_inner(10);
    assert_eq!(INNER_HITS.load(Ordering::Relaxed), 20, "both inner probes run from the next event on");
    probe.unregister();
    kept.lock().expect("not poisoned").clear();
    trace_inner(10);
    assert_eq!(INNER_HITS.load(Ordering::Relaxed), 20);
    assert!(!trace_inner_enabled());
}

#[test]
fn probes_nest_four_deep() {
    own_process!();
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let probe = register_trace_depth(|| {
        RUNS.fetch_add(1, Ordering::Relaxed);
        trace_depth();
    })
    .expect("registers");
    trace_depth();
    assert_eq!(RUNS.load(Ordering::Relaxed), u64::from(tracepoint::probe::MAX_PROBE_DEPTH));
    let tracepoint = tracepoint::find("inside:depth").expect("listed");
    assert_eq!(tracepoint.probes_skipped(), 1, "the fifth is counted, not run");
    drop(probe);
}
