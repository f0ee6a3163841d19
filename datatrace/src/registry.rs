//! A list of open objects in the order of their creation, each with an optional name and instance.

use crate::error::Error;
use parking_lot::Mutex;
use std::sync::{Arc, Weak};

/// The list. Its lock is never held while an object is closed or dropped, because a close function may look up objects.
#[derive(Debug)]
pub(crate) struct Registry<T>(Mutex<List<T>>);

#[derive(Debug)]
struct List<T> {
    next_id: u64,
    entries: Vec<Entry<T>>,
}

#[derive(Debug)]
struct Entry<T> {
    id: u64,
    names: Option<Names>,
    /// Dangles until the object is created.
    object: Weak<T>,
    kept: Option<Arc<T>>,
}

#[derive(Debug, PartialEq, Eq)]
struct Names {
    name: String,
    instance: Option<String>,
}

impl<T> Registry<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(List { next_id: 0, entries: Vec::new() }))
    }

    /// The first object with this name, and with this instance if one is given.
    pub(crate) fn find(&self, name: &str, instance: Option<&str>) -> Option<Arc<T>> {
        let matches =
            |names: &Names| names.name == name && (instance.is_none() || names.instance.as_deref() == instance);
        let list = self.0.lock();
        let mut found = list.entries.iter().filter(|entry| entry.names.as_ref().is_some_and(matches));
        found.find_map(|entry| entry.object.upgrade())
    }

    /// The first object.
    pub(crate) fn first(&self) -> Option<Arc<T>> {
        self.0.lock().entries.iter().find_map(|entry| entry.object.upgrade())
    }

    /// All objects.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        self.0.lock().entries.iter().filter_map(|entry| entry.object.upgrade()).collect()
    }

    /// Reserves the last place of the list for an object that is being created, and returns its id.
    ///
    /// # Errors
    ///
    /// [`Error::Duplicate`] if the name and instance are taken.
    pub(crate) fn reserve(&self, names: Option<(&str, Option<&str>)>) -> Result<u64, Error> {
        let names = names.map(|(name, instance)| Names { name: name.into(), instance: instance.map(Into::into) });
        let mut list = self.0.lock();
        if let Some(Names { name, instance }) = &names
            && list.entries.iter().any(|entry| entry.names == names)
        {
            let name = instance.as_ref().map_or_else(|| name.clone(), |instance| format!("{name}_{instance}"));
            return Err(Error::Duplicate(name));
        }
        let id = list.next_id;
        list.next_id += 1;
        list.entries.push(Entry { id, names, object: Weak::new(), kept: None });
        Ok(id)
    }

    /// Puts a created object into the place reserved for `id`.
    pub(crate) fn enter(&self, id: u64, object: &Arc<T>) {
        self.with(id, |entry| entry.object = Arc::downgrade(object));
    }

    /// Keeps the object open until it is removed.
    pub(crate) fn keep(&self, id: u64, object: &Arc<T>) {
        self.with(id, |entry| entry.kept = Some(Arc::clone(object)));
    }

    /// Removes the object.
    pub(crate) fn remove(&self, id: u64) {
        let removed = {
            let mut list = self.0.lock();
            let place = list.entries.iter().position(|entry| entry.id == id);
            place.map(|place| list.entries.remove(place))
        };
        // Drop after the lock is released: this may drop the last `Arc`, and so close the object.
        drop(removed);
    }

    fn with(&self, id: u64, change: impl FnOnce(&mut Entry<T>)) {
        if let Some(entry) = self.0.lock().entries.iter_mut().find(|entry| entry.id == id) {
            change(entry);
        }
    }
}
