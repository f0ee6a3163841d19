//! Registering: types are inferred, priorities define the order, handles disconnect or keep.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

struct Task {
    pid: i32,
    children: Vec<Self>,
}

tracepoint::define_trace! {
    provider = "probes";
    inferred(task: &Task, text: &str, callback: fn(u8) -> u8);
    ordered(n: u32);
    kept(n: u32);
    dropped(n: u32);
    listed(text: &str, n: Option<&u64>);
    refused(text: &str, n: Option<&u64>);
}

#[test]
fn closures_need_no_types() {
    own_process!();
    let sum = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&sum);
    let probe = register_trace_inferred(move |task, text, callback| {
        let children = task.children.iter().filter(|child| child.pid > 0).count();
        counter.fetch_add(u32::try_from(children + text.len()).unwrap() + u32::from(callback(1)), Ordering::Relaxed);
    })
    .unwrap();
    let child = Task { pid: 1, children: Vec::new() };
    tracepoint::trace!(inferred(&Task { pid: 0, children: vec![child] }, "text", |n| n + 1));
    unregister_trace_inferred(probe);
    assert_eq!(sum.load(Ordering::Relaxed), 7);
}

#[test]
fn higher_priorities_run_earlier() {
    own_process!();
    static ORDER: Mutex<Vec<&str>> = Mutex::new(Vec::new());
    let probe = |name: &'static str| move |_| ORDER.lock().unwrap().push(name);
    let handles = [
        register_trace_ordered(probe("usual 1")),
        register_trace_ordered_prio(20, probe("high 1")),
        register_trace_ordered_prio(-5, probe("low")),
        register_trace_ordered(probe("usual 2")),
        register_trace_ordered_prio(20, probe("high 2")),
        register_trace_ordered_prio(10, probe("usual 3")),
    ];
    trace_ordered(1);
    assert_eq!(*ORDER.lock().unwrap(), ["high 1", "high 2", "usual 1", "usual 2", "usual 3", "low"]);
    let [.., second] = handles;
    drop(second);
}

#[test]
fn a_handle_disconnects_when_it_is_dropped() {
    own_process!();
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let count = |_| {
        CALLS.fetch_add(1, Ordering::Relaxed);
    };
    let probe = register_trace_dropped(count).unwrap();
    assert!(trace_dropped_enabled());
    trace_dropped(1);
    drop(probe);
    assert!(!trace_dropped_enabled());
    trace_dropped(1);
    {
        let _probe = register_trace_dropped(count);
        trace_dropped(1);
    }
    trace_dropped(1);
    register_trace_dropped(count).unwrap().unregister();
    trace_dropped(1);
    assert_eq!(CALLS.load(Ordering::Relaxed), 2);
}

#[test]
fn forever_keeps_the_probe() {
    own_process!();
    static CALLS: AtomicU32 = AtomicU32::new(0);
    register_trace_kept(|n| {
        CALLS.fetch_add(n, Ordering::Relaxed);
    })
    .unwrap()
    .forever();
    assert!(trace_kept_enabled());
    trace_kept(3);
    assert_eq!(CALLS.load(Ordering::Relaxed), 3);
}

#[test]
fn by_name() {
    own_process!();
    static CALLS: AtomicU32 = AtomicU32::new(0);
    fn count(text: &str, n: Option<&u64>) {
        CALLS.fetch_add(u32::try_from(text.len()).unwrap() + u32::from(n.is_some()), Ordering::Relaxed);
    }
    let found = tracepoint::find("probes:listed").unwrap();
    let probe = found.register::<fn(&str, Option<&u64>)>(count).unwrap();
    trace_listed("abc", Some(&1));
    probe.unregister();
    trace_listed("abc", None);
    assert_eq!(CALLS.load(Ordering::Relaxed), 4);
    let probe = found.register_prio::<fn(&str, Option<&u64>)>(7, |_, _| {}).unwrap();
    drop(probe);
}

#[test]
fn by_name_with_another_signature() {
    own_process!();
    let found = tracepoint::find("probes:refused").unwrap();
    let error = found.register::<fn(&str)>(|_| {}).unwrap_err();
    // The compiler decides how it prints a lifetime that is bound in the type.
    let message = error.to_string().replace("'_ ", "");
    assert!(message.contains("probes:refused"), "{message}");
    assert!(message.contains("fn(&str)"), "{message}");
    assert!(message.contains("fn(&str, core::option::Option<&u64>)"), "{message}");
    assert!(!trace_refused_enabled());
    // A closure is not a function pointer, regardless of its arguments.
    assert!(found.register(|_: &str, _: Option<&u64>| {}).is_err());
    // Nor is a function pointer for only one lifetime.
    assert!(found.register::<fn(&'static str, Option<&u64>)>(|_, _| {}).is_err());
}

#[test]
fn by_a_name_that_is_not_there() {
    own_process!();
    let error = tracepoint::find("probes:list").unwrap_err();
    assert_eq!(error.nearest()[0], "probes:listed");
    assert!(error.to_string().contains("did you mean probes:listed"));
    assert!(tracepoint::find("listed").is_err());
    assert!(tracepoint::find("").is_err());
}
