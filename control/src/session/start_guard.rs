//! What a session has made while it starts.

use super::channels::Channels;
use crate::outputs::Output;
use crate::session_dir::ProcessDir;
use std::mem::take;
use std::sync::Arc;

/// Removes what was made if the start fails.
#[derive(Default)]
pub(super) struct StartGuard {
    pub(super) dir: Option<Arc<ProcessDir>>,
    pub(super) channels: Channels,
    pub(super) outputs: Vec<Output>,
}

impl StartGuard {
    /// The session has started: what was made stays.
    pub(super) fn finish(mut self) -> (Channels, Vec<Output>) {
        self.dir = None;
        (take(&mut self.channels), take(&mut self.outputs))
    }
}

impl Drop for StartGuard {
    fn drop(&mut self) {
        self.channels.close();
        if let Some(dir) = self.dir.take() {
            dir.remove();
        }
        self.outputs.drain(..).for_each(Output::remove_unused);
    }
}
