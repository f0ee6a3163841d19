//! Guessed parents: only spans that nest have one, and only spans that nest are one. All other parents must be recorded.

use super::common::{self, Recorded, job, number, query, request, step};
use std::collections::HashMap;
use std::pin::pin;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::thread;
use tracepoint::Channel;
use tracepoint::span::FutureExt;
use tracepoint::{span, trace};
use tracepoint_export::{FoldedStacks, Otlp};
use tracepoint_reader::Item;

fn record(fire: impl FnOnce()) -> Recorded {
    common::record(Channel::discard(1 << 20), fire)
}

/// Parents in the OTLP export, by `NAME ID` of the span's first field. A guessed parent is followed by `?`. Also returns the number of
/// events outside of all spans.
fn parents(items: &[Item]) -> (HashMap<String, String>, u64) {
    let mut out = Vec::new();
    let summary = common::export(items, Otlp::json_lines(&mut out));
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let spans = lines.iter().flat_map(|line| line["resourceSpans"].as_array().unwrap());
    let spans: Vec<_> = spans.flat_map(|one| one["scopeSpans"][0]["spans"].as_array().unwrap()).collect();
    let attribute = |span: &serde_json::Value, key: &str| {
        let all = span["attributes"].as_array().unwrap();
        all.iter().find(|one| one["key"] == key).map(|one| one["value"].clone())
    };
    let name = |span: &serde_json::Value| {
        let first = [("id", "intValue"), ("text", "stringValue")]
            .into_iter()
            .find_map(|(key, kind)| Some(attribute(span, key)?[kind].as_str()?.to_owned()));
        format!("{} {}", span["name"].as_str().unwrap().trim_start_matches("shop:"), first.unwrap_or_default())
    };
    let by_id: HashMap<_, _> = spans.iter().map(|span| (span["spanId"].as_str().unwrap(), *span)).collect();
    let parent = |span: &serde_json::Value| {
        let guessed = if attribute(span, "tracepoint.parent_guessed").is_some() { "?" } else { "" };
        let Some(id) = span["parentSpanId"].as_str() else { return guessed.to_owned() };
        let Some(parent) = by_id.get(id) else { return format!("missing{guessed}") };
        assert_eq!(parent["traceId"], span["traceId"], "{span}");
        format!("{}{guessed}", name(parent))
    };
    let guessed = spans.iter().filter(|span| parent(span).ends_with('?')).count() as u64;
    assert_eq!(summary.guessed_parents, guessed, "{text}");
    (spans.iter().map(|span| (name(span), parent(span))).collect(), summary.outside)
}

/// The paths of folded stacks.
fn paths(items: &[Item]) -> Vec<String> {
    let mut out = Vec::new();
    common::export(items, FoldedStacks::of_spans(&mut out));
    let text = String::from_utf8(out).unwrap();
    let path = |line: &str| line.rsplit_once(' ').unwrap().0.split_once(';').unwrap().1.replace("shop:", "");
    text.lines().map(path).collect()
}

#[test]
fn spans_that_overlap_in_part_adopt_nothing() {
    let recorded = record(|| {
        let outer = span!(request(0, "/outer"));
        let before = span!(query("before"));
        drop(before);
        let one = span!(request(1, "/one"));
        let two = span!(request(2, "/two"));
        trace!(step(1, 0, "note", &[], true, 0.0));
        let work = span!(query("work"));
        drop(span!(query("inner")));
        drop(work);
        drop(one);
        drop(two);
        drop(outer);
    });
    let (parents, outside) = parents(&recorded.items);
    let expected = [
        ("request 0", ""),
        ("query before", "request 0?"),
        ("request 1", ""),
        ("request 2", ""),
        ("query work", ""),
        ("query inner", "query work?"),
    ];
    assert_eq!(parents, expected.map(|(span, parent)| (span.to_owned(), parent.to_owned())).into());
    assert_eq!(outside, 1, "the note may be of either");
    assert_eq!(paths(&recorded.items), ["query", "query;query", "request", "request;query"]);
}

#[test]
fn a_span_that_overlaps_with_one_that_is_known_not_to_nest_does_not_either() {
    let recorded = record(|| {
        let one = span!(request(1, "/one"));
        let two = span!(request(2, "/two"));
        drop(one);
        // Overlaps with the second one only.
        let three = span!(request(3, "/three"));
        drop(span!(query("work")));
        drop(two);
        drop(three);
        // No span is open: guessing works normally from here on.
        let four = span!(request(4, "/four"));
        drop(span!(query("later")));
        drop(four);
    });
    let (parents, _) = parents(&recorded.items);
    assert!(parents.iter().all(|(span, parent)| span == "query later" || parent.is_empty()), "{parents:?}");
    assert_eq!(parents["query later"], "request 4?");
}

