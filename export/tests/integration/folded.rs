//! Folded stacks of spans. That inferno reads them is tested with `tracectl export --flame`.

use super::common;
use std::collections::BTreeMap;
use tracepoint::Channel;
use tracepoint_export::Folded;
use tracepoint_reader::Item;

#[test]
fn the_time_of_a_path_is_that_of_its_spans_without_their_children() {
    let recorded = common::shop();
    let mut out = Vec::new();
    let summary = recorded.export(Folded::of_spans(&mut out));
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
    // All queries have ended; the parent of the last one has not.
    assert_eq!(lines["shop:request;shop:query"], total("shop:query"));
    assert_eq!(lines["shop:job;shop:job_poll"], total("shop:job_poll"));
    assert_eq!(lines["shop:job"] + lines["shop:job;shop:job_poll"], total("shop:job"));
    assert_eq!(lines.len(), 5, "{text}");
    assert!(lines["shop:request"] < total("shop:request"), "{text}");
    // Of two that overlap, the second is a child of the first, while that is open.
    assert!(lines["shop:request;shop:request"] > 0, "{text}");
}

#[test]
fn paths_without_ends_do_not_grow_without_bound() {
    let recorded = common::record(Channel::discard(8 << 20), || {
        let mut open = Vec::new();
        for id in 0..2000 {
            open.push(tracepoint::span!(common::request(id, "/deeper")));
            drop(tracepoint::span!(common::query("in all of them")));
        }
    });
    // All are open, as when their ends are not selected: each path has the names of all before.
    let is_end = |item: &Item| matches!(item, Item::Event(event) if event.name() == "shop:request_end");
    let items: Vec<_> = recorded.items.iter().filter(|item| !is_end(item)).cloned().collect();
    let mut out = Vec::new();
    assert_eq!(common::export(&items, Folded::of_spans(&mut out)).spans_open, 2000);
    assert!(out.len() < 20 << 20, "{}", out.len());
    let text = String::from_utf8(out).unwrap();
    let numbers = text.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap());
    let times = recorded.spans().into_iter().filter(|span| span.0 == "shop:query");
    assert_eq!(numbers.sum::<u64>(), times.map(|(_, begin, end)| end.unwrap().abs_diff(begin.unwrap())).sum::<u64>());
    assert!(text.contains("\n[further paths] "), "the rest is counted");
}
