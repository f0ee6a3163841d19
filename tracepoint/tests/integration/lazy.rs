//! The lazy form computes nothing while the tracepoint is off; its arguments are ordinary expressions of the caller.

use crate::common::Recorded;
use crate::future::{Later, run};
use std::cell::Cell;

tracepoint::define_trace! {
    provider = "lazy";
    event(n: u64) { n: u64 = n }
}

fn question_mark(n: Option<u64>) -> Option<&'static str> {
    tracepoint::trace!(event(n?));
    Some("went on")
}

fn early_return(leave: bool) -> &'static str {
    tracepoint::trace!(event(if leave { return "left" } else { 1 }));
    "went on"
}

fn early_break(times: u64) -> u64 {
    let mut round = 0;
    loop {
        round += 1;
        tracepoint::trace!(event(if round == times { break } else { round }));
        if round == 10 {
            break;
        }
        tracepoint::trace!(event(if round % 2 == 0 { continue } else { round }));
    }
    round
}

async fn waits() -> u64 {
    let before = Cell::new(1);
    tracepoint::trace!(event(Later(before.get(), false).await));
    before.get()
}

fn moves(text: String) -> Option<String> {
    tracepoint::trace!(event(drop_text(text)?));
    None
}

fn drop_text(text: String) -> Option<u64> {
    drop(text);
    None
}

// One test, because the tracepoint is on or off for the whole process.
#[test]
fn arguments_are_expressions_of_the_caller() {
    let evaluated = Cell::new(0);
    let count = || {
        evaluated.set(evaluated.get() + 1);
        evaluated.get()
    };
    tracepoint::trace!(event(count()));
    assert_eq!(evaluated.get(), 0);
    assert_eq!(question_mark(None), Some("went on"));
    assert_eq!(early_return(true), "went on");
    assert_eq!(early_break(3), 10);
    assert_eq!(run(waits()), 1);
    assert_eq!(moves(String::new()), None);
    trace_event(count());
    assert_eq!(evaluated.get(), 1, "the function form evaluates its arguments in any case");

    let recorded = Recorded::of("lazy:event");
    tracepoint::trace!(event(count()));
    assert_eq!(evaluated.get(), 2);
    assert_eq!(question_mark(None), None);
    assert_eq!(question_mark(Some(5)), Some("went on"));
    assert_eq!(early_return(true), "left");
    assert_eq!(early_return(false), "went on");
    assert_eq!(early_break(3), 3);
    assert_eq!(run(waits()), 1);
    let seen: Vec<String> = recorded.all().concat();
    assert_eq!(seen, ["2", "5", "1", "1", "1", "2", "1"]);
    drop(recorded);
    tracepoint::trace!(event(count()));
    assert_eq!(evaluated.get(), 2);
}
