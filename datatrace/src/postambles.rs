//! The postambles of one trace object, the original's list of `dtpost`, and how much of it stands in the file.

use crate::error::Error;
use crate::storage::Storage;
use std::collections::VecDeque;

/// A list of buffers, and how many from its front are in the file, one after the other.
///
/// What is in the file is not written again: appended postambles are added behind it, so that a kill while they are written leaves
/// the earlier ones whole. One that is inserted in front moves all others, and they are all written again.
#[derive(Debug, Default)]
pub(crate) struct Postambles {
    list: VecDeque<Vec<u8>>,
    written: usize,
    written_bytes: u64,
    /// Have been asked for in the file, and so belong there.
    wanted: bool,
}

impl Postambles {
    pub(crate) fn append(&mut self, postamble: Vec<u8>) {
        self.list.push_back(postamble);
    }

    pub(crate) fn insert(&mut self, postamble: Vec<u8>) {
        self.list.push_front(postamble);
        (self.written, self.written_bytes) = (0, 0);
    }

    /// Whether there are bytes of them in the file, or there may be.
    pub(crate) fn are_in_file(&self) -> bool {
        self.wanted
    }

    /// The file ends where they began.
    pub(crate) fn displaced(&mut self) {
        (self.written, self.written_bytes) = (0, 0);
    }

    /// Writes those that are not in the file, at `location` and behind.
    pub(crate) fn write<S: Storage>(&mut self, storage: &mut S, location: u64) -> Result<(), Error> {
        self.wanted |= !self.list.is_empty();
        for postamble in self.list.iter().skip(self.written) {
            if let Err(error) = storage.write_at(location + self.written_bytes, postamble) {
                return Err(Error::io(storage.path(), "write a postamble", error));
            }
            self.written += 1;
            self.written_bytes += postamble.len() as u64;
        }
        Ok(())
    }
}