#[test]
fn a_span_that_ends_on_another_thread_adopts_nothing_and_named_parents_are_kept() {
    let recorded = record(|| {
        let outer = span!(request(0, "/outer"));
        let moved = span!(request(1, "/moved"));
        drop(span!(query("work")));
        drop(span!(parent: &moved, query("named")));
        let parent = moved.id();
        let (to, from) = mpsc::channel::<()>();
        let elsewhere = thread::spawn(move || {
            let late = span!(parent: parent, query("late"));
            drop(span!(query("in late")));
            drop(moved);
            from.recv().unwrap();
            drop(late);
        });
        drop(span!(query("after")));
        drop(outer);
        to.send(()).unwrap();
        elsewhere.join().unwrap();
    });
    let (parents, _) = parents(&recorded.items);
    assert_eq!((&*parents["query work"], &*parents["request 1"]), ("", ""));
    assert_eq!((&*parents["query named"], &*parents["query late"]), ("request 1", "request 1"));
    assert_eq!(parents["query in late"], "query late?");
}

#[test]
fn a_child_that_outlives_a_guessed_chain_is_in_its_trace() {
    let recorded = record(|| {
        let outer = span!(request(0, "/outer"));
        let inner = span!(request(1, "/inner"));
        let parent = inner.id();
        let (to, from) = mpsc::channel::<()>();
        let (begun, has_begun) = mpsc::channel::<()>();
        let elsewhere = thread::spawn(move || {
            let late = span!(parent: parent, query("late"));
            begun.send(()).unwrap();
            from.recv().unwrap();
            drop(late);
        });
        has_begun.recv().unwrap();
        drop(inner);
        drop(outer);
        to.send(()).unwrap();
        elsewhere.join().unwrap();
    });
    // `parents` checks that trace ids agree.
    let (parents, _) = parents(&recorded.items);
    assert_eq!((&*parents["request 1"], &*parents["query late"]), ("request 0?", "request 1"));
    assert_eq!(paths(&recorded.items), ["request", "request;query", "request;request"]);
}

#[test]
fn a_span_whose_end_is_not_there_adopts_nothing() {
    let recorded = record(|| {
        let one = span!(request(1, "/one"));
        let two = span!(request(2, "/two"));
        trace!(step(1, 0, "note", &[], true, 0.0));
        drop(span!(query("work")));
        drop(two);
        drop(one);
    });
    let whole = parents(&recorded.items);
    assert_eq!((&*whole.0["request 2"], &*whole.0["query work"], whole.1), ("request 1?", "request 2?", 0));
    // The trace ends while both are open: they may belong to two tasks.
    let (cut, outside) = parents(&recorded.items[..5]);
    assert!(cut.len() == 3 && cut.values().all(String::is_empty) && outside == 1, "{cut:?}");
    assert_eq!(paths(&recorded.items[..5]), ["query"]);
    // The trace begins while both are open: their names are missing.
    let (cut, outside) = parents(&recorded.items[2..]);
    assert!(cut.len() == 2 && cut.values().all(String::is_empty) && outside == 1, "{cut:?}");
}

#[test]
fn a_span_from_before_the_recording_overlaps_with_what_outlives_it() {
    let recorded = record(|| {
        let before = span!(request(1, "/before"));
        let two = span!(request(2, "/two"));
        drop(span!(query("work")));
        drop(before);
        drop(two);
    });
    let (parents, _) = parents(&recorded.items[1..]);
    assert!(parents.len() == 3 && parents.values().all(String::is_empty), "{parents:?}");
}

/// A future that is ready after a given number of polls, and creates spans in each poll.
struct Steps(u64, u64);

impl Future for Steps {
    type Output = ();

    fn poll(mut self: std::pin::Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        self.1 -= 1;
        drop(span!(request(self.0 * 10 + self.1, "/in a poll")));
        if self.1 == 0 { Poll::Ready(()) } else { Poll::Pending }
    }
}

#[test]
fn futures_that_take_turns_on_several_threads_keep_their_own_spans() {
    let recorded = record(|| {
        let task = |id: u64| {
            async move {
                // Begins in the task's first poll, and ends in another one, on another thread.
                Steps(id, 3).traced(span!(job(id * 100))).await;
            }
            .traced(span!(job(id)))
        };
        let (mut one, mut two) = (pin!(task(1)), pin!(task(2)));
        let mut poll = || {
            let context = &mut Context::from_waker(Waker::noop());
            let (one, two) = (one.as_mut().poll(context), two.as_mut().poll(context));
            assert_eq!(one, two);
            one
        };
        assert_eq!(poll(), Poll::Pending);
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(poll(), Poll::Pending));
        });
        assert_eq!(poll(), Poll::Ready(()));
    });
    let jobs: HashMap<u64, u64> = recorded
        .events()
        .filter(|event| event.name() == "shop:job_begin")
        .map(|event| (number(event, "span_id"), number(event, "id")))
        .collect();
    assert_eq!(jobs.len(), 4);
    let (parents, _) = parents(&recorded.items);
    assert_eq!((&*parents["job 1"], &*parents["job 2"]), ("", ""));
    // All polls have the same name here; the paths distinguish them.
    assert_eq!((&*parents["job 100"], &*parents["job 200"]), ("job_poll ?", "job_poll ?"));
    assert!((0..3).all(|n| [10, 20].iter().all(|task| parents[&format!("request {}", task + n)] == "job_poll ?")));
    let all =
        ["job", "job;job_poll", "job;job_poll;job", "job;job_poll;job;job_poll", "job;job_poll;job;job_poll;request"];
    assert_eq!(paths(&recorded.items), all);
}
