//! How spans are put together, from whole and from incomplete traces.

use super::common::{self, Recorded, export, number};
use std::io;
use tracepoint_export::{Format, LossReport, Needs, Sources, Span, SpanEnd, Summary, ThreadId};
use tracepoint_reader::{Damage, Event, Item};

/// Keeps what it is given of spans.
#[derive(Default)]
struct Kept {
    inside: usize,
    spans: Vec<Seen>,
}

#[derive(Debug)]
struct Seen {
    name: String,
    id: u64,
    parent: Option<u64>,
    root: u64,
    path: String,
    self_ns: u64,
    duration_ns: Option<u64>,
    recorded_duration: Option<u64>,
    has_begin: bool,
    is_forgotten: bool,
    inside: (usize, u64),
}

impl Format for &mut Kept {
    fn needs(&self) -> Needs {
        let mut needs = Needs::SPANS;
        needs.inside = self.inside;
        needs
    }

    fn event(&mut self, _: &Event, _: ThreadId, _: &Sources) -> io::Result<()> {
        Ok(())
    }

    fn span(&mut self, span: &Span<'_>, sources: &Sources) -> io::Result<()> {
        self.spans.push(Seen {
            name: span.name.to_owned(),
            id: span.id,
            parent: span.parent,
            root: span.root,
            path: sources.path(span.path).join(";"),
            self_ns: span.self_ns,
            duration_ns: span.end_ns.map(|end| end.abs_diff(span.begin_ns)),
            recorded_duration: span.end_event().map(|event| number(event, "duration_ns")),
            has_begin: span.begin.is_some(),
            is_forgotten: matches!(span.end, SpanEnd::Forgotten),
            inside: (span.inside.events.len(), span.inside.more),
        });
        Ok(())
    }

    fn loss(&mut self, _: &LossReport<'_>, _: &Sources) -> io::Result<()> {
        Ok(())
    }

    fn damage(&mut self, _: &Damage) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, _: &Summary, _: &Sources) -> io::Result<()> {
        Ok(())
    }
}

fn kept(items: &[Item], inside: usize) -> (Vec<Seen>, Summary) {
    let mut kept = Kept { inside, ..Kept::default() };
    let summary = export(items, &mut kept);
    (kept.spans, summary)
}

fn balances(summary: &Summary) {
    let Summary { events, others, spans_closed, spans_open, spans_forgotten, spans_without_begin, .. } = summary;
    assert_eq!(*events, 2 * spans_closed + spans_open + spans_forgotten + spans_without_begin + others);
}

#[test]
fn parents_paths_and_durations_are_those_of_the_program() {
    let recorded = common::shop();
    let (spans, summary) = kept(&recorded.items, 1);
    balances(&summary);
    assert_eq!((summary.events, summary.spans_open, summary.spans_without_begin), (recorded.counted(), 1, 0));
    assert!(spans.iter().all(|span| span.duration_ns == span.recorded_duration), "{spans:#?}");
    let queries: Vec<_> = spans.iter().filter(|span| span.name == "shop:query").collect();
    assert_eq!(queries.len(), 21);
    for query in queries {
        let parent = spans.iter().find(|span| Some(span.id) == query.parent).unwrap();
        assert_eq!(
            (query.path.as_str(), query.root, &*parent.name),
            ("shop:request;shop:query", parent.id, "shop:request")
        );
    }
    let job = spans.iter().find(|span| span.name == "shop:job").unwrap();
    let polls: Vec<_> = spans.iter().filter(|span| span.parent == Some(job.id)).collect();
    assert_eq!((polls.len(), &*polls[0].path), (3, "shop:job;shop:job_poll"));
    let polled: u64 = polls.iter().filter_map(|poll| poll.duration_ns).sum();
    assert_eq!(Some(job.self_ns + polled), job.duration_ns);
    // Each of the 19 queries of the first requests has one event inside; what is between polls is in no span.
    assert_eq!(spans.iter().map(|span| span.inside.0).sum::<usize>(), 19);
}

#[test]
fn a_missing_begin_is_computed_from_the_duration() {
    let recorded = common::shop();
    let is_begin = |item: &Item| matches!(item, Item::Event(event) if event.name() == "shop:query_begin");
    let items: Vec<_> = recorded.items.iter().filter(|item| !is_begin(item)).cloned().collect();
    let (spans, summary) = kept(&items, 0);
    balances(&summary);
    assert_eq!(summary.spans_without_begin, 21);
    let queries: Vec<_> = spans.iter().filter(|span| span.name == "shop:query").collect();
    assert!(queries.iter().all(|span| !span.has_begin && span.duration_ns == span.recorded_duration));
}

#[test]
fn what_does_not_end_is_open_or_forgotten() {
    let recorded: Recorded = common::shop();
    let is_end = |item: &Item| matches!(item, Item::Event(event) if event.name() == "shop:request_end");
    let items: Vec<_> = recorded.items.iter().filter(|item| !is_end(item)).cloned().collect();
    let (_, summary) = kept(&items, 0);
    balances(&summary);
    assert_eq!(summary.spans_open, 24);

    let mut few = Kept::default();
    let mut exporter = tracepoint_export::Exporter::new(&mut few).max_open_spans(4);
    items.iter().try_for_each(|item| exporter.item(item)).unwrap();
    let summary = exporter.finish().unwrap();
    balances(&summary);
    assert_eq!((summary.spans_open, summary.spans_forgotten), (3, 21), "the last query had one forgotten");
    assert_eq!(few.spans.iter().filter(|span| span.is_forgotten).count(), 21);
}
