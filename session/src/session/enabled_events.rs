//! The events of a running session: those described in the trace, and which of them are enabled.
//!
//! An event that was enabled once keeps its id, and its place in the metadata, until its channel is closed.

use super::SessionError;
use super::channels::Channels;
use super::rings::RingStore;
use crate::drain_thread::shared::SharedDrain;
use crate::event::PlannedEvent;
use crate::state;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use tracepoint_core::Marker;
use tracepoint_core::channel::{EventId, OpenChannel, TooManyEvents};
use tracepoint_core::marker::{Filter, Subscriber, Subscription};
use tracepoint_session_spec::event_filter::EventFilter;
use tracepoint_sinks::ctf::MetadataText;
use tracepoint_sinks::{ChannelDescription, EventDescription, TraceInfo};

/// An event in the trace's metadata.
#[derive(Debug)]
struct KnownEvent {
    id: EventId,
    markers: Vec<&'static Marker>,
    /// Decides which firings are recorded; `None` records all.
    filter: Option<Arc<EventFilter>>,
    /// One for each marker while the event is enabled, else none.
    subscriptions: Vec<(&'static Marker, Subscription)>,
}

/// An event for which its channel has no id.
#[derive(Debug)]
pub(super) struct LeftOut {
    pub(super) event: String,
    pub(super) reason: TooManyEvents,
}

/// The name of an event's channel, and the event's name in the trace.
type Key = (String, String);

/// The events of a session. An event that goes into several channels is listed once for each.
#[derive(Debug)]
pub(super) struct EnabledEvents {
    /// The list of the sinks' outputs; `None` if another process writes it.
    outputs: Option<Vec<u8>>,
    /// The metadata of the trace so far.
    metadata: String,
    /// True if the description next to the rings has been written.
    is_described: bool,
    known: BTreeMap<Key, KnownEvent>,
    /// Ids of events whose description failed. The next attempt reuses them: some sinks may know them already.
    given: HashMap<Key, EventId>,
    /// The channels in which the events that enclose state dumps are enabled.
    with_state: Vec<String>,
}

impl EnabledEvents {
    /// Creates the events of a trace with these channels and this list of outputs.
    pub(super) fn new(trace: &TraceInfo, channels: &Channels, outputs: Option<Vec<u8>>) -> Self {
        Self {
            outputs,
            metadata: MetadataText::begin(trace, &channels.descriptions()).as_str().to_owned(),
            is_described: false,
            known: BTreeMap::new(),
            given: HashMap::new(),
            with_state: Vec::new(),
        }
    }

    /// The known events: channel, name, and id in the channel.
    pub(super) fn names(&self) -> impl Iterator<Item = (&str, &str, EventId)> {
        self.known.iter().map(|((channel, name), known)| (channel.as_str(), name.as_str(), known.id))
    }

    /// Describes new events to the sinks and to readers of the rings. Afterwards either all or none of the new events are known, except the
    /// returned ones, for which their channels have no ids. Known events may get further markers, which are enabled by the next switch.
    pub(super) fn describe(
        &mut self,
        events: &[PlannedEvent],
        channels: &Channels,
        drain: &Arc<SharedDrain>,
        store: &RingStore,
    ) -> Result<Vec<LeftOut>, SessionError> {
        let (mut new, mut left_out) = (Vec::new(), Vec::new());
        for event in events.iter().filter(|event| !self.known.contains_key(&key(event))) {
            let channel = open(channels, &event.channel)?;
            let id = match self.given.entry(key(event)) {
                Entry::Vacant(place) => match channel.add_event() {
                    Ok(id) => *place.insert(id),
                    Err(reason) => {
                        left_out.push(LeftOut { event: event.name.clone(), reason });
                        continue;
                    }
                },
                Entry::Occupied(given) => *given.get(),
            };
            new.push((event, id, described(event, channel.class(), id)));
        }
        let descriptions: Vec<_> = new.iter().map(|(_, _, description)| description.clone()).collect();
        let metadata = MetadataText::events(&descriptions);
        if !descriptions.is_empty() {
            drain.act(move |drain| drain.describe(&descriptions)).map_err(SessionError::Start)?;
        }
        if !new.is_empty() || !self.is_described {
            self.extend_metadata(metadata.as_str(), store)?;
        }
        for (event, id, _) in new {
            let PlannedEvent { markers, filter, .. } = event;
            let (markers, filter, subscriptions) = (markers.clone(), filter.clone(), Vec::new());
            self.known.insert(key(event), KnownEvent { id, markers, filter, subscriptions });
            self.given.remove(&key(event));
        }
        for event in events {
            self.known.entry(key(event)).and_modify(|known| known.markers.clone_from(&event.markers));
        }
        Ok(left_out)
    }

