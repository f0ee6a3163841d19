//! The layer, and its filter, which makes disabled callsites free of cost.

use crate::callsites;
use crate::describe::Tracepoints;
use crate::fields::collect;
use crate::log::through_tracing;
use crate::switching;
use std::cell::RefCell;
use tracepoint_core::clock::now;
use tracepoint_core::internal::At;
use tracepoint_core::span::{Begin, SpanId};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::subscriber::{Interest, Subscriber};
use tracing_core::{Dispatch, Event, Metadata};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, Filter};
use tracing_subscriber::registry::LookupSpan;

/// Returns a layer that maps callsites to tracepoints. Its per-layer filter hides disabled callsites from this layer, and nothing from other layers.
pub fn layer<S>() -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    switching::follow();
    TracepointLayer.with_filter(Switches)
}

/// The filter: enables callsites whose tracepoints are on.
struct Switches;

impl<S> Filter<S> for Switches {
    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        let Some(callsite) = callsites::register(metadata) else { return Interest::never() };
        if callsite.tracepoints.is_on() {
            return Interest::always();
        }
        // Only the thread that handles a switch may return `never`: another one could overwrite a newer interest with it.
        let is_final = switching::is_asking();
        callsite.set_known_as_off(is_final);
        if is_final { Interest::never() } else { Interest::sometimes() }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        let Some(callsite) = callsites::find(metadata) else { return through_tracing::is_wanted(metadata) };
        let is_on = callsite.tracepoints.is_on();
        if !is_on && !callsite.is_known_as_off() {
            switching::asked_at_event();
        }
        is_on
    }
}

struct TracepointLayer;

