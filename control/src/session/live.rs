//! The events of a running session: which it knows, and which of them are on.
//!
//! An event that was on once keeps its id, and its place in the metadata, for as long as the session runs.

use super::{PlannedEvent, SessionError};
use crate::gate::Gate;
use crate::session_dir::ProcessDir;
use crate::state;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use tracepoint::Marker;
use tracepoint::channel::{EventId, OpenChannel};
use tracepoint::marker::{Filter, Subscriber, Subscription};
use tracepoint_sinks::{ChannelDescription, Drain, EventDescription, TraceInfo, ctf};

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

/// The events of a session, by their names in the trace.
#[derive(Debug)]
pub(super) struct LiveEvents {
    trace: TraceInfo,
    outputs: Vec<u8>,
    known: BTreeMap<String, Known>,
    descriptions: Vec<EventDescription>,
    /// Whether those around state dumps are on.
    has_state: bool,
}

impl LiveEvents {
    /// None, of a trace whose outputs are listed like this.
    pub(super) const fn new(trace: TraceInfo, outputs: Vec<u8>) -> Self {
        Self { trace, outputs, known: BTreeMap::new(), descriptions: Vec::new(), has_state: false }
    }

    /// The events that are known, and their ids.
    pub(super) fn names(&self) -> impl Iterator<Item = (&str, EventId)> {
        self.known.iter().map(|(name, known)| (name.as_str(), known.id))
    }

    /// Makes events known that are not yet: to the sinks, and to whoever reads the rings.
    pub(super) fn describe(
        &mut self,
        events: &[PlannedEvent],
        channel: &OpenChannel,
        drain: &Mutex<Drain>,
        dir: Option<&ProcessDir>,
    ) -> Result<(), SessionError> {
        let first = self.descriptions.len();
        let new: Vec<&PlannedEvent> = events.iter().filter(|event| !self.known.contains_key(&event.name)).collect();
        // All of their ids, or none is known.
        let ids = new.iter().map(|_| channel.add_event()).collect::<Result<Vec<_>, _>>()?;
        for (PlannedEvent { name, markers, gate }, id) in new.into_iter().zip(ids) {
            self.descriptions.push(EventDescription::of(markers[0], channel.class(), id, name.clone()));
            let (markers, gate, subscriptions) = (markers.clone(), gate.clone(), Vec::new());
            self.known.insert(name.clone(), Known { id, markers, gate, subscriptions });
        }
        let told = self.tell(first, channel, drain, dir);
        if told.is_err() {
            // Their ids are lost with them: sinks may know them.
            for event in self.descriptions.drain(first..) {
                self.known.remove(&event.name);
            }
        }
        told
    }

    /// Tells of the descriptions from the one at `first` on.
    fn tell(
        &self,
        first: usize,
        channel: &OpenChannel,
        drain: &Mutex<Drain>,
        dir: Option<&ProcessDir>,
    ) -> Result<(), SessionError> {
        let new = &self.descriptions[first..];
        if !new.is_empty() {
            let mut drain = drain.lock().unwrap_or_else(PoisonError::into_inner);
            drain.describe(new).map_err(SessionError::Start)?;
        }
        let metadata = || ctf::metadata(&self.trace, &[ChannelDescription::of(channel)], &self.descriptions);
        // At the start it is written in any case.
        match dir {
            Some(dir) if !new.is_empty() || first == 0 => Ok(dir.describe(&metadata(), &self.outputs)?),
            _ => Ok(()),
        }
    }

    /// Switches on all that are known.
    pub(super) fn switch_all_on(&mut self, channel: &Arc<OpenChannel>) -> Result<(), SessionError> {
        let names = self.known.keys().cloned().collect();
        self.switch_on(&names, channel).map(drop)
    }