    /// Describes a new channel, and modules in addition to those of the trace, to readers of the rings.
    pub(super) fn describe_channel(
        &mut self,
        trace: &TraceInfo,
        channel: &OpenChannel,
        modules: &[String],
        store: &RingStore,
    ) -> Result<(), SessionError> {
        let text = MetadataText::added_channel(trace, &ChannelDescription::of(channel), modules);
        self.extend_metadata(text.as_str(), store)
    }

    /// Disables and forgets the events of a removed channel.
    pub(super) fn remove_channel(&mut self, name: &str) {
        let others = self.known.keys().filter(|(channel, _)| channel != name).cloned().collect();
        self.switch_off(&others);
        self.known.retain(|(channel, _), _| channel != name);
        self.given.retain(|(channel, _), _| channel != name);
        self.with_state.retain(|channel| channel != name);
    }

    /// Replaces the list of the sinks' outputs, if this process writes it.
    pub(super) fn list_outputs(&mut self, outputs: Vec<u8>, store: &RingStore) -> Result<(), SessionError> {
        if self.outputs.is_some() {
            self.outputs = Some(outputs);
            self.extend_metadata("", store)?;
        }
        Ok(())
    }

    /// Appends to the metadata, and writes it next to the rings.
    fn extend_metadata(&mut self, text: &str, store: &RingStore) -> Result<(), SessionError> {
        let metadata = format!("{}{text}", self.metadata);
        store.describe(&metadata, self.outputs.as_deref())?;
        (self.metadata, self.is_described) = (metadata, true);
        Ok(())
    }

    /// Enables all known events.
    pub(super) fn switch_all_on(&mut self, channels: &Channels) -> Result<(), SessionError> {
        let all = self.known.keys().cloned().collect();
        self.switch_on(&all, channels).map(drop)
    }

    /// Enables the events that enclose state dumps in each channel with enabled events, until the session ends.
    pub(super) fn switch_state_on(
        &mut self,
        channels: &Channels,
        drain: &Arc<SharedDrain>,
        store: &RingStore,
    ) -> Result<(), SessionError> {
        let on = self.known.iter().filter(|(_, known)| !known.subscriptions.is_empty());
        let on = on.map(|((channel, _), _)| channel).filter(|channel| !self.with_state.contains(channel));
        let mut new: Vec<String> = on.cloned().collect();
        // The events are sorted by channel.
        new.dedup();
        if !new.is_empty() {
            let events: Vec<_> = new.iter().flat_map(|channel| state::planned(channel)).collect();
            if let Some(event) = self.describe(&events, channels, drain, store)?.first() {
                return Err(event.reason.into());
            }
            self.switch_on(&events.iter().map(key).collect(), channels)?;
            self.with_state.extend(new);
        }
        Ok(())
    }

    /// Disables all events, and waits until none of them is being written.
    pub(super) fn switch_all_off(&mut self) {
        self.switch_off(&HashSet::new());
    }

    /// Enables exactly those of `events` that are known, and updates the filters of events that stay enabled. Returns whether it enabled
    /// further events.
    pub(super) fn switch_to(&mut self, events: &[PlannedEvent], channels: &Channels) -> Result<bool, SessionError> {
        let mut wanted: HashSet<Key> = events.iter().map(key).collect();
        for channel in &self.with_state {
            wanted.extend(state::planned(channel).iter().map(key));
        }
        let before = self.set_filters(events);
        let more = match self.switch_on(&wanted, channels) {
            Ok(more) => more,
            Err(error) => {
                for (event, filter) in before {
                    self.known.entry(event).and_modify(|known| known.filter = filter);
                }
                return Err(error);
            }
        };
        self.replace_filters(&before);
        self.switch_off(&wanted);
        Ok(more)
    }

