//! Replaces `dt_files` without the feature `traces`: dt files among the outputs cannot be read.

use crate::error::ReadError;
use crate::window::Window;
use std::io;
use std::path::Path;
use tracepoint_ring::channel::StreamKey;

/// No files.
#[derive(Debug, Default)]
pub(super) struct DtFiles;

impl DtFiles {
    /// Refuses a file.
    #[expect(clippy::unused_self, reason = "with the feature `traces` it has files")]
    pub(super) fn open(&mut self, path: &Path) -> Result<(), ReadError> {
        let reason = "this program was built without dt files: build it with the cargo feature `dt` of tracepoint";
        Err(ReadError::Io { path: path.to_owned(), source: io::Error::new(io::ErrorKind::Unsupported, reason) })
    }

    #[expect(clippy::unused_self, reason = "with the feature `traces` it has files")]
    pub(super) fn is_empty(&self) -> bool {
        true
    }

    #[expect(clippy::unused_self, reason = "with the feature `traces` it has files")]
    pub(super) fn stream(&self, _stream: StreamKey) -> Option<(&Path, Window)> {
        None
    }

    #[expect(clippy::unused_self, reason = "with the feature `traces` it has files")]
    pub(super) fn streams(&self, _uuid: [u8; 16]) -> impl Iterator<Item = ((u32, u64), String)> {
        std::iter::empty()
    }

    #[expect(clippy::unused_self, reason = "with the feature `traces` it has files")]
    pub(super) fn length(&self, _name: &str) -> u64 {
        0
    }
}
