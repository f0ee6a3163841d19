//! The process-wide list of open trace objects, in the order in which they were made.

use crate::error::{CloseAllError, Error};
use crate::object::TraceObject;
use parking_lot::Mutex;
use std::sync::{Arc, Weak};

/// Never held while an object is closed or dropped: its close function may look things up here.
static LIST: Mutex<List> = Mutex::new(List { next: 0, entries: Vec::new() });

struct List {
    next: u64,
    entries: Vec<ListEntry>,
}

struct ListEntry {
    id: u64,
    names: Option<Names>,
    /// Dangles until the object is made.
    object: Weak<TraceObject>,
    kept: Option<Arc<TraceObject>>,
}

struct Names {
    name: String,
    instance: Option<String>,
}

/// The open trace object that was made with `name`; of several instances the one that was made first. The original's
/// `dtGetTraceObj`.
pub fn get_trace_object(name: &str) -> Option<Arc<TraceObject>> {
    find(|names| names.name == name)
}

/// The open trace object that was made with `name` and `instance`.
pub fn get_trace_object_instance(name: &str, instance: &str) -> Option<Arc<TraceObject>> {
    find(|names| names.name == name && names.instance.as_deref() == Some(instance))
}

/// The first open trace object of the list. The original's `dtGetTopTraceObj`.
pub fn top_trace_object() -> Option<Arc<TraceObject>> {
    LIST.lock().entries.iter().find_map(|entry| entry.object.upgrade())
}

/// All open trace objects in the order in which they were made: what the original reached by `dtGetTopTraceObj` and `next`.
pub fn trace_objects() -> Vec<Arc<TraceObject>> {
    LIST.lock().entries.iter().filter_map(|entry| entry.object.upgrade()).collect()
}

/// Closes all trace objects that are open, in the order of the list. The original's `dtCloseAll`, to be called at the end of a program.
/// Objects that a close function makes stay open.
///
/// # Errors
///
/// Tells of those that could not be written in full; the others are closed all the same.
pub fn close_all() -> Result<(), CloseAllError> {
    let mut failures = Vec::new();
    for object in trace_objects() {
        match object.close() {
            // By another thread meanwhile.
            Ok(()) | Err(Error::Closed { .. }) => {}
            Err(error) => failures.push(error),
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(CloseAllError { failures }) }
}

fn find(wanted: impl Fn(&Names) -> bool) -> Option<Arc<TraceObject>> {
    let list = LIST.lock();
    let mut found = list.entries.iter().filter(|entry| entry.names.as_ref().is_some_and(&wanted));
    found.find_map(|entry| entry.object.upgrade())
}

/// A place at the end of the list, for an object that is being made.
pub(crate) fn reserve(names: Option<(&str, Option<&str>)>) -> Result<u64, Error> {
    let names = names.map(|(name, instance)| Names { name: name.into(), instance: instance.map(Into::into) });
    let mut list = LIST.lock();
    if let Some(Names { name, instance }) = &names {
        let taken = |entry: &ListEntry| {
            entry.names.as_ref().is_some_and(|names| names.name == *name && names.instance == *instance)
        };
        if list.entries.iter().any(taken) {
            let name = instance.as_ref().map_or_else(|| name.clone(), |instance| format!("{name}_{instance}"));
            return Err(Error::Duplicate { name });
        }
    }
    let id = list.next;
    list.next += 1;
    list.entries.push(ListEntry { id, names, object: Weak::new(), kept: None });
    Ok(id)
}

/// The object is made: it takes its place.
pub(crate) fn enter(object: &Arc<TraceObject>) {
    if let Some(entry) = LIST.lock().entries.iter_mut().find(|entry| entry.id == object.id()) {
        entry.object = Arc::downgrade(object);
    }
}

/// The list holds the object, until it is closed.
pub(crate) fn keep(object: &Arc<TraceObject>) {
    if let Some(entry) = LIST.lock().entries.iter_mut().find(|entry| entry.id == object.id()) {
        entry.kept = Some(Arc::clone(object));
    }
}

/// Takes the object off the list.
pub(crate) fn remove(id: u64) {
    let removed = {
        let mut list = LIST.lock();
        let place = list.entries.iter().position(|entry| entry.id == id);
        place.map(|place| list.entries.remove(place))
    };
    // It may hold the last `Arc`, whose drop must not find the list locked.
    drop(removed);
}
