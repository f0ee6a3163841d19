//! Assembly of spans, from complete and incomplete traces.

use super::common::{self, Recorded, export, number};
use std::io;
use std::sync::Arc;
use tracepoint::{Channel, Rule, session::SessionBuilder};
use tracepoint_export::{Format, LossReport, Needs, Sources, Span, SpanEnd, Summary, ThreadId};
use tracepoint_reader::{Damage, Event, Item, Loss};

/// Keeps all spans that it receives.
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
    nests: bool,
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
            nests: span.nests,
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
    // The last one is inside a span that has not ended.
    let (last, queries) = queries.split_last().unwrap();
    assert_eq!((last.parent, last.path.as_str(), last.root, last.nests), (None, "shop:query", last.id, true));
    for query in queries {
        let parent = spans.iter().find(|span| Some(span.id) == query.parent).unwrap();
        assert_eq!(
            (query.path.as_str(), query.root, &*parent.name),
            ("shop:request;shop:query", parent.id, "shop:request")
        );
    }
    // One of them has a recorded parent.
    assert_eq!(summary.guessed_parents, 19);
    let job = spans.iter().find(|span| span.name == "shop:job").unwrap();
    let polls: Vec<_> = spans.iter().filter(|span| span.parent == Some(job.id)).collect();
    assert_eq!((polls.len(), &*polls[0].path), (3, "shop:job;shop:job_poll"));
    let polled: u64 = polls.iter().filter_map(|poll| poll.duration_ns).sum();
    assert_eq!(Some(job.self_ns + polled), job.duration_ns);
    // Each of the 19 queries of the first requests has one event inside; events between polls are outside of all spans.
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
    let (_, summary) = exporter.finish().unwrap();
    balances(&summary);
    assert_eq!((summary.spans_open, summary.spans_forgotten), (3, 21), "the last query had one forgotten");
    assert_eq!(few.spans.iter().filter(|span| span.is_forgotten).count(), 21);
}