/// Returns the tracepoints of a registered callsite.
#[inline]
fn tracepoints(metadata: &Metadata<'_>) -> Option<&'static Tracepoints> {
    callsites::find(metadata).map(|callsite| &callsite.tracepoints)
}

/// Id and start time of a span, stored in its extensions. Ids come from the same sequence as `span!` ids, because a trace can contain both. Ids
/// of `tracing` cannot be used: they are reused.
#[derive(Clone, Copy)]
struct SpanBegin(Begin);

/// Returns the stored data of a span that this layer has seen.
fn begun<S: Subscriber + for<'a> LookupSpan<'a>>(id: &Id, context: &Context<'_, S>) -> Option<Begin> {
    context.span(id)?.extensions().get::<SpanBegin>().map(|begun| begun.0)
}

thread_local! {
    /// The spans entered on this thread, innermost last: the id in `tracing`, and the id in the trace.
    static ENTERED: RefCell<Vec<(Id, u64)>> = const { RefCell::new(Vec::new()) };
}

/// Returns the innermost span entered on this thread; 0 if there is none, or the thread is ending.
fn current() -> u64 {
    ENTERED.try_with(|spans| spans.borrow().last().map(|(_, id)| *id)).ok().flatten().unwrap_or(0)
}

/// Returns the id of the given span, or of the innermost one for a contextual parent.
fn parent<S>(given: Option<&Id>, is_contextual: bool, context: &Context<'_, S>) -> u64
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    match given {
        Some(id) => begun(id, context).map_or(0, |begun| begun.id().get()),
        None if is_contextual => current(),
        None => 0,
    }
}

impl<S> Layer<S> for TracepointLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_register_dispatch(&self, dispatch: &Dispatch) {
        switching::serve(dispatch);
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let Some(tracepoints) = tracepoints(event.metadata()) else { return through_tracing::record(event) };
        let Tracepoints::Event(tracepoint) = tracepoints else { return };
        if tracepoint.is_on() {
            let span = parent(event.parent(), event.is_contextual(), &context);
            collect(
                *tracepoint,
                event.metadata().fields().len(),
                |visitor| event.record(visitor),
                |values| tracepoint.record(&(span, values)),
            );
        }
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(Tracepoints::Span { begin, .. }) = tracepoints(attributes.metadata()) else { return };
        let begun = Begin::new(SpanId::NONE);
        if let Some(span) = context.span(id) {
            span.extensions_mut().replace(SpanBegin(begun));
        }
        if begin.is_on() {
            let parent = parent(attributes.parent(), attributes.is_contextual(), &context);
            collect(
                *begin,
                attributes.metadata().fields().len(),
                |visitor| attributes.record(visitor),
                |values| begin.record(&At { time: begun.time(), values: (begun.id().get(), (parent, values)) }),
            );
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(metadata) = context.metadata(id) else { return };
        let Some(Tracepoints::Span { record, .. }) = tracepoints(metadata) else { return };
        if record.is_on() {
            let id = begun(id, &context).map_or(0, |begun| begun.id().get());
            collect(
                *record,
                metadata.fields().len(),
                |visitor| values.record(visitor),
                |values| record.record(&(id, values)),
            );
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let span = begun(id, &context).map_or(0, |begun| begun.id().get());
        // Fails while the thread ends.
        let _ = ENTERED.try_with(|spans| spans.borrow_mut().push((id.clone(), span)));
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        let _ = ENTERED.try_with(|spans| {
            let mut spans = spans.borrow_mut();
            // Usually the last one; guards can be dropped in any order.
            if let Some(at) = spans.iter().rposition(|(span, _)| span == id) {
                spans.remove(at);
            }
        });
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(Tracepoints::Span { end, .. }) = context.metadata(&id).and_then(tracepoints) else { return };
        if let Some(begun) = begun(&id, &context).filter(|_| end.is_on()) {
            let time = now();
            let duration = time.saturating_sub(begun.time());
            end.record(&At { time, values: (begun.id().get(), (duration, ())) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use tracepoint_core::field::Value;
    use tracepoint_core::marker::{Aggregate, FieldView, Subscriber as MarkerSubscriber};
    use tracing_subscriber::prelude::*;

    /// Sums the fields `n` of events with a text.
    struct Sum(AtomicU64);

    impl Aggregate for Sum {
        fn observe(&self, _: u64, event: FieldView<'_>) {
            if let (Some(Value::Unsigned(n)), Some(Value::Text("said"))) =
                (event.by_name("n"), event.by_name("message"))
            {
                self.0.fetch_add(n, Ordering::Relaxed);
            }
        }
    }

    /// Counts the events that it sees.
    struct CountingLayer(Arc<AtomicU64>);

    impl<S: Subscriber> Layer<S> for CountingLayer {
        fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn say(n: u64) {
        tracing::info!(target: "bridge_test", n, "said");
    }

    #[test]
    fn another_layer_sees_all_events_in_either_state() -> Result<(), Box<dyn std::error::Error>> {
        let seen = Arc::new(AtomicU64::new(0));
        let both = tracing_subscriber::registry().with(layer()).with(CountingLayer(Arc::clone(&seen)));
        tracing_core::dispatcher::with_default(&both.into(), || -> Result<(), Box<dyn std::error::Error>> {
            say(2);
            let marker = tracepoint_core::markers().find(|marker| marker.name().starts_with("bridge_test:"));
            let marker = marker.ok_or("listed once it was reached")?;
            assert!(!marker.is_on());
            let sum = Arc::new(Sum(AtomicU64::new(0)));
            let subscription = marker.subscribe(MarkerSubscriber::aggregate(sum.clone()))?;
            say(4);
            drop(subscription);
            say(8);
            assert_eq!((sum.0.load(Ordering::Relaxed), seen.load(Ordering::Relaxed)), (4, 3));
            Ok(())
        })
    }

    #[test]
    fn another_thread_switches_what_only_this_one_listens_to() -> Result<(), Box<dyn std::error::Error>> {
        let seen = Arc::new(AtomicU64::new(0));
        let scoped = tracing_subscriber::registry().with(layer()).with(CountingLayer(Arc::clone(&seen)));
        let _scope = tracing_subscriber::util::SubscriberInitExt::set_default(scoped);
        let shout = |n: u64| tracing::info!(target: "bridge_scoped", n, "said");
        shout(1);
        let marker = tracepoint_core::markers().find(|marker| marker.name().starts_with("bridge_scoped:"));
        let marker = marker.ok_or("listed once it was reached")?;
        let sum = Arc::new(Sum(AtomicU64::new(0)));
        let subscriber = MarkerSubscriber::aggregate(Arc::clone(&sum) as _);
        let subscription =
            std::thread::spawn(move || marker.subscribe(subscriber)).join().map_err(|_| "panicked")??;
        shout(2);
        std::thread::spawn(move || drop(subscription)).join().map_err(|_| "panicked")?;
        shout(4);
        assert_eq!((sum.0.load(Ordering::Relaxed), seen.load(Ordering::Relaxed)), (2, 3));
        Ok(())
    }

    /// The first two fields of the last event.
    struct Ids([AtomicU64; 2]);

    impl Aggregate for Ids {
        fn observe(&self, _: u64, event: FieldView<'_>) {
            for (index, seen) in self.0.iter().enumerate() {
                if let Some(Value::Unsigned(id)) = event.get(index) {
                    seen.store(id, Ordering::Relaxed);
                }
            }
        }
    }

    #[test]
    fn ids_differ_from_those_of_other_spans_and_parents_are_found() -> Result<(), Box<dyn std::error::Error>> {
        let alone = tracing_subscriber::registry().with(layer());
        tracing_core::dispatcher::with_default(&alone.into(), || -> Result<(), Box<dyn std::error::Error>> {
            let span = |parent: Option<&tracing::Span>| tracing::info_span!(parent: parent.and_then(tracing::Span::id), "bridge_ids");
            drop(span(None));
            let name = "tracepoint_tracing::layer::tests::bridge_ids_begin";
            let marker = tracepoint_core::markers().find(|marker| marker.name() == name).ok_or("listed")?;
            let ids = Arc::new(Ids([const { AtomicU64::new(0) }; 2]));
            let subscription = marker.subscribe(MarkerSubscriber::aggregate(Arc::clone(&ids) as _))?;
            let of = |parent| {
                let span = span(parent);
                (span, ids.0.each_ref().map(|id| id.load(Ordering::Relaxed)))
            };
            // Each span takes the thread's next number.
            let before = Begin::new(SpanId::NONE).id().get();
            let (outer, [outer_id, no_parent]) = of(None);
            let (_inner, [inner_id, parent]) = of(Some(&outer));
            assert_eq!([outer_id, no_parent, inner_id, parent], [before + 1, 0, before + 2, before + 1]);
            assert_eq!(Begin::new(SpanId::NONE).id().get(), before + 3);
            drop(subscription);
            Ok(())
        })
    }

    struct PanickingDebug;

    impl std::fmt::Debug for PanickingDebug {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            panic!("on purpose")
        }
    }

    #[test]
    fn a_panic_of_what_formats_a_value_stays_here() -> Result<(), Box<dyn std::error::Error>> {
        let alone = tracing_subscriber::registry().with(layer());
        tracing_core::dispatcher::with_default(&alone.into(), || -> Result<(), Box<dyn std::error::Error>> {
            let shout = |n: u64| tracing::info!(target: "bridge_loud", n, loud = ?PanickingDebug, "said");
            shout(1);
            let marker = tracepoint_core::markers().find(|marker| marker.name().starts_with("bridge_loud:"));
            let sum = Arc::new(Sum(AtomicU64::new(0)));
            let subscription = marker.ok_or("listed")?.subscribe(MarkerSubscriber::aggregate(Arc::clone(&sum) as _))?;
            shout(2);
            drop(subscription);
            assert_eq!(sum.0.load(Ordering::Relaxed), 0);
            Ok(())
        })
    }

    /// The fields `a` and `b` of the last event.
    struct Pair([AtomicU64; 2]);

    impl Aggregate for Pair {
        fn observe(&self, _: u64, event: FieldView<'_>) {
            for (name, seen) in ["a", "b"].iter().zip(&self.0) {
                if let Some(Value::Unsigned(n)) = event.by_name(name) {
                    seen.store(n, Ordering::Relaxed);
                }
            }
        }
    }

    #[test]
    fn values_may_come_in_any_order() -> Result<(), Box<dyn std::error::Error>> {
        let alone = tracing_subscriber::registry().with(layer());
        tracing_core::dispatcher::with_default(&alone.into(), || -> Result<(), Box<dyn std::error::Error>> {
            let span = || tracing::info_span!("bridge_order", a = tracing::field::Empty, b = tracing::field::Empty);
            span();
            let name = "tracepoint_tracing::layer::tests::bridge_order_record";
            let marker = tracepoint_core::markers().find(|marker| marker.name() == name).ok_or("listed")?;
            let pair = Arc::new(Pair([const { AtomicU64::new(0) }; 2]));
            let subscription = marker.subscribe(MarkerSubscriber::aggregate(Arc::clone(&pair) as _))?;
            let span = span();
            let fields = span.metadata().ok_or("on")?.fields();
            let [a, b] = ["a", "b"].map(|name| fields.field(name));
            let (a, b) = a.zip(b).ok_or("fields")?;
            span.record_all(&fields.value_set(&[(&b, Some(&2_u64 as &dyn tracing::Value)), (&a, Some(&1_u64))]));
            let seen = || pair.0.each_ref().map(|seen| seen.load(Ordering::Relaxed));
            assert_eq!(seen(), [1, 2]);
            // The first field is absent.
            span.record_all(&fields.value_set(&[(&b, Some(&3_u64 as &dyn tracing::Value))]));
            drop(subscription);
            assert_eq!(seen(), [1, 3]);
            Ok(())
        })
    }

    /// Counts the fields that it sees.
    struct Width(AtomicU64);

    impl Aggregate for Width {
        fn observe(&self, _: u64, event: FieldView<'_>) {
            let count = (0..64).filter(|index| event.get(*index).is_some()).count();
            self.0.store(count as u64, Ordering::Relaxed);
        }
    }

    #[test]
    fn fields_beyond_the_bound_are_neither_described_nor_recorded() -> Result<(), Box<dyn std::error::Error>> {
        let alone = tracing_subscriber::registry().with(layer());
        tracing_core::dispatcher::with_default(&alone.into(), || -> Result<(), Box<dyn std::error::Error>> {
            let wide = || {
                tracing::info!(
                    target: "bridge_wide",
                    a0 = 1, a1 = 1, a2 = 1, a3 = 1, a4 = 1, a5 = 1, a6 = 1, a7 = 1, a8 = 1, a9 = 1, b0 = 1, b1 = 1,
                    b2 = 1, b3 = 1, b4 = 1, b5 = 1, b6 = 1, b7 = 1, b8 = 1, b9 = 1, c0 = 1, c1 = 1, c2 = 1, c3 = 1,
                    c4 = 1, c5 = 1, c6 = 1, c7 = 1, c8 = 1, c9 = 1, d0 = 1, d1 = 1, d2 = 1, d3 = 1, d4 = 1,
                );
            };
            wide();
            let marker = tracepoint_core::markers().find(|marker| marker.name().starts_with("bridge_wide:"));
            let marker = marker.ok_or("listed")?;
            // The first field is the span's id.
            assert_eq!(marker.fields().len(), 1 + 32);
            let width = Arc::new(Width(AtomicU64::new(0)));
            let subscription = marker.subscribe(MarkerSubscriber::aggregate(Arc::clone(&width) as _))?;
            wide();
            drop(subscription);
            assert_eq!(width.0.load(Ordering::Relaxed), 33);
            Ok(())
        })
    }
}
