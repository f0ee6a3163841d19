//! What a session has made while it starts.

use super::channels::Channels;
use crate::session_dir::ProcessDir;
use std::mem::take;
use std::sync::Arc;

/// Takes back what was made when a start does not come to its end.
pub(super) struct Unfinished {
    pub(super) dir: Option<Arc<ProcessDir>>,
    pub(super) channels: Channels,
}

impl Unfinished {
    /// No channel yet, whose rings will be in `dir`.
    pub(super) fn new(dir: Option<Arc<ProcessDir>>) -> Self {
        Self { dir, channels: Channels::default() }
    }

    /// It has started: what was made stays.
    pub(super) fn started(mut self) -> (Option<Arc<ProcessDir>>, Channels) {
        (self.dir.take(), take(&mut self.channels))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.channels.close();
        if let Some(dir) = self.dir.take() {
            dir.remove();
        }
    }
}
