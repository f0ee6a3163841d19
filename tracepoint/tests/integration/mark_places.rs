//! Places where a `trace_mark!` may be, and its lazy evaluation.

use crate::common::Recorded;
use crate::future::{Later, run};
use std::cell::Cell;

tracepoint::define_trace! {
    provider = "mark_places";
    event(n: u32, text: &str);
}

struct Counter(Cell<u32>);

impl Counter {
    fn next(&self) -> u32 {
        self.0.set(self.0.get() + 1);
        self.0.get()
    }

    fn in_a_method(&self) {
        tracepoint::trace_mark!(method, "n %u", self.next());
    }
}

fn generic<T: Copy + Into<i64>, const N: usize>(value: T) {
    tracepoint::trace_mark!(generic_mark, "value %ld n %zu", value.into(), N);
}

#[allow(clippy::semicolon_if_nothing_returned)] // that is the form under test
fn as_an_expression(n: u32) {
    match n {
        0 => tracepoint::trace_mark!(arm, "n %u", n),
        1 => tracepoint::trace_mark!(other_arm, "n %u", n),
        _ => unreachable!("called with 0 and 1"),
    }
    let () = tracepoint::trace_mark!(bound, "n %u", n);
    if n == 0 {
        tracepoint::trace_mark!(branch, "n %u", n)
    } else {
        tracepoint::trace_mark!(branch_else, "n %u", n)
    }
    tracepoint::trace_mark!(tail, "n %u", n)
}

fn leaves(n: Option<u32>) -> Option<u32> {
    tracepoint::trace_mark!(leaving, "n %u m %u", n?, 1);
    Some(1)
}

async fn waits() {
    let text = String::from("text");
    tracepoint::trace_mark!(waiting, "a %u text %s b %u c %c", 1, &text, Later(2, false).await, 'c');
}

#[test]
fn in_generic_functions_and_methods() {
    let [generic_mark, method] = ["generic_mark", "method"].map(Recorded::of_marker);
    generic::<u8, 1>(1);
    generic::<i64, 2>(-1);
    assert_eq!(generic_mark.all(), [["1", "1"], ["-1", "2"]]);
    Counter(Cell::new(6)).in_a_method();
    assert_eq!(method.last(), ["7"]);
}

#[test]
fn as_expressions() {
    let recorded = ["arm", "bound", "branch", "branch_else", "tail"].map(Recorded::of_marker);
    as_an_expression(0);
    as_an_expression(1);
    assert_eq!(recorded.map(|recorded| recorded.all().len()), [1, 2, 1, 1, 2]);
}

#[test]
fn lazily() {
    let counter = Counter(Cell::new(0));
    let hit = || tracepoint::trace_mark!(counting, "n %u", counter.next());
    hit();
    assert_eq!(leaves(None), Some(1));
    let [counting, leaving] = ["counting", "leaving"].map(Recorded::of_marker);
    hit();
    assert_eq!(counter.0.get(), 1);
    assert_eq!(leaves(None), None);
    assert_eq!(leaves(Some(2)), Some(1));
    assert_eq!((counting.all().concat(), leaving.all().concat()), (vec!["1".into()], vec!["2".into(), "1".into()]));
}

#[test]
fn across_an_await() {
    fn assert_send<T: Send>(value: T) -> T {
        value
    }
    let recorded = Recorded::of_marker("waiting");
    run(assert_send(waits()));
    assert_eq!(recorded.last(), ["1", "text", "2", "c"]);
}

#[test]
fn in_a_probe() {
    let recorded = Recorded::of_marker("from_a_probe");
    let probe = register_trace_event(|n, text| {
        tracepoint::trace_mark!(from_a_probe, "n %u text %s", n, text);
    })
    .unwrap();
    tracepoint::trace!(event(1, "a"));
    trace_event(2, "b");
    unregister_trace_event(probe);
    trace_event(3, "c");
    assert_eq!(recorded.all(), [["1", "a"], ["2", "b"]]);
}

#[test]
fn inside_another() {
    let [outer, inner] = ["outer", "inner"].map(Recorded::of_marker);
    tracepoint::trace_mark!(outer, "n %u", {
        tracepoint::trace_mark!(inner, "n %u", 1);
        2
    });
    assert_eq!((inner.last(), outer.last()), (vec!["1".to_owned()], vec!["2".to_owned()]));
}
