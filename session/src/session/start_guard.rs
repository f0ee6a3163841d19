//! Undoes the first steps of a session's start if a later one fails.

use super::channels::Channels;
use std::mem::take;
use std::sync::Arc;
use tracepoint_run_dir::session_dir::ProcessDir;
use tracepoint_session_io::outputs::Output;

/// Holds the resources that the start has created so far, and removes them on drop.
#[derive(Default)]
pub(super) struct StartGuard {
    pub(super) dir: Option<Arc<ProcessDir>>,
    pub(super) channels: Channels,
    pub(super) outputs: Vec<Output>,
}

impl StartGuard {
    /// The session has started: releases everything.
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
