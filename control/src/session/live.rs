//! The events of a running session: which it knows, and which of them are on.
//!
//! An event that was on once keeps its id, and its place in the metadata, for as long as its channel is open.

use super::SessionError;
use super::channels::Channels;
use crate::drain_thread::shared::SharedDrain;
use crate::event::PlannedEvent;
use crate::event_filter::EventFilter;
use crate::session_dir::ProcessDir;
use crate::state;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tracepoint_core::Marker;
use tracepoint_core::channel::{EventId, OpenChannel};
use tracepoint_core::marker::{Filter, Subscriber, Subscription};
use tracepoint_sinks::ctf::MetadataText;
use tracepoint_sinks::{ChannelDescription, EventDescription, TraceInfo};

/// An event that the trace knows.
#[derive(Debug)]
struct Known {
    id: EventId,
    markers: Vec<&'static Marker>,
    /// What decides which firings are recorded; `None`: all are.
    filter: Option<Arc<EventFilter>>,
    /// One for each marker while the event is on; else none.
    subscriptions: Vec<Subscription>,
}

/// The names of an event's channel and of the event in the trace.
type Key = (String, String);

/// The events of a session: one that goes into several channels is one in each.
#[derive(Debug)]
pub(super) struct LiveEvents {
    /// The list of the sinks' outputs; `None`: another process writes it.
    outputs: Option<Vec<u8>>,
    /// The metadata of the trace so far.
    metadata: String,
    /// Whether the files beside the rings have been written.
    is_described: bool,
    known: BTreeMap<Key, Known>,
    /// The ids of events that could not be described: sinks may know them, and there may be any number of attempts.
    given: BTreeMap<Key, EventId>,
    /// The channels in which the events around state dumps are on.
    with_state: BTreeSet<String>,
}

impl LiveEvents {
    /// None yet, of a trace with these channels whose outputs are listed like this.
    pub(super) fn new(trace: &TraceInfo, channels: &Channels, outputs: Option<Vec<u8>>) -> Self {
        Self {
            outputs,
            metadata: MetadataText::begin(trace, &channels.descriptions()).as_str().to_owned(),
            is_described: false,
            known: BTreeMap::new(),
            given: BTreeMap::new(),
            with_state: BTreeSet::new(),
        }
    }

    /// The events that are known: the channel, the name, the id there.
    pub(super) fn names(&self) -> impl Iterator<Item = (&str, &str, EventId)> {
        self.known.iter().map(|((channel, name), known)| (channel.as_str(), name.as_str(), known.id))
    }

    /// Describes events that are not known yet to the sinks, and to readers of the rings. Either all are known afterwards, or none of the
    /// new ones is.
    pub(super) fn describe(
        &mut self,
        events: &[PlannedEvent],
        channels: &Channels,
        drain: &Arc<SharedDrain>,
        dir: Option<&ProcessDir>,
    ) -> Result<(), SessionError> {
        let mut new = Vec::new();
        for event in events.iter().filter(|event| !self.known.contains_key(&key(event))) {
            let channel = open(channels, &event.channel)?;
            let id = match self.given.entry(key(event)) {
                Entry::Vacant(place) => *place.insert(channel.add_event()?),
                Entry::Occupied(given) => *given.get(),
            };
            new.push((event, id, EventDescription::of(event.markers[0], channel.class(), id, event.name.clone())));
        }
        let descriptions: Vec<_> = new.iter().map(|(_, _, description)| description.clone()).collect();
        let metadata = MetadataText::events(&descriptions);
        if !descriptions.is_empty() {
            drain.act(move |drain| drain.describe(&descriptions)).map_err(SessionError::Start)?;
        }
        if !new.is_empty() || !self.is_described {
            self.extend_metadata(metadata.as_str(), dir)?;
        }
        for (event, id, _) in new {
            let PlannedEvent { markers, filter, .. } = event;
            let (markers, filter, subscriptions) = (markers.clone(), filter.clone(), Vec::new());
            self.known.insert(key(event), Known { id, markers, filter, subscriptions });
            self.given.remove(&key(event));
        }
        Ok(())
    }

    /// Describes a further channel to readers of the rings.
    pub(super) fn describe_channel(
        &mut self,
        trace: &TraceInfo,
        channel: &OpenChannel,
        dir: Option<&ProcessDir>,
    ) -> Result<(), SessionError> {
        let text = MetadataText::added_channel(trace, &ChannelDescription::of(channel));
        self.extend_metadata(text.as_str(), dir)
    }

