//! The open trace objects of the process: looked up, listed and closed.

use crate::error::{CloseAllError, Error};
use crate::object::{OBJECTS, TraceObject};
use std::sync::Arc;

/// The open trace object created with `name`; if there are several instances, the oldest. The original's `dtGetTraceObj`.
pub fn get_trace_object(name: &str) -> Option<Arc<TraceObject>> {
    OBJECTS.find(name, None)
}

/// The open trace object created with `name` and `instance`.
pub fn get_trace_object_instance(name: &str, instance: &str) -> Option<Arc<TraceObject>> {
    OBJECTS.find(name, Some(instance))
}

/// The oldest open trace object. The original's `dtGetTopTraceObj`.
pub fn top_trace_object() -> Option<Arc<TraceObject>> {
    OBJECTS.first()
}

/// All open trace objects in the order of creation, which the original traversed by `dtGetTopTraceObj` and `next`.
pub fn trace_objects() -> Vec<Arc<TraceObject>> {
    OBJECTS.all()
}

/// Closes all open trace objects in the order of creation. The original's `dtCloseAll`, to be called at the end of a program.
/// Objects that a close function creates stay open.
///
/// # Errors
///
/// Lists the objects that could not be written completely. They are closed as well.
pub fn close_all() -> Result<(), CloseAllError> {
    let mut failures = Vec::new();
    for object in trace_objects() {
        match object.close() {
            // Another thread may have closed it in the meantime.
            Ok(()) | Err(Error::Closed { .. }) => {}
            Err(error) => failures.push(error),
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(CloseAllError { failures }) }
}