    /// Stores the filters of `events`; returns the former filters of enabled events that have a filter or had one.
    fn set_filters(&mut self, events: &[PlannedEvent]) -> Vec<(Key, Option<Arc<EventFilter>>)> {
        let mut before = Vec::new();
        for event in events {
            let Some(known) = self.known.get_mut(&key(event)) else { continue };
            let old = std::mem::replace(&mut known.filter, event.filter.clone());
            if !known.subscriptions.is_empty() && (old.is_some() || event.filter.is_some()) {
                before.push((key(event), old));
            }
        }
        before
    }

    /// Gives the subscriptions of these events the stored filters. The events stay enabled meanwhile.
    fn replace_filters(&self, events: &[(Key, Option<Arc<EventFilter>>)]) {
        let changed = events.iter().filter_map(|(event, _)| self.known.get(event));
        Subscription::filter_all(changed.flat_map(|known| {
            let filter = known.filter.clone().map(|filter| -> Arc<dyn Filter> { filter });
            known.subscriptions.iter().map(move |(_, subscription)| (subscription, filter.clone()))
        }));
    }

    /// Enables all events in `wanted`, with all their markers; none on an error. Returns whether any of them was disabled before.
    fn switch_on(&mut self, wanted: &HashSet<Key>, channels: &Channels) -> Result<bool, SessionError> {
        let mut off = Vec::new();
        for ((channel, _), known) in self.known.iter_mut().filter(|(event, _)| wanted.contains(*event)) {
            let is_off =
                |marker: &&'static Marker| !known.subscriptions.iter().any(|(on, _)| std::ptr::eq(*on, *marker));
            let markers: Vec<_> = known.markers.iter().copied().filter(is_off).collect();
            if !markers.is_empty() {
                off.push((open(channels, channel)?, known, markers));
            }
        }
        let subscribers = off.iter().flat_map(|(channel, known, markers)| {
            let mut subscriber = Subscriber::record(Arc::clone(channel), known.id);
            if let Some(filter) = &known.filter {
                let filter = Arc::clone(filter);
                subscriber = subscriber.filter(filter);
            }
            markers.iter().map(move |marker| (*marker, subscriber.clone()))
        });
        let mut subscriptions = Subscription::start_all(subscribers)?.into_iter();
        let mut has_more = false;
        for (_, known, markers) in off {
            has_more |= known.subscriptions.is_empty();
            known.subscriptions.extend(markers.into_iter().zip(subscriptions.by_ref()));
        }
        Ok(has_more)
    }

    fn switch_off(&mut self, wanted: &HashSet<Key>) {
        let others = self.known.iter_mut().filter(|(event, _)| !wanted.contains(*event));
        let ended = others.flat_map(|(_, known)| std::mem::take(&mut known.subscriptions));
        Subscription::end_all(ended.map(|(_, subscription)| subscription).collect());
    }
}

fn key(event: &PlannedEvent) -> Key {
    (event.channel.clone(), event.name.clone())
}

/// The open channel called `name`.
fn open<'c>(channels: &'c Channels, name: &str) -> Result<&'c Arc<OpenChannel>, SessionError> {
    channels
        .named(name)
        .ok_or_else(|| SessionError::NoChannel { name: name.to_owned(), known: channels.names().join(", ") })
}

