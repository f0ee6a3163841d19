//! The marker itself.

use super::descriptor::{MarkerDescriptor, MarkerParts, ValuesType};
use super::note::Note;
use super::subscriber::{Entry, SubscriberList};
use crate::getters::getters;
use crate::key::Key;
use crate::location::Location;
use crate::probe::set::ProbeSet;
use crate::site::KeyBatch;
use std::fmt;
use std::ptr::null_mut;
use std::sync::atomic::Ordering;
use tracepoint_ring::Level;
use tracepoint_ring::channel::SoleSubscriber;
use tracepoint_ring::field::FieldDescriptor;
use tracepoint_ring::primitive::AtomicPtr;
use tracepoint_ring::rcu_pointer::RcuPointer;
use tracepoint_ring::update::{self, Garbage, UpdateGuard};

/// A marker: its description, its key and its subscribers. One static per declaration.
pub struct Marker {
    descriptor: MarkerDescriptor,
    key: &'static Key,
    /// The probes of the tracepoint whose field block this is. `None` for a hand-written marker, whose site depends on `key`.
    probes: Option<&'static ProbeSet>,
    pub(crate) note: Option<&'static Note>,
    pub(super) subscribers: RcuPointer<SubscriberList>,
    /// The subscriber of the fast path, an element of `subscribers`; null if events take the full path.
    pub(crate) sole: AtomicPtr<SoleSubscriber>,
}

impl Marker {
    /// Built by the macros only.
    #[doc(hidden)]
    pub const fn new<M: ValuesType>(parts: MarkerParts, key: &'static Key, probes: Option<&'static ProbeSet>) -> Self {
        Self {
            descriptor: MarkerDescriptor::new::<M>(parts),
            key,
            probes,
            note: None,
            subscribers: RcuPointer::null(),
            sole: AtomicPtr::new(null_mut()),
        }
    }

    /// Used by the macros only.
    #[doc(hidden)]
    #[must_use]
    pub const fn with_note(mut self, note: Option<&'static Note>) -> Self {
        self.note = note;
        self
    }

    /// The description.
    pub const fn descriptor(&self) -> &MarkerDescriptor {
        &self.descriptor
    }

    /// `provider:name`.
    pub fn full_name(&self) -> String {
        format!("{}:{}", self.provider(), self.name())
    }

    /// Returns whether this is the field block of a tracepoint, as opposed to a `trace_mark!`.
    pub const fn is_of_tracepoint(&self) -> bool {
        self.probes.is_some()
    }

    /// Returns whether the marker has a subscriber.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.key.is_on()
    }
}

getters! { Marker, &self => self.descriptor.parts;
    /// The part of the name before the colon.
    provider: &'static str,
    /// The part of the name after the colon.
    name: &'static str,
    /// The importance of the event.
    level: Level,
    /// The fields, in the order of the record.
    fields: &'static [FieldDescriptor],
    /// The format string: `"prev_pid %d next_pid %d"`.
    format: &'static str,
    /// The doc comment above the declaration; empty if there is none.
    doc: &'static str,
    /// Where it was declared.
    location: Location,
}

impl fmt::Debug for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Marker").field("name", &self.full_name()).field("is_on", &self.is_on()).finish_non_exhaustive()
    }
}

impl Marker {
    /// Returns whether there is a subscriber at the moment. The answer may be outdated when it is used.
    #[doc(hidden)]
    #[inline(always)]
    pub fn is_subscribed(&self) -> bool {
        self.subscribers.is_some()
    }

    /// Number of subscribers.
    pub fn subscriber_count(&self) -> usize {
        self.entries(&update::lock()).len()
    }

    pub(crate) fn entries(&self, _: &UpdateGuard<'_>) -> Vec<Entry> {
        // SAFETY: the update lock is held while the list is cloned, and lists are replaced under it only.
        unsafe { self.subscribers.read() }.map_or_else(Vec::new, |list| list.entries.to_vec())
    }

    pub(crate) fn publish(&self, entries: Vec<Entry>, locked: &UpdateGuard<'_>) -> Option<Garbage> {
        let next = (!entries.is_empty()).then(|| Box::new(SubscriberList::new(entries)));
        let old = self.subscribers.replace(next);
        self.choose_path(locked);
        old.map(|old| Box::new(old) as Garbage)
    }

    /// Selects fast path or full path. Called after each change of the subscribers or of the tracepoint's probes, before the
    /// grace period of the replaced list.
    pub(crate) fn choose_path(&self, _: &UpdateGuard<'_>) {
        // SAFETY: the update lock is held, under which alone lists are replaced.
        let sole = unsafe { self.subscribers.read() }.and_then(|list| list.sole.as_ref());
        let no_probes = self.probes.is_none_or(|probes| !probes.has_probes());
        let sole = sole.filter(|_| no_probes).map_or(null_mut(), |sole| std::ptr::from_ref(sole).cast_mut());
        // P1: pairs with the load in `Marker::sole_subscriber`.
        self.sole.swap(sole, Ordering::AcqRel);
    }

    pub(crate) fn add_keys(&self, batch: &mut KeyBatch<'_>) {
        batch.add(self.key);
        if let Some(probes) = self.probes {
            batch.add(probes.key());
        }
    }
}

/// The type of a marker. Implemented by the macros.
pub trait MarkerType: ValuesType {
    /// The static of the marker.
    #[doc(hidden)]
    fn marker() -> &'static Marker;
}