    /// Switches on the events around state dumps, for as long as the session runs.
    pub(super) fn switch_state_on(
        &mut self,
        channel: &Arc<OpenChannel>,
        drain: &Mutex<Drain>,
        dir: Option<&ProcessDir>,
    ) -> Result<(), SessionError> {
        if !self.has_state {
            let events = state::planned();
            self.describe(&events, channel, drain, dir)?;
            self.switch_on(&events.into_iter().map(|event| event.name).collect(), channel)?;
            self.has_state = true;
        }
        Ok(())
    }

    /// Switches all off, and waits until none of them is written any more.
    pub(super) fn switch_all_off(&mut self) {
        self.switch_off(&BTreeSet::new());
    }

    /// Switches on those of `events` that are off, and off those that are on and not among them, and gives those that stay on the gates
    /// that they have there. They are known. Whether there were any that were off.
    pub(super) fn switch_to(
        &mut self,
        events: &[PlannedEvent],
        channel: &Arc<OpenChannel>,
    ) -> Result<bool, SessionError> {
        let mut wanted: BTreeSet<String> = events.iter().map(|event| event.name.clone()).collect();
        if self.has_state {
            wanted.extend(state::planned().into_iter().map(|event| event.name));
        }
        let before = self.set_gates(events);
        let more = match self.switch_on(&wanted, channel) {
            Ok(more) => more,
            Err(error) => {
                for (name, gate) in before {
                    self.known.entry(name).and_modify(|known| known.gate = gate);
                }
                return Err(error);
            }
        };
        self.change_gates(&before);
        self.switch_off(&wanted);
        Ok(more)
    }

    /// Notes the gates of `events`; of those that are on, and have a gate or had one, which they had.
    fn set_gates(&mut self, events: &[PlannedEvent]) -> BTreeMap<String, Option<Arc<Gate>>> {
        let mut before = BTreeMap::new();
        for PlannedEvent { name, gate, .. } in events {
            let Some(known) = self.known.get_mut(name) else { continue };
            let old = std::mem::replace(&mut known.gate, gate.clone());
            if !known.subscriptions.is_empty() && (old.is_some() || gate.is_some()) {
                before.insert(name.clone(), old);
            }
        }
        before
    }

    /// Puts the gates in place that were noted for these: events that were on before stay on all the while.
    fn change_gates(&self, noted: &BTreeMap<String, Option<Arc<Gate>>>) {
        let changed = noted.keys().filter_map(|name| self.known.get(name));
        Subscription::filter_all(changed.flat_map(|known| {
            let filter = known.gate.clone().map(|gate| -> Arc<dyn Filter> { gate });
            known.subscriptions.iter().map(move |subscription| (subscription, filter.clone()))
        }));
    }

    /// All of them, or none if it fails. Whether there were any that were off.
    fn switch_on(&mut self, wanted: &BTreeSet<String>, channel: &Arc<OpenChannel>) -> Result<bool, SessionError> {
        let is_off = |(name, known): &(&String, &mut Known)| known.subscriptions.is_empty() && wanted.contains(*name);
        let mut off: Vec<&mut Known> = self.known.iter_mut().filter(is_off).map(|(_, known)| known).collect();
        let subscribers = off.iter().flat_map(|known| {
            let mut subscriber = Subscriber::record(Arc::clone(channel), known.id);
            if let Some(gate) = &known.gate {
                let gate = Arc::clone(gate);
                subscriber = subscriber.filter(gate);
            }
            known.markers.iter().map(move |marker| (*marker, subscriber.clone()))
        });
        let mut subscriptions = Subscription::start_all(subscribers)?.into_iter();
        for known in &mut off {
            known.subscriptions = subscriptions.by_ref().take(known.markers.len()).collect();
        }
        Ok(!off.is_empty())
    }

    fn switch_off(&mut self, wanted: &BTreeSet<String>) {
        let others = self.known.iter_mut().filter(|(name, _)| !wanted.contains(*name));
        Subscription::end_all(others.flat_map(|(_, known)| std::mem::take(&mut known.subscriptions)).collect());
    }
}
