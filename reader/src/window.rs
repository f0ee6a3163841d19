//! The bytes of a stream: a stream file, slots of a dt file, or packets that arrive one after another.

use crate::dt::SlotsWindow;
use crate::source::{FedWindow, FileWindow, Source};
use std::io;

/// The packets of a stream.
#[derive(Clone, Debug)]
pub(crate) enum Window {
    /// In a stream file, one after another.
    File(FileWindow),
    /// In slots of a dt file.
    Slots(SlotsWindow),
    /// In memory: the most recently arrived ones.
    Fed(FedWindow),
}

impl Window {
    /// All of a stream file.
    pub(crate) fn of_file(file: FileWindow) -> Self {
        Self::File(file)
    }

    /// The file, if it is one.
    pub(crate) fn file(&mut self) -> Option<&mut FileWindow> {
        match self {
            Self::File(file) => Some(file),
            Self::Slots(_) | Self::Fed(_) => None,
        }
    }

    /// The offset of the packet after a damaged one at `offset`, if packets have fixed places.
    pub(crate) fn behind_damage(&mut self, offset: u64) -> Option<u64> {
        match self {
            Self::Slots(slots) if slots.is_readable() => Some(slots.following(offset, 0)),
            Self::Slots(_) | Self::Fed(_) | Self::File(_) => None,
        }
    }
}

impl Source for Window {
    fn length(&self) -> u64 {
        match self {
            Self::File(window) => window.length(),
            Self::Slots(window) => window.length(),
            Self::Fed(window) => window.length(),
        }
    }

    fn bytes(&mut self, offset: u64, least: usize) -> io::Result<&[u8]> {
        match self {
            Self::File(window) => window.bytes(offset, least),
            Self::Slots(window) => window.bytes(offset, least),
            Self::Fed(window) => window.bytes(offset, least),
        }
    }

    fn first(&mut self) -> u64 {
        match self {
            Self::File(window) => window.first(),
            Self::Slots(window) => window.first(),
            Self::Fed(window) => window.first(),
        }
    }

    fn following(&mut self, offset: u64, size: u64) -> u64 {
        match self {
            Self::File(window) => window.following(offset, size),
            Self::Slots(window) => window.following(offset, size),
            Self::Fed(window) => window.following(offset, size),
        }
    }
}
