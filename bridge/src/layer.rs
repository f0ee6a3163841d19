//! The layer, and the filter in front of it, by which callsites that are off cost nothing.

use crate::callsites;
use crate::describe::Tracepoints;
use crate::fields::collect;
use crate::switching;
use std::cell::RefCell;
use tracepoint_core::clock::now;
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::subscriber::{Interest, Subscriber};
use tracing_core::{Dispatch, Event, Metadata};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, Filter};
use tracing_subscriber::registry::LookupSpan;

/// A layer whose callsites are tracepoints. It has a filter of its own, so that it neither sees what is off nor hides anything from other
/// layers.
pub fn layer<S>() -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    switching::follow();
    TracepointLayer.with_filter(Switches)
}

/// Whether the tracepoints of a callsite are on.
struct Switches;

impl<S> Filter<S> for Switches {
    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        let is_known = callsites::find(metadata).is_some();
        match callsites::register(metadata) {
            Some(tracepoints) if tracepoints.is_on() => Interest::always(),
            // Until `tracing` asks again: another thread may switch it on before `tracing` lists the callsite.
            Some(_) if !is_known => Interest::sometimes(),
            _ => Interest::never(),
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        callsites::find(metadata).is_some_and(Tracepoints::is_on)
    }
}

struct TracepointLayer;

/// When a span began, in nanoseconds on the clock of the process; kept with the span.
struct Begun(u64);

thread_local! {
    /// The spans that are entered on this thread, innermost last.
    static ENTERED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// The innermost span that is entered on this thread; 0: none, also while the thread ends.
fn current() -> u64 {
    ENTERED.try_with(|spans| spans.borrow().last().copied()).ok().flatten().unwrap_or(0)
}

/// The span that is given, or the innermost one where that is wanted.
fn parent(given: Option<&Id>, is_contextual: bool) -> u64 {
    match given {
        Some(id) => id.into_u64(),
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

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let Some(Tracepoints::Event(tracepoint)) = callsites::find(event.metadata()) else { return };
        if tracepoint.is_on() {
            let span = parent(event.parent(), event.is_contextual());
            collect(
                *tracepoint,
                event.metadata().fields().len(),
                |visitor| event.record(visitor),
                |values| tracepoint.record(&(span, values)),
            );
        }
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(Tracepoints::Span { begin, end, .. }) = callsites::find(attributes.metadata()) else { return };
        if let Some(span) = context.span(id).filter(|_| end.is_on()) {
            span.extensions_mut().replace(Begun(now()));
        }
        if begin.is_on() {
            let parent = parent(attributes.parent(), attributes.is_contextual());
            collect(
                *begin,
                attributes.metadata().fields().len(),
                |visitor| attributes.record(visitor),
                |values| begin.record(&(id.into_u64(), (parent, values))),
            );
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(metadata) = context.metadata(id) else { return };
        let Some(Tracepoints::Span { record, .. }) = callsites::find(metadata) else { return };
        if record.is_on() {
            collect(
                *record,
                metadata.fields().len(),
                |visitor| values.record(visitor),
                |values| record.record(&(id.into_u64(), values)),
            );
        }
    }

    fn on_enter(&self, id: &Id, _: Context<'_, S>) {
        // Fails while the thread ends.
        let _ = ENTERED.try_with(|spans| spans.borrow_mut().push(id.into_u64()));
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        let _ = ENTERED.try_with(|spans| {
            let mut spans = spans.borrow_mut();
            // Mostly the last one; guards can be dropped in any order.
            if let Some(at) = spans.iter().rposition(|span| *span == id.into_u64()) {
                spans.remove(at);
            }
        });
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(Tracepoints::Span { end, .. }) = callsites::find(span.metadata()) else { return };
        // A span that began while its end was off has no duration, and no end.
        if let Some(Begun(begun)) = span.extensions().get::<Begun>().filter(|_| end.is_on()) {
            end.record(&(id.into_u64(), (now().saturating_sub(*begun), ())));
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

    /// Adds up what the fields `n` of events with a text hold.
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
    struct Other(Arc<AtomicU64>);

    impl<S: Subscriber> Layer<S> for Other {
        fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn say(n: u64) {
        tracing::info!(target: "bridge_test", n, "said");
    }

    fn marker() -> Option<&'static tracepoint_core::Marker> {
        tracepoint_core::markers().find(|marker| marker.name().starts_with("bridge_test:"))
    }

    #[test]
    fn a_callsite_is_never_wanted_while_its_tracepoint_is_off() -> Result<(), Box<dyn std::error::Error>> {
        let seen = Arc::new(AtomicU64::new(0));
        let alone = Dispatch::new(tracing_subscriber::registry().with(layer()));
        let asked = |metadata| {
            let interest = alone.register_callsite(metadata);
            (interest.is_never(), interest.is_always())
        };
        let metadata = tracing_core::dispatcher::with_default(&alone, || {
            say(1);
            marker()
        });
        let marker = metadata.ok_or("listed once it was reached")?;
        assert!(!marker.is_on());

        // Beside a layer that wants everything: that one sees all events, in either state.
        let both = tracing_subscriber::registry().with(layer()).with(Other(Arc::clone(&seen)));
        tracing_core::dispatcher::with_default(&both.into(), || -> Result<(), Box<dyn std::error::Error>> {
            say(2);
            let sum = Arc::new(Sum(AtomicU64::new(0)));
            let subscription = marker.subscribe(MarkerSubscriber::aggregate(sum.clone()))?;
            say(4);
            drop(subscription);
            say(8);
            assert_eq!((sum.0.load(Ordering::Relaxed), seen.load(Ordering::Relaxed)), (4, 3));
            Ok(())
        })?;

        // What `tracing` is told of a callsite that it knows.
        let callsite = tracing::callsite!(name: "asked", kind: tracing::metadata::Kind::EVENT, target: "asked", level: tracing::Level::INFO, fields: n);
        let metadata = tracing_core::Callsite::metadata(callsite);
        assert_eq!(asked(metadata), (true, false));
        let marker = tracepoint_core::markers().find(|marker| marker.name().starts_with("asked")).ok_or("listed")?;
        let subscription = marker.subscribe(MarkerSubscriber::aggregate(Arc::new(Sum(AtomicU64::new(0)))))?;
        assert_eq!(asked(metadata), (false, true));
        drop(subscription);
        assert_eq!(asked(metadata), (true, false));
        Ok(())
    }

    #[test]
    fn another_thread_switches_what_only_this_one_listens_to() -> Result<(), Box<dyn std::error::Error>> {
        let seen = Arc::new(AtomicU64::new(0));
        let scoped = tracing_subscriber::registry().with(layer()).with(Other(Arc::clone(&seen)));
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

    struct Loud;

    impl std::fmt::Debug for Loud {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            panic!("on purpose")
        }
    }

    #[test]
    fn a_panic_of_what_formats_a_value_stays_here() -> Result<(), Box<dyn std::error::Error>> {
        let alone = tracing_subscriber::registry().with(layer());
        tracing_core::dispatcher::with_default(&alone.into(), || -> Result<(), Box<dyn std::error::Error>> {
            let shout = |n: u64| tracing::info!(target: "bridge_loud", n, loud = ?Loud, "said");
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

    /// The values of the fields `a` and `b` of the last event.
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
            // That of the first field is absent.
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
            // The span's id stands in front.
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
