//! Off-CPU stacks: the waits of threads by their spans, from handmade traces.

use super::common;
use super::threads::{INNER, OTHER, OUTER, PID, begin, end, ends, lost, of, shop, step, switch, thread, traces};
use tracepoint_export::{Exporter, FoldedStacks};
use tracepoint_reader::Item;

fn folded(items: &[Item], span: Option<&'static str>) -> Vec<String> {
    let mut out = Vec::new();
    common::export(
        items,
        match span {
            Some(span) => FoldedStacks::of_waits_inside(&mut out, move |name| name == span),
            None => FoldedStacks::of_waits(&mut out),
        },
    );
    lines(out)
}

fn lines(out: Vec<u8>) -> Vec<String> {
    let mut lines: Vec<_> = String::from_utf8(out).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn events_that_are_not_selected_show_waits_and_are_not_counted() {
    let (_place, items) = shop();
    let mut out = Vec::new();
    let mut exporter = Exporter::new(FoldedStacks::of_waits(&mut out));
    let is_own = |item: &&Item| matches!(item, Item::Event(event) if event.name().starts_with("hand:"));
    for item in &items {
        if is_own(&item) { exporter.item(item) } else { exporter.unselected(item) }.unwrap();
    }
    let summary = exporter.finish().unwrap().1;
    let own = items.iter().filter(is_own).count() as u64;
    assert_eq!((summary.events, lines(out)), (own, folded(&items, None)));
}

#[test]
fn time_in_which_events_are_lost_is_not_a_wait() {
    let kernel = [
        thread(100, PID, 41, "x", "R"),
        switch(100, 41, "running"),
        switch(120, 41, "blocked"),
        lost(),
        switch(200, 41, "running"),
        switch(210, 41, "blocked"),
        switch(220, 41, "running"),
        end(300),
    ];
    let (_place, items) = traces(&kernel, &[begin(110, 41, OUTER, 1, 0), step(230, 41), ends(240, 41, OUTER, 1, 130)]);
    assert_eq!(folded(&items, None), ["my proc;hand:outer;blocked 10"]);
}

#[test]
fn a_thread_with_the_id_of_one_that_has_ended_has_waits_of_its_own() {
    let kernel = [
        switch(100, 41, "running"),
        switch(110, 41, "blocked"),
        switch(115, 41, "running"),
        of(OTHER, switch(200, 41, "running")),
        of(OTHER, switch(210, 41, "blocked")),
        of(OTHER, switch(280, 41, "running")),
        end(300),
    ];
    let (_place, items) = traces(&kernel, &[begin(105, 41, OUTER, 1, 0)]);
    assert_eq!(folded(&items, None), ["77;[no span];blocked 70", "my proc;hand:outer;blocked 5"]);
}

/// The end of a span moves all that are above it to other stacks.
#[test]
fn spans_beyond_the_depth_of_a_stack_are_counted() {
    let kernel = [switch(100, 41, "running"), switch(2000, 41, "blocked"), end(2100)];
    let mut user: Vec<_> = (0..600).map(|n| begin(200 + n, 41, OUTER, n, 0)).collect();
    user.extend((0..600).map(|n| ends(1000 + n, 41, OUTER, n, 800)));
    let (_place, items) = traces(&kernel, &user);
    let mut out = Vec::new();
    let summary = common::export(&items, FoldedStacks::of_waits(&mut out));
    assert_eq!((summary.spans_left_out, summary.spans_closed), (88, 600));
    assert_eq!(lines(out), ["my proc;[no span];blocked 100"]);
}

#[test]
fn waits_are_summed_by_spans_cause_and_call() {
    let (_place, items) = shop();
    let of_inner = ["my proc;hand:outer;hand:inner;lock;futex 90", "my proc;hand:outer;hand:inner;ready 4"];
    let of_outer = ["my proc;hand:outer;blocked 10", "my proc;hand:outer;page fault 20", "my proc;hand:outer;ready 11"];
    let of_none = ["my proc;[no span];blocked 15", "my proc;[no span];disk;fsync 50", "my proc;[no span];ready 15"];
    let of_other = ["77;[no span];blocked 400"];
    let all = [&of_none[..], &of_outer, &of_inner, &of_other].concat();
    let expected = |lines: &[&str]| {
        let mut lines: Vec<_> = lines.iter().map(|line| (*line).to_owned()).collect();
        lines.sort();
        lines
    };
    assert_eq!(folded(&items, None), expected(&all));
    assert_eq!(folded(&items, Some("hand:inner")), expected(&of_inner));
    assert_eq!(folded(&items, Some("hand:outer")), expected(&[&of_outer[..], &of_inner].concat()));
    assert!(folded(&items, Some("hand:step")).is_empty());
}

#[test]
fn spans_that_overlap_or_end_elsewhere_leave_the_stack_when_they_end() {
    let wait = |time, tid| [switch(time, tid, "blocked"), switch(time + 5, tid, "running")];
    let mut kernel = vec![thread(10, PID, 41, "x", "R"), thread(10, PID, 42, "y", "R")];
    kernel.extend([switch(10, 41, "running"), switch(10, 42, "running")]);
    kernel.extend([wait(110, 41), wait(130, 41), wait(150, 41), wait(170, 41), wait(190, 41)].concat());
    // It waits until the end of the trace, in a span.
    kernel.extend([switch(195, 42, "blocked"), end(300)]);
    let user = [
        begin(100, 41, OUTER, 1, 0),
        begin(101, 41, INNER, 2, 1),
        ends(120, 41, OUTER, 1, 20),
        ends(140, 41, INNER, 2, 39),
        // The end of this one is missing: its id is used again.
        begin(160, 41, OUTER, 3, 0),
        begin(180, 41, INNER, 3, 0),
        // It ends on another thread.
        ends(186, 42, INNER, 3, 6),
        begin(187, 42, OUTER, 4, 0),
        // There is no such span.
        ends(188, 42, INNER, 9, 1),
        step(189, 42),
    ];
    let (_place, items) = traces(&kernel, &user);
    let expected = [
        "my proc;[no span];blocked 10",
        "my proc;hand:inner;blocked 5",
        "my proc;hand:outer;blocked 110",
        "my proc;hand:outer;hand:inner;blocked 5",
    ];
    assert_eq!(folded(&items, None), expected);
}
