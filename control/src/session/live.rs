//! The events of a running session: which it knows, and which of them are on.
//!
//! An event that was on once keeps its id, and its place in the metadata, for as long as the session runs.

use super::channels::Channels;
use super::{PlannedEvent, SessionError};
use crate::drain_thread::shared::SharedDrain;
use crate::gate::Gate;
use crate::session_dir::ProcessDir;
use crate::state;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tracepoint_core::Marker;
use tracepoint_core::channel::EventId;
use tracepoint_core::marker::{Filter, Subscriber, Subscription};
use tracepoint_sinks::{EventDescription, TraceInfo, ctf};

/// An event that the trace knows.
#[derive(Debug)]
struct Known {
    id: EventId,
    markers: Vec<&'static Marker>,
    /// What decides which of them are recorded; `None`: all are.
    gate: Option<Arc<Gate>>,
    /// One for each marker while it is on; else none.
    subscriptions: Vec<Subscription>,
}

/// The stream class of an event's channel, and its name in the trace.
type Key = (u32, String);

/// The events of a session: one that goes into several channels is one in each.
#[derive(Debug)]
pub(super) struct LiveEvents {
    trace: TraceInfo,
    /// `None`: somebody else says so.
    outputs: Option<Vec<u8>>,
    known: BTreeMap<Key, Known>,
    descriptions: Vec<EventDescription>,
    /// The ids of events that could not be made known: sinks may know them, and there is no end of tries.
    given: BTreeMap<Key, EventId>,
    /// In which channels those around state dumps are on.
    with_state: BTreeSet<u32>,
}

impl LiveEvents {
    /// None, of a trace whose outputs are listed like this.
    pub(super) const fn new(trace: TraceInfo, outputs: Option<Vec<u8>>) -> Self {
        Self {
            trace,
            outputs,
            known: BTreeMap::new(),
            descriptions: Vec::new(),
            given: BTreeMap::new(),
            with_state: BTreeSet::new(),
        }
    }

    /// The events that are known: the channel, the name, the id there.
    pub(super) fn names(&self) -> impl Iterator<Item = (u32, &str, EventId)> {
        self.known.iter().map(|((class, name), known)| (*class, name.as_str(), known.id))
    }

    /// Makes events known that are not yet: to the sinks, and to whoever reads the rings.
    pub(super) fn describe(
        &mut self,
        events: &[PlannedEvent],
        channels: &Channels,
        drain: &Arc<SharedDrain>,
        dir: Option<&ProcessDir>,
    ) -> Result<(), SessionError> {
        let first = self.descriptions.len();
        let new: Vec<&PlannedEvent> = events.iter().filter(|event| !self.known.contains_key(&key(event))).collect();
        for event in &new {
            if let Entry::Vacant(place) = self.given.entry(key(event)) {
                place.insert(channels.of(event.channel).add_event()?);
            }
        }
        let ids = new.iter().filter_map(|event| self.given.get(&key(event)).copied()).collect::<Vec<_>>();
        for (event, id) in new.into_iter().zip(ids) {
            let PlannedEvent { name, markers, gate, channel } = event;
            self.descriptions.push(EventDescription::of(markers[0], *channel, id, name.clone()));
            let (markers, gate, subscriptions) = (markers.clone(), gate.clone(), Vec::new());
            self.known.insert(key(event), Known { id, markers, gate, subscriptions });
        }
        let told = self.tell(first, channels, drain, dir);
        for event in &self.descriptions[first..] {
            let key = (event.class, event.name.clone());
            if told.is_ok() {
                self.given.remove(&key);
            } else {
                self.known.remove(&key);
            }
        }
        if told.is_err() {
            self.descriptions.truncate(first);
        }
        told
    }

