//! Spans: their events, ids and durations, and their behaviour when they are switched while open.

use crate::common::Recorded;
use crate::future::{Later, run};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use tracepoint::span;
use tracepoint::span::{FutureExt, Outcome, Span, SpanId};

tracepoint::define_trace! {
    provider = "spans";

    /// A request.
    #[level(Info)]
    pub(crate) span request(id: u64, path: &str) { id, path }
    span query(id: u64) { id }
    span bare();
    span never(id: u64);
    span failing(id: u64);
    span switched();
    span last_only();
    span moved();
    async span task(name: &str) { name }
    async span dropped();
    async span broken();
    async span silent();
}

/// The events of a span.
struct Ends {
    begin: Recorded,
    end: Recorded,
}

impl Ends {
    fn of(name: &str) -> Self {
        Self { begin: Recorded::of(&format!("spans:{name}_begin")), end: Recorded::of(&format!("spans:{name}_end")) }
    }

    /// Returns the outcomes, in the order of the ends.
    fn outcomes(&self) -> Vec<String> {
        self.end.all().into_iter().map(|mut end| end.remove(2)).collect()
    }
}

#[test]
fn a_span_is_two_events_with_one_id() {
    let ends = Ends::of("request");
    {
        let _span = span!(request(7, "/cart"));
        assert!(ends.end.all().is_empty());
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let ([begin], [end]) = (&ends.begin.all()[..], &ends.end.all()[..]) else { panic!("two events") };
    assert_eq!(begin[1..], ["0", "7", "/cart"]);
    assert_eq!(begin[0], end[0]);
    assert_ne!(begin[0], "0");
    assert!(end[1].parse::<u64>().unwrap() >= 2_000_000, "{end:?}");
    assert_eq!(end[2], "0");
    let tracepoint = tracepoint::find("spans:request_end").unwrap();
    assert_eq!((tracepoint.level(), tracepoint.doc()), (tracepoint::Level::Info, "A request."));
    let fields: Vec<_> = tracepoint.marker().unwrap().fields().iter().map(|field| field.name).collect();
    assert_eq!(fields, ["span_id", "duration_ns", "outcome"]);
}

#[test]
fn a_parent_is_named_at_the_site() {
    let (requests, queries) = (Ends::of("request"), Ends::of("query"));
    let outer = span!(request(1, "/"));
    drop(span!(parent: &outer, query(2)));
    drop(span!(parent: outer.id(), self::query(3)));
    let id = requests.begin.last()[0].clone();
    assert_eq!(outer.id().get().to_string(), id);
    let parents: Vec<_> = queries.begin.all().into_iter().map(|begin| begin[1].clone()).collect();
    assert_eq!(parents, [id.as_str(), &id]);
    assert_eq!(queries.end.all().len(), 2);
}

#[test]
fn while_it_is_off_nothing_is_evaluated() {
    let span: Span<bare> = span!(bare());
    assert_eq!(span.id(), SpanId::NONE);
    let id = || -> u64 { unreachable!("the span is off") };
    let parent = || -> SpanId { unreachable!("the span is off") };
    let _off = span!(parent: parent(), never(id()));
}

#[test]
fn a_panic_and_an_error_are_outcomes() {
    let ends = Ends::of("failing");
    span!(failing(1)).end(Outcome::Error);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let _span = span!(failing(2));
        std::panic::resume_unwind(Box::new(()));
    }));
    assert!(caught.is_err());
    drop(span!(failing(3)));
    assert_eq!(ends.outcomes(), ["1", "2", "0"]);
}

#[test]
fn a_span_that_is_switched_in_the_middle_has_one_event_or_none() {
    let before = span!(switched());
    let ends = Ends::of("switched");
    drop(before);
    assert!(ends.end.all().is_empty(), "it began while it was off");
    let cut = span!(switched());
    assert_eq!(ends.begin.all().len(), 1);
    drop(ends);
    let ends = Ends::of("switched");
    drop(cut);
    assert_eq!(ends.end.all().len(), 1, "it was off in the meantime only");
    let cut = span!(switched());
    drop(ends);
    drop(cut);
}

#[test]
fn the_last_event_alone_has_the_duration() {
    static SEEN: Mutex<Vec<u64>> = Mutex::new(Vec::new());
    let end = Recorded::of("spans:last_only_end");
    let probe = register_trace_last_only_end(|end| SEEN.lock().unwrap().push(end.duration())).unwrap();
    assert!(tracepoint::find("spans:last_only_begin").unwrap().is_on(), "the ends share a key");
    drop(span!(last_only()));
    unregister_trace_last_only_end(probe);
    assert_eq!(end.last()[1], SEEN.lock().unwrap()[0].to_string());
}

#[test]
fn a_span_ends_on_any_thread() {
    let ends = Ends::of("moved");
    let span = span!(moved());
    std::thread::spawn(move || drop(span)).join().unwrap();
    assert_eq!(ends.begin.last()[0], ends.end.last()[0]);
}

#[test]
fn a_tracepoint_may_be_called_span() {
    mod other {
        tracepoint::define_trace! { provider = "spans"; pub(crate) span(number: u64) { number } }
    }
    let events = Recorded::of("spans:span");
    tracepoint::trace!(other::span(4));
    assert_eq!(events.last(), ["4"]);
}

#[test]
fn each_poll_of_a_future_is_a_span_in_its_span() {
    let (tasks, polls) = (Ends::of("task"), Ends::of("task_poll"));
    assert_eq!(run(Later(5, false).traced(span!(task("answer")))), 5);
    let id = tasks.begin.last()[0].clone();
    assert_eq!(tasks.begin.last()[1..], ["0", "answer"]);
    let parents: Vec<_> = polls.begin.all().into_iter().map(|begin| begin[1].clone()).collect();
    assert_eq!(parents, [id.as_str(), &id], "two polls");
    assert_eq!((polls.outcomes(), tasks.outcomes()), (vec!["0".to_owned(); 2], vec!["0".to_owned()]));
}

#[test]
fn a_future_that_is_dropped_is_cancelled() {
    let ends = Ends::of("dropped");
    {
        let mut future = pin!(std::future::pending::<()>().traced(span!(dropped())));
        assert_eq!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending);
    }
    assert_eq!(ends.outcomes(), ["3"]);
}

#[test]
fn a_future_that_panics_ends_at_once() {
    let ends = Ends::of("broken");
    let mut future = Box::pin(async { std::panic::resume_unwind(Box::new(())) }.traced(span!(broken())));
    let poll = || future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(catch_unwind(AssertUnwindSafe(poll)).is_err_and(|_: Box<dyn std::any::Any + Send>| true));
    assert_eq!(ends.outcomes(), ["2"]);
    drop(future);
    assert_eq!(ends.outcomes(), ["2"], "it ends once");
}

#[test]
fn polls_of_a_span_that_began_while_off_are_not_recorded() {
    let future = Later(1, false).traced(span!(silent()));
    let (task, polls) = (Ends::of("silent"), Ends::of("silent_poll"));
    assert_eq!(run(future), 1);
    assert!(polls.begin.all().is_empty() && task.end.all().is_empty());
}