#[test]
fn an_open_span_lasts_as_long_as_the_trace() {
    let recorded = common::record(Channel::discard(1 << 20), || {
        let _outer = tracepoint::span!(common::request(1, "/outer"));
        let _inner = tracepoint::span!(common::request(2, "/inner"));
    });
    // Both ends are missing, and the begin of the second span is the last event.
    let begins: Vec<_> = recorded.items.iter().take(2).cloned().collect();
    let last = recorded.events().nth(1).unwrap().time_ns.unsigned_abs();
    let mut out = Vec::new();
    let summary = export(&begins, tracepoint_export::Otlp::json_lines(&mut out));
    assert_eq!((summary.events, summary.spans_open), (2, 2));
    let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let spans = json["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let ends: Vec<_> = spans.iter().map(|span| span["endTimeUnixNano"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ends, vec![last.to_string(); 2]);
}

/// The items without the end event of the `index`th span with this name.
fn without_end(items: &[Item], name: &str, index: usize) -> Vec<Item> {
    let is_end = |item: &&Item| matches!(item, Item::Event(event) if event.name() == name);
    let end = items.iter().filter(is_end).nth(index).map(std::ptr::from_ref).unwrap();
    items.iter().filter(|item| !std::ptr::eq(*item, end)).cloned().collect()
}

#[test]
fn one_lost_end_does_not_falsify_what_follows() {
    let large = vec![0; 8 << 20];
    let recorded = common::record(Channel::discard(4 << 20), || {
        for id in 0..10 {
            let _request = tracepoint::span!(common::request(id, "/cart"));
            drop(tracepoint::span!(common::query("first")));
            if id == 3 {
                tracepoint::trace!(common::step(id, 0, "", &large, true, 0.0));
            }
            drop(tracepoint::span!(common::query("second")));
        }
    });
    let expected = |spans: &[Seen], but: usize| {
        let is = |span: &&Seen| span.path == "shop:request;shop:query" && span.nests;
        assert_eq!(spans.iter().filter(is).count(), 20 - but, "{spans:#?}");
        let requests = spans.iter().filter(|span| span.name == "shop:request" && span.path == "shop:request");
        assert_eq!(requests.filter(|span| span.nests).count(), 10 - usize::from(but > 0), "{spans:#?}");
    };
    // A missing end inside another span is detected at the end of the outer one.
    let is_loss = |item: &Item| matches!(item, Item::Loss(_));
    let whole: Vec<_> = recorded.items.iter().filter(|item| !is_loss(item)).cloned().collect();
    let (spans, summary) = kept(&whole, 0);
    assert_eq!((summary.spans_open, summary.lost_events), (0, 0));
    expected(&spans, 0);
    let (spans, summary) = kept(&without_end(&whole, "shop:query_end", 2), 0);
    balances(&summary);
    assert_eq!(summary.spans_open, 1);
    // The second query of this request appears to be inside the first one, which has not ended.
    expected(&spans, 2);

    // A missing end of an outermost span is detected by the loss.
    let cut = whole.iter().position(|item| matches!(item, Item::Event(event) if event.name() == "shop:request_end"));
    let (before, after) = whole.split_at(cut.unwrap());
    let loss = recorded.items.iter().find(|item| is_loss(item)).unwrap().clone();
    let (spans, summary) = kept(&[before, &[loss], &after[1..]].concat(), 1);
    balances(&summary);
    assert_eq!((summary.spans_open, summary.lost_events), (1, 1));
    let is_root = |span: &&Seen| span.name == "shop:request" && span.parent.unwrap_or(0) == 0 && span.root == span.id;
    assert_eq!(spans.iter().filter(is_root).count(), 10, "{spans:#?}");
    assert_eq!(spans.iter().filter(|span| span.name == "shop:request" && span.nests).count(), 9);
    assert!(spans.iter().filter(|span| span.name == "shop:query").all(|span| span.nests));
}

#[test]
fn a_loss_leaves_the_spans_whose_ends_are_in_another_channel() {
    let large = vec![0; 8 << 20];
    let with = |session: SessionBuilder| {
        let small = session.events("shop:request*").events("shop:query*").channel(Channel::discard(4 << 20));
        small.events(Rule::new("shop:step").channel("large")).channel(Channel::discard(4 << 20).name("large"))
    };
    let recorded = common::record_into(with, || {
        tracepoint::trace!(common::step(0, 0, "", &[], true, 0.0));
        for id in 0..4 {
            let _request = tracepoint::span!(common::request(id, "/cart"));
            tracepoint::trace!(common::step(id, 0, "", &large, true, 0.0));
            drop(tracepoint::span!(common::query("behind the loss")));
        }
    });
    let is_loss = |item: &Item| matches!(item, Item::Loss(_));
    let whole: Vec<_> = recorded.items.iter().filter(|item| !is_loss(item)).cloned().collect();
    let loss =
        recorded.items.iter().find_map(|item| if let Item::Loss(loss) = item { Some(loss) } else { None }).unwrap();
    // After the event that assigns the stream with the loss to a thread.
    let span = recorded.events().nth(1).unwrap();
    assert_ne!(loss.stream.class.id, span.stream.class.id);
    // The reader reports a loss at the end of its packet; here the loss is moved into the first request.
    let with_loss = |loss: Loss| [&whole[..2], &[Item::Loss(loss)], &whole[2..]].concat();
    let nesting = |items: &[Item]| {
        let (spans, summary) = kept(items, 0);
        balances(&summary);
        assert_eq!((summary.spans_open, summary.lost_events), (0, 4));
        let is = |span: &&Seen| span.nests && (span.name == "shop:request" || span.path == "shop:request;shop:query");
        spans.iter().filter(is).count()
    };
    assert_eq!(nesting(&with_loss(loss.clone())), 8);
    let mut of_spans = loss.clone();
    of_spans.stream = Arc::clone(&span.stream);
    // The first request does not nest, so its query has no parent.
    assert_eq!(nesting(&with_loss(of_spans)), 6);
}
