//! Spans in a recorded trace: nested, in futures, unwound, and switched while they are open; read by babeltrace2 and by our reader.

use crate::common::{assert_balances, place, view};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use tracepoint::span;
use tracepoint::span::FutureExt;
use tracepoint_reader::text::{Style, TextWriter};
use tracepoint_reader::{Event, Item, SpanPart, Trace};
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Channel, Session};
use tracepoint_session_spec::TraceStatistic;

tracepoint::define_trace! {
    provider = "spans";

    span request(id: u64) { id }
    span query(text: &str) { text }
    async span job(id: u64) { id }
    /// Stays on while others are switched.
    note(n: u64) { n }
}

fn start(directory: &Path, rule: &str) -> Result<Session, Box<dyn std::error::Error>> {
    let channel = Channel::discard(1 << 20);
    let sink = CtfSink::create(directory)?;
    Ok(Session::builder("spans").events(rule).channel(channel).in_memory().sink(sink).start()?)
}

fn events(directory: &Path) -> Result<Vec<Event>, Box<dyn std::error::Error>> {
    let items = Trace::open(directory)?.items();
    Ok(items.filter_map(|item| if let Item::Event(event) = item { Some(event) } else { None }).collect())
}

fn number(event: &Event, field: &str) -> u64 {
    event.fields.as_ref().and_then(|fields| fields.get(field)?.as_u64()).unwrap_or_else(|| panic!("{field}: {event:?}"))
}

/// Returns the name and the number in the field of each event.
fn with<'e>(events: &'e [Event], field: &str) -> Vec<(&'e str, u64)> {
    events.iter().map(|event| (event.name().trim_start_matches("spans:"), number(event, field))).collect()
}

struct Twice(bool);

impl Future for Twice {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        drop(span!(query("in a poll")));
        if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

#[test]
fn spans_in_a_trace() -> Result<(), Box<dyn std::error::Error>> {
    own_process!();
    let place = place();
    let directory = place.path().join("trace");
    let session = start(&directory, "spans:*")?;
    {
        let outer = span!(request(1));
        drop(span!(parent: &outer, query("select 1")));
    }
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let _outer = span!(request(2));
        let _inner = span!(query("select 2"));
        std::panic::resume_unwind(Box::new(()));
    }));
    assert!(unwound.is_err());
    {
        let mut job = pin!(Twice(false).traced(span!(job(3))));
        while job.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {}
    }
    session.stop()?;
    assert_balances(&directory);

    let events = events(&directory)?;
    let order = ["request_begin", "query_begin", "query_end", "request_end"];
    let polled = ["job_poll_begin", "query_begin", "query_end", "job_poll_end"];
    let names: Vec<_> = events.iter().map(|event| event.name().trim_start_matches("spans:")).collect();
    let expected = [&order[..], &order, &["job_begin"], &polled, &polled, &["job_end"]].concat();
    assert_eq!(names, expected);
    assert_eq!(events[0].class.span(), Some(("spans:request", SpanPart::Begin)));
    assert_eq!(events[3].class.span(), Some(("spans:request", SpanPart::End)));

    // Each end has the id of its beginning, and the difference of the times.
    let mut open = Vec::new();
    for event in &events {
        let (name, part) = event.class.span().ok_or("no span")?;
        if part == SpanPart::Begin {
            open.push((name, number(event, "span_id"), event.time_ns));
        } else {
            let (begun, id, time) = open.pop().ok_or("an end without a beginning")?;
            assert_eq!((begun, id), (name, number(event, "span_id")));
            assert_eq!(event.time_ns - time, i64::try_from(number(event, "duration_ns"))?);
        }
    }
    assert!(open.is_empty());
    assert_eq!(number(&events[1], "parent_id"), number(&events[0], "span_id"));
    assert_eq!(number(&events[9], "parent_id"), number(&events[8], "span_id"));
    let outcomes: Vec<_> = [2, 3, 6, 7, 12, 17].map(|at: usize| number(&events[at], "outcome")).into();
    assert_eq!(outcomes, [0, 0, 2, 2, 0, 0]);

    let viewed = view(&[&directory]);
    assert_eq!((viewed.lines.len(), &*viewed.warnings), (events.len(), ""));
    assert!(viewed.lines[0].contains("spans:request_begin"), "{}", viewed.lines[0]);
    assert!(viewed.lines[0].ends_with(", parent_id = 0, id = 1 }"), "{}", viewed.lines[0]);
    assert!(viewed.lines[7].ends_with("outcome = ( \"panicked\" : container = 2 ) }"), "{}", viewed.lines[7]);

    let mut line = Vec::new();
    TextWriter::new(Style::Compact.into()).write_item(&mut line, &Item::Event(events[7].clone()))?;
    let line = String::from_utf8(line)?;
    let (_, shown) = line.split_once("duration=").ok_or_else(|| line.clone())?;
    assert!(shown.trim_end().ends_with("s outcome=panicked"), "{line}");

    let trace = Trace::open(&directory)?;
    let metadata = trace.metadata().map(|(_, metadata)| metadata);
    let mut durations = TraceStatistic::new("latency(spans:request)".parse()?, metadata, |_| true)?;
    for event in &events {
        durations.observe(event);
    }
    let shown = format!("{:?}", durations.snapshot().results);
    assert!(shown.contains("begun: 2") && shown.contains("unmatched: 0"), "{shown}");
    Ok(())
}

#[test]
fn spans_that_are_switched_while_they_are_open() -> Result<(), Box<dyn std::error::Error>> {
    own_process!();
    let place = place();
    let directory = place.path().join("trace");
    let before = span!(request(1));
    let session = start(&directory, "spans:note")?;
    session.enable("spans:request_*")?;
    drop(before);
    let cut = span!(request(2));
    drop(span!(request(3)));
    session.disable("spans:request_*")?;
    drop(cut);
    tracepoint::trace!(note(4));
    drop(span!(request(5)));
    session.stop()?;
    assert_balances(&directory);
    let events = events(&directory)?;
    let ids = with(&events[..3], "span_id");
    let first = ids[0].1;
    assert_eq!(ids, [("request_begin", first), ("request_begin", first + 1), ("request_end", first + 1)]);
    assert_eq!(with(&events[3..], "n"), [("note", 4)]);
    Ok(())
}

#[test]
fn the_last_events_alone_tell_which_spans_took_long() -> Result<(), Box<dyn std::error::Error>> {
    own_process!();
    let place = place();
    let directory = place.path().join("trace");
    let rule = tracepoint_session_spec::Rule::new("spans:request_end").filter("duration_ns >= 2000000");
    let sink = CtfSink::create(&directory)?;
    let session = Session::builder("spans").events(rule).in_memory().sink(sink).start()?;
    drop(span!(request(1)));
    let slow = span!(request(2));
    std::thread::sleep(std::time::Duration::from_millis(2));
    let id = slow.id().get();
    drop(slow);
    session.stop()?;
    let events = events(&directory)?;
    assert!(with(&events, "span_id").contains(&("request_end", id)));
    assert!(events.iter().all(|event| number(event, "duration_ns") >= 2_000_000));
    Ok(())
}
