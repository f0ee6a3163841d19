//! The bytes of a stream without the feature `traces`: always a stream file.

use crate::source::{FileWindow, Source};
use std::io;

/// The packets of a stream file, one after another.
#[derive(Clone, Debug)]
pub(crate) struct Window(FileWindow);

impl Window {
    /// All of a stream file.
    pub(crate) fn of_file(file: FileWindow) -> Self {
        Self(file)
    }

    #[expect(clippy::unnecessary_wraps, reason = "with the feature `traces` there are other windows")]
    pub(crate) fn file(&mut self) -> Option<&mut FileWindow> {
        Some(&mut self.0)
    }

    /// The packets of a file have no fixed places.
    #[expect(clippy::unused_self, reason = "with the feature `traces` there are other windows")]
    pub(crate) fn behind_damage(&mut self, _offset: u64) -> Option<u64> {
        None
    }
}

impl Source for Window {
    fn length(&self) -> u64 {
        self.0.length()
    }

    fn bytes(&mut self, offset: u64, least: usize) -> io::Result<&[u8]> {
        self.0.bytes(offset, least)
    }
}