    /// Switches the events of a channel off, and forgets them: the channel is removed.
    pub(super) fn remove_channel(&mut self, name: &str) {
        let others = self.known.keys().filter(|(channel, _)| channel != name).cloned().collect();
        self.switch_off(&others);
        self.known.retain(|(channel, _), _| channel != name);
        self.given.retain(|(channel, _), _| channel != name);
        self.with_state.remove(name);
    }

    /// Replaces the list of the sinks' outputs, if this process writes it.
    pub(super) fn list_outputs(&mut self, outputs: Vec<u8>, dir: Option<&ProcessDir>) -> Result<(), SessionError> {
        if self.outputs.is_some() {
            self.outputs = Some(outputs);
            self.extend_metadata("", dir)?;
        }
        Ok(())
    }

    /// Adds to the metadata, and writes it beside the rings.
    fn extend_metadata(&mut self, text: &str, dir: Option<&ProcessDir>) -> Result<(), SessionError> {
        let metadata = format!("{}{text}", self.metadata);
        if let Some(dir) = dir {
            dir.describe(&metadata, self.outputs.as_deref())?;
        }
        (self.metadata, self.is_described) = (metadata, true);
        Ok(())
    }

    /// Switches on all that are known.
    pub(super) fn switch_all_on(&mut self, channels: &Channels) -> Result<(), SessionError> {
        let all = self.known.keys().cloned().collect();
        self.switch_on(&all, channels).map(drop)
    }

    /// Switches on the events around state dumps in each channel in which any are on, for as long as the session runs.
    pub(super) fn switch_state_on(
        &mut self,
        channels: &Channels,
        drain: &Arc<SharedDrain>,
        dir: Option<&ProcessDir>,
    ) -> Result<(), SessionError> {
        let on = self.known.iter().filter(|(_, known)| !known.subscriptions.is_empty());
        let on = on.map(|((channel, _), _)| channel).filter(|channel| !self.with_state.contains(*channel));
        let new: BTreeSet<String> = on.cloned().collect();
        if !new.is_empty() {
            let events: Vec<_> = new.iter().flat_map(|channel| state::planned(channel)).collect();
            self.describe(&events, channels, drain, dir)?;
            self.switch_on(&events.iter().map(key).collect(), channels)?;
            self.with_state.extend(new);
        }
        Ok(())
    }

    /// Switches all off, and waits until none of them is written any more.
    pub(super) fn switch_all_off(&mut self) {
        self.switch_off(&BTreeSet::new());
    }

