//! The recordings of an agent, for other threads of the process.

use crate::session::{Recording, SessionError, SharedRecording};
use std::sync::{Arc, Mutex, PoisonError};

/// The running recordings.
#[derive(Debug, Default)]
pub(super) struct Recordings(Mutex<Vec<Arc<SharedRecording>>>);

impl Recordings {
    /// Adds a started recording; drops those that have ended.
    pub(super) fn add(&self, recording: &Recording) {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|handle| handle.is_running());
        running.push(Arc::clone(recording.shared()));
    }

    /// Finds the recording of the session called `name`.
    pub(super) fn find(&self, name: &str) -> Result<Arc<SharedRecording>, SessionError> {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = running.iter().find(|handle| handle.name() == name && handle.is_running());
        found.cloned().ok_or_else(|| {
            let known: Vec<_> =
                running.iter().filter(|handle| handle.is_running()).map(|handle| handle.name()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            SessionError::NotRecorded { name: name.to_owned(), known }
        })
    }
}