/// Describes an event, as the channel of stream class `class` records it.
fn described(event: &PlannedEvent, class: u32, id: EventId) -> EventDescription {
    let marker = event.markers[0];
    EventDescription {
        class,
        id: id.get(),
        name: event.name.clone(),
        level: marker.level(),
        fields: marker.fields(),
        doc: marker.doc(),
        format: marker.format(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Recording, Session, SessionError};
    use crate::event::{PlannedEvent, all_events};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex, PoisonError};
    use std::thread;
    use std::time::Duration;
    use tracepoint_core::channel::Packet;
    use tracepoint_core::field::{Base, ByteOrder, FieldDescriptor, FieldType, IntegerType};
    use tracepoint_core::internal::{MarkerParts, RuntimeMarker, ValuesType, update_lock};
    use tracepoint_core::{Level, Location};
    use tracepoint_sinks::{NewEvents, Sink, SinkError, StreamInfo};

    tracepoint_core::define_trace! {
        provider = "live";
        first(n: u64) { n: u64 = n }
        second(n: u64) { n: u64 = n }
        third(n: u64) { n: u64 = n }
    }

    tracepoint_core::define_trace! {
        provider = "full";
        one(n: u64) { n: u64 = n }
        two(n: u64) { n: u64 = n }
        zero(n: u64) { n: u64 = n }
    }

    /// Collects the ids of the events that are described to it. Can be made to fail, or to block.
    #[derive(Clone, Debug, Default)]
    struct IdSink {
        fails: Arc<AtomicBool>,
        /// True once the sink was called while it had to block: its drain is locked from then on.
        is_reached: Arc<AtomicBool>,
        blocked: Arc<Mutex<()>>,
        ids: Arc<Mutex<Vec<u16>>>,
    }

    impl IdSink {
        fn ids(&self) -> Vec<u16> {
            self.ids.lock().unwrap_or_else(PoisonError::into_inner).clone()
        }
    }

    impl Sink for IdSink {
        fn name(&self) -> String {
            "ids".to_owned()
        }

        fn describe(&mut self, new: &NewEvents<'_>) -> Result<(), SinkError> {
            self.is_reached.store(true, Ordering::Relaxed);
            let _free = self.blocked.lock().unwrap_or_else(PoisonError::into_inner);
            if self.fails.load(Ordering::Relaxed) {
                return Err(SinkError::new("describe events", std::io::ErrorKind::StorageFull.into()));
            }
            self.ids.lock().unwrap_or_else(PoisonError::into_inner).extend(new.events.iter().map(|event| event.id));
            Ok(())
        }

        fn packet(&mut self, _: &StreamInfo, _: &Packet<'_>) -> Result<(), SinkError> {
            Ok(())
        }
    }

    fn events() -> Vec<PlannedEvent> {
        events_of("live:")
    }

    fn events_of(provider: &str) -> Vec<PlannedEvent> {
        let mut events = all_events(tracepoint_core::markers(), &mut Vec::new());
        events.retain(|event| event.name.starts_with(provider));
        for event in &mut events {
            "channel0".clone_into(&mut event.channel);
        }
        events
    }

    fn switch(recording: &mut Recording, events: &[PlannedEvent]) -> Result<bool, SessionError> {
        let mut notices = Vec::new();
        let (more, described) = recording.parts_mut().expect("it runs").switch(events, &mut notices)?;
        described.map(|()| more)
    }

    enum Number {}

    impl ValuesType for Number {
        type Values<'a> = (u64, ());
    }

    /// Creates a marker `late:callsite` that is known from now on, at this line of a file.
    fn late(field: &'static str, line: u32) -> RuntimeMarker<Number> {
        let integer = IntegerType { bits: 64, signed: false, base: Base::Decimal, order: ByteOrder::Little };
        let fields = Box::leak(Box::new([FieldDescriptor { name: field, ty: FieldType::Integer(integer), doc: "" }]));
        let location = Location { package: "", version: "", module: "", file: "late.rs", line };
        let parts = MarkerParts {
            provider: "late",
            name: "callsite",
            level: Level::Info,
            fields,
            format: "",
            doc: "",
            location,
        };
        RuntimeMarker::register(parts, &update_lock()).expect("there are few")
    }

    /// Markers with the same fields are the same event; others get a number, even if they are declared before it.
    #[test]
    fn later_markers_are_recorded_beside_those_that_are_known() -> Result<(), Box<dyn std::error::Error>> {
        let first = late("n", 20);
        let builder = Session::builder("late").in_memory().sink(IdSink::default());
        let mut session = builder.record(&events_of("late:"), 4)?;
        let (same, other) = (late("n", 10), late("m", 5));
        assert!(switch(&mut session, &events_of("late:"))?, "a further event");
        let more = late("m", 1);
        assert!(!switch(&mut session, &events_of("late:"))?, "a further marker");
        for (marker, times) in [(first, 1), (same, 2), (other, 4), (more, 8)] {
            (0..times).for_each(|n| marker.record(&(n, ())));
        }
        let summary = session.stop()?;
        let recorded: Vec<_> = summary.events().iter().map(|event| (&*event.name, event.recorded)).collect();
        assert_eq!(recorded, [("late:callsite", 3), ("late:callsite#2", 12)]);
        Ok(())
    }

    /// Repeated attempts on a full disk do not use up ids, and describe an event to each sink only once.
    #[test]
    fn events_whose_description_failed_keep_their_ids() -> Result<(), Box<dyn std::error::Error>> {
        let events = events();
        let (good, failing) = (IdSink::default(), IdSink::default());
        let builder = Session::builder("live").in_memory().sink(good.clone()).sink(failing.clone());
        let mut session = builder.record(&events[..1], events.len())?;
        failing.fails.store(true, Ordering::Relaxed);
        for _ in 0..5 {
            let error = switch(&mut session, &events).expect_err("a sink does not know them").to_string();
            assert!(error.contains("describe events"), "{error}");
        }
        failing.fails.store(false, Ordering::Relaxed);
        assert!(switch(&mut session, &events)?);
        assert_eq!((good.ids(), failing.ids()), (vec![0, 1, 2], vec![0, 1, 2]));
        session.stop()?;
        Ok(())
    }

    /// Events without an id are left out, and known events follow the rules.
    #[test]
    fn events_beyond_the_ids_are_left_out() -> Result<(), Box<dyn std::error::Error>> {
        let events = events_of("full:");
        let builder = Session::builder("full").in_memory().sink(IdSink::default());
        let mut session = builder.record(&events[..1], 2)?;
        let mut left_out = |events: &[PlannedEvent]| -> Result<String, SessionError> {
            let mut notices = Vec::new();
            let (_, described) = session.parts_mut().expect("it runs").switch(events, &mut notices)?;
            described.map(|()| notices.iter().map(ToString::to_string).collect())
        };
        let are_on = || events.iter().map(|event| event.markers[0].is_on()).collect::<Vec<_>>();
        let notice = left_out(&events)?;
        assert!(notice.starts_with("full:zero is left out: the channel was opened for 2 events"), "{notice}");
        assert_eq!(are_on(), [true, true, false]);
        let notice = left_out(&events[1..])?;
        assert!(notice.starts_with("full:zero is left out"), "{notice}");
        assert_eq!(are_on(), [false, true, false]);
        session.stop()?;
        Ok(())
    }

    /// The caller does not wait for a blocking sink; the sink gets each event once in spite of repeated attempts.
    #[test]
    fn a_blocked_sink_gets_descriptions_later() -> Result<(), Box<dyn std::error::Error>> {
        let events = events();
        let sink = IdSink::default();
        let mut builder = Session::builder("blocked").in_memory().sink(sink.clone());
        builder.settings().sink_timeout = Some(Duration::from_millis(20));
        let mut session = builder.record(&events[..1], events.len())?;
        let blocked = sink.blocked.lock().unwrap_or_else(PoisonError::into_inner);
        sink.is_reached.store(false, Ordering::Relaxed);
        for _ in 0..3 {
            let error = switch(&mut session, &events).expect_err("a sink does not know them").to_string();
            assert!(error.contains("one of them blocks"), "{error}");
            // The thread that calls the sink may start after the caller's timeout, and holds no lock until then.
            while !sink.is_reached.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            assert!(session.status_in_time().is_err() && session.shared().rotate().is_err());
        }
        drop(blocked);
        while switch(&mut session, &events).is_err() {
            thread::yield_now();
        }
        assert_eq!(sink.ids(), [0, 1, 2]);
        session.stop()?;
        Ok(())
    }
}