    /// Switches on those of `events` that are off, and off those that are on and not among them, and gives those that stay on the filters
    /// that they have there. They are known. Whether there were any that were off.
    pub(super) fn switch_to(&mut self, events: &[PlannedEvent], channels: &Channels) -> Result<bool, SessionError> {
        let mut wanted: BTreeSet<Key> = events.iter().map(key).collect();
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

    /// Stores the filters of `events`; returns the former filters of those that are on and have a filter or had one.
    fn set_filters(&mut self, events: &[PlannedEvent]) -> BTreeMap<Key, Option<Arc<EventFilter>>> {
        let mut before = BTreeMap::new();
        for event in events {
            let Some(known) = self.known.get_mut(&key(event)) else { continue };
            let old = std::mem::replace(&mut known.filter, event.filter.clone());
            if !known.subscriptions.is_empty() && (old.is_some() || event.filter.is_some()) {
                before.insert(key(event), old);
            }
        }
        before
    }

    /// Gives the subscriptions of these events the stored filters. The events stay on all the while.
    fn replace_filters(&self, events: &BTreeMap<Key, Option<Arc<EventFilter>>>) {
        let changed = events.keys().filter_map(|event| self.known.get(event));
        Subscription::filter_all(changed.flat_map(|known| {
            let filter = known.filter.clone().map(|filter| -> Arc<dyn Filter> { filter });
            known.subscriptions.iter().map(move |subscription| (subscription, filter.clone()))
        }));
    }

    /// Switches on all of them, or none if it fails. Whether there were any that were off.
    fn switch_on(&mut self, wanted: &BTreeSet<Key>, channels: &Channels) -> Result<bool, SessionError> {
        let is_off = |(event, known): &(&Key, &mut Known)| known.subscriptions.is_empty() && wanted.contains(*event);
        let mut off = Vec::new();
        for ((channel, _), known) in self.known.iter_mut().filter(is_off) {
            off.push((open(channels, channel)?, known));
        }
        let subscribers = off.iter().flat_map(|(channel, known)| {
            let mut subscriber = Subscriber::record(Arc::clone(channel), known.id);
            if let Some(filter) = &known.filter {
                let filter = Arc::clone(filter);
                subscriber = subscriber.filter(filter);
            }
            known.markers.iter().map(move |marker| (*marker, subscriber.clone()))
        });
        let mut subscriptions = Subscription::start_all(subscribers)?.into_iter();
        for (_, known) in &mut off {
            known.subscriptions = subscriptions.by_ref().take(known.markers.len()).collect();
        }
        Ok(!off.is_empty())
    }

    fn switch_off(&mut self, wanted: &BTreeSet<Key>) {
        let others = self.known.iter_mut().filter(|(event, _)| !wanted.contains(*event));
        Subscription::end_all(others.flat_map(|(_, known)| std::mem::take(&mut known.subscriptions)).collect());
    }
}

fn key(event: &PlannedEvent) -> Key {
    (event.channel.clone(), event.name.clone())
}

/// The open channel that is called so.
fn open<'c>(channels: &'c Channels, name: &str) -> Result<&'c Arc<OpenChannel>, SessionError> {
    channels
        .named(name)
        .ok_or_else(|| SessionError::NoChannel { name: name.to_owned(), known: channels.names().join(", ") })
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
    use tracepoint_sinks::{NewEvents, Sink, SinkError, StreamInfo};

    tracepoint_core::define_trace! {
        provider = "live";
        first(n: u64) { n: u64 = n }
        second(n: u64) { n: u64 = n }
        third(n: u64) { n: u64 = n }
    }

    /// Writes down the ids that it is told, in a good mood, and when nobody holds it up.
    #[derive(Clone, Debug, Default)]
    struct Moody {
        fails: Arc<AtomicBool>,
        held_up: Arc<Mutex<()>>,
        told: Arc<Mutex<Vec<u16>>>,
    }

    impl Moody {
        fn told(&self) -> Vec<u16> {
            self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
        }
    }

    impl Sink for Moody {
        fn name(&self) -> String {
            "moody".to_owned()
        }

        fn describe(&mut self, new: &NewEvents<'_>) -> Result<(), SinkError> {
            let _free = self.held_up.lock().unwrap_or_else(PoisonError::into_inner);
            if self.fails.load(Ordering::Relaxed) {
                return Err(SinkError::new("be told", std::io::ErrorKind::StorageFull.into()));
            }
            self.told.lock().unwrap_or_else(PoisonError::into_inner).extend(new.events.iter().map(|event| event.id));
            Ok(())
        }

        fn packet(&mut self, _: &StreamInfo, _: &Packet<'_>) -> Result<(), SinkError> {
            Ok(())
        }
    }

    fn events() -> Vec<PlannedEvent> {
        let mut events = all_events(tracepoint_core::markers(), &mut Vec::new());
        events.retain(|event| event.name.starts_with("live:"));
        for event in &mut events {
            "channel0".clone_into(&mut event.channel);
        }
        events
    }

    fn switch(recording: &mut Recording, events: &[PlannedEvent]) -> Result<bool, SessionError> {
        recording.running_mut().expect("it runs").switch(events)
    }

    /// A disk that is full for a while does not use up the ids, and no sink is told twice.
    #[test]
    fn events_that_could_not_be_told_keep_their_ids() -> Result<(), Box<dyn std::error::Error>> {
        let events = events();
        let (good, moody) = (Moody::default(), Moody::default());
        let builder = Session::builder("live").in_memory().sink(good.clone()).sink(moody.clone());
        let mut session = builder.record(&events[..1], events.len(), Vec::new())?;
        moody.fails.store(true, Ordering::Relaxed);
        for _ in 0..5 {
            let error = switch(&mut session, &events).expect_err("a sink does not know them").to_string();
            assert!(error.contains("be told"), "{error}");
        }
        moody.fails.store(false, Ordering::Relaxed);
        assert!(switch(&mut session, &events)?);
        assert_eq!((good.told(), moody.told()), (vec![0, 1, 2], vec![0, 1, 2]));
        session.stop()?;
        Ok(())
    }

    /// Whoever has other sessions, too, does not wait for it; and it is told once, though it was tried again.
    #[test]
    fn a_sink_that_blocks_when_it_is_told_is_told_later() -> Result<(), Box<dyn std::error::Error>> {
        let events = events();
        let sink = Moody::default();
        let builder =
            Session::builder("held up").in_memory().sink(sink.clone()).sink_timeout(Duration::from_millis(20));
        let mut session = builder.record(&events[..1], events.len(), Vec::new())?;
        let held_up = sink.held_up.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..3 {
            let error = switch(&mut session, &events).expect_err("a sink does not know them").to_string();
            assert!(error.contains("one of them blocks"), "{error}");
            assert!(session.status_in_time().is_err() && session.rotate().is_err());
        }
        drop(held_up);
        while switch(&mut session, &events).is_err() {
            thread::yield_now();
        }
        assert_eq!(sink.told(), [0, 1, 2]);
        session.stop()?;
        Ok(())
    }
}
