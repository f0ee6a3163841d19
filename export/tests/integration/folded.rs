//! Folded stacks of spans. A test of `tracectl export --flame` checks that inferno can read them.

use super::common;
use std::collections::BTreeMap;
use tracepoint::Channel;
use tracepoint_export::{FoldedStacks, Otlp};

#[test]
fn the_time_of_a_path_is_that_of_its_spans_without_their_children() {
    let recorded = common::shop();
    let mut out = Vec::new();
    let summary = recorded.export(FoldedStacks::of_spans(&mut out));
    assert_eq!(summary.events, recorded.counted());
    let text = String::from_utf8(out).unwrap();
    let lines: BTreeMap<&str, u64> = text
        .lines()
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(stack, time)| (stack.split_once(';').unwrap().1, time.parse().unwrap()))
        .collect();
    let total = |name: &str| -> u64 {
        let spans = recorded.spans().into_iter().filter(|span| span.0 == name);
        spans.filter_map(|(_, begin, end)| Some(end?.abs_diff(begin?))).sum()
    };
    // All queries have ended; the span around the last one has not.
    assert_eq!(lines["shop:request;shop:query"] + lines["shop:query"], total("shop:query"));
    assert_eq!(lines["shop:job;shop:job_poll"], total("shop:job_poll"));
    assert_eq!(lines["shop:job"] + lines["shop:job;shop:job_poll"], total("shop:job"));
    assert_eq!(lines.len(), 5, "{text}");
    assert!(lines["shop:request"] < total("shop:request"), "{text}");
    // Neither of two overlapping spans is a child of the other.
    assert!(lines.keys().all(|path| *path != "shop:request;shop:request"), "{text}");
}

#[test]
fn deep_paths_do_not_grow_without_bound() {
    let recorded = common::record(Channel::discard(8 << 20), || {
        let mut open = Vec::new();
        for id in 0..2000 {
            open.push(tracepoint::span!(common::request(id, "/deeper")));
            drop(tracepoint::span!(common::query("in all of them")));
        }
        open.into_iter().rev().for_each(drop);
    });
    let mut out = Vec::new();
    let summary = common::export(&recorded.items, FoldedStacks::of_spans(&mut out));
    assert_eq!((summary.spans_closed, summary.guessed_parents), (4000, 3999));
    assert!(out.len() < 20 << 20, "{}", out.len());
    let text = String::from_utf8(out).unwrap();
    let numbers = text.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap());
    let outermost = recorded.spans().into_iter().map(|(_, begin, end)| end.unwrap().abs_diff(begin.unwrap())).max();
    assert_eq!(Some(numbers.sum::<u64>()), outermost);
    assert!(
        text.contains("shop:request;shop:request;shop:query ") && text.contains("\n[further paths] "),
        "the rest is counted"
    );
}

#[test]
fn a_span_across_the_whole_trace_is_above_all_that_are_in_it() {
    // So many that a format with parents does not wait for all of them.
    let recorded = common::record(Channel::discard(32 << 20), || {
        let _whole = tracepoint::span!(common::request(0, "/whole"));
        for _ in 0..50_000 {
            drop(tracepoint::span!(common::query("in it")));
        }
    });
    let mut out = Vec::new();
    let summary = recorded.export(FoldedStacks::of_spans(&mut out));
    assert_eq!((summary.lost_events, summary.guessed_parents, summary.parents_given_up), (0, 50_000, 0));
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.lines().map(|line| line.split(';').count()).collect::<Vec<_>>(), [2, 3], "{text}");

    let mut out = Vec::new();
    let summary = recorded.export(Otlp::json_lines(&mut out));
    assert_eq!((summary.spans_closed, summary.parents_given_up, summary.guessed_parents), (50_001, 1, 0));
    assert!(!String::from_utf8(out).unwrap().contains("parentSpanId"), "all are said to have none");
}