    /// Tells of the descriptions from the one at `first` on.
    fn tell(
        &self,
        first: usize,
        channels: &Channels,
        drain: &Arc<SharedDrain>,
        dir: Option<&ProcessDir>,
    ) -> Result<(), SessionError> {
        let new = &self.descriptions[first..];
        if !new.is_empty() {
            let new = new.to_vec();
            drain.act(move |drain| drain.describe(&new)).map_err(SessionError::Start)?;
        }
        let metadata = || ctf::metadata(&self.trace, &channels.descriptions(), &self.descriptions);
        // At the start it is written in any case.
        match dir {
            Some(dir) if !new.is_empty() || first == 0 => Ok(dir.describe(&metadata(), self.outputs.as_deref())?),
            _ => Ok(()),
        }
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
        let on = self.known.iter().filter(|(_, known)| !known.subscriptions.is_empty()).map(|((class, _), _)| *class);
        let new: BTreeSet<u32> = on.filter(|class| !self.with_state.contains(class)).collect();
        if !new.is_empty() {
            let events: Vec<_> = new.iter().copied().flat_map(state::planned).collect();
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

    /// Switches on those of `events` that are off, and off those that are on and not among them, and gives those that stay on the gates
    /// that they have there. They are known. Whether there were any that were off.
    pub(super) fn switch_to(&mut self, events: &[PlannedEvent], channels: &Channels) -> Result<bool, SessionError> {
        let mut wanted: BTreeSet<Key> = events.iter().map(key).collect();
        for class in &self.with_state {
            wanted.extend(state::planned(*class).iter().map(key));
        }
        let before = self.set_gates(events);
        let more = match self.switch_on(&wanted, channels) {
            Ok(more) => more,
            Err(error) => {
                for (event, gate) in before {
                    self.known.entry(event).and_modify(|known| known.gate = gate);
                }
                return Err(error);
            }
        };
        self.change_gates(&before);
        self.switch_off(&wanted);
        Ok(more)
    }

    /// Notes the gates of `events`; of those that are on, and have a gate or had one, which they had.
    fn set_gates(&mut self, events: &[PlannedEvent]) -> BTreeMap<Key, Option<Arc<Gate>>> {
        let mut before = BTreeMap::new();
        for event in events {
            let Some(known) = self.known.get_mut(&key(event)) else { continue };
            let old = std::mem::replace(&mut known.gate, event.gate.clone());
            if !known.subscriptions.is_empty() && (old.is_some() || event.gate.is_some()) {
                before.insert(key(event), old);
            }
        }
        before
    }

    /// Puts the gates in place that were noted for these: events that were on before stay on all the while.
    fn change_gates(&self, noted: &BTreeMap<Key, Option<Arc<Gate>>>) {
        let changed = noted.keys().filter_map(|event| self.known.get(event));
        Subscription::filter_all(changed.flat_map(|known| {
            let filter = known.gate.clone().map(|gate| -> Arc<dyn Filter> { gate });
            known.subscriptions.iter().map(move |subscription| (subscription, filter.clone()))
        }));
    }

    /// All of them, or none if it fails. Whether there were any that were off.
    fn switch_on(&mut self, wanted: &BTreeSet<Key>, channels: &Channels) -> Result<bool, SessionError> {
        let is_off = |(event, known): &(&Key, &mut Known)| known.subscriptions.is_empty() && wanted.contains(*event);
        let mut off: Vec<(u32, &mut Known)> =
            self.known.iter_mut().filter(is_off).map(|((class, _), known)| (*class, known)).collect();
        let subscribers = off.iter().flat_map(|(class, known)| {
            let mut subscriber = Subscriber::record(Arc::clone(channels.of(*class)), known.id);
            if let Some(gate) = &known.gate {
                let gate = Arc::clone(gate);
                subscriber = subscriber.filter(gate);
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
    (event.channel, event.name.clone())
}

#[cfg(test)]
mod tests {
    use super::super::{Session, all_events};
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

    /// A disk that is full for a while does not use up the ids, and no sink is told twice.
    #[test]
    fn events_that_could_not_be_told_keep_their_ids() -> Result<(), Box<dyn std::error::Error>> {
        let mut events = all_events(tracepoint_core::markers(), &mut Vec::new());
        events.retain(|event| event.name.starts_with("live:"));
        let (good, moody) = (Moody::default(), Moody::default());
        let builder = Session::builder("live").in_memory().sink(good.clone()).sink(moody.clone());
        let mut session = builder.record(&events[..1], events.len(), Vec::new())?;
        moody.fails.store(true, Ordering::Relaxed);
        for _ in 0..5 {
            let error = session.switch(&events).expect_err("a sink does not know them").to_string();
            assert!(error.contains("be told"), "{error}");
        }
        moody.fails.store(false, Ordering::Relaxed);
        assert!(session.switch(&events)?);
        assert_eq!((good.told(), moody.told()), (vec![0, 1, 2], vec![0, 1, 2]));
        session.stop()?;
        Ok(())
    }

    /// Whoever has other sessions, too, does not wait for it; and it is told once, though it was tried again.
    #[test]
    fn a_sink_that_blocks_when_it_is_told_is_told_later() -> Result<(), Box<dyn std::error::Error>> {
        let mut events = all_events(tracepoint_core::markers(), &mut Vec::new());
        events.retain(|event| event.name.starts_with("live:"));
        let sink = Moody::default();
        let builder = Session::builder("held up").in_memory().sink(sink.clone()).patience(Duration::from_millis(20));
        let mut session = builder.record(&events[..1], events.len(), Vec::new())?;
        let held_up = sink.held_up.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..3 {
            let error = session.switch(&events).expect_err("a sink does not know them").to_string();
            assert!(error.contains("one of them blocks"), "{error}");
            assert!(session.status_in_time().is_err() && session.rotate().is_err());
        }
        drop(held_up);
        while session.switch(&events).is_err() {
            thread::yield_now();
        }
        assert_eq!(sink.told(), [0, 1, 2]);
        session.stop()?;
        Ok(())
    }
}
