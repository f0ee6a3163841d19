//! The postambles of a trace object (the original's list of `dtpost`), and their state in the file.

use crate::error::Error;
use crate::replaceable::Replaceable;
use crate::storage::Storage;
use std::collections::VecDeque;

/// A list of buffers. Those requested by a flush are in the file, in sequence: all except the `inserted` ones at the front, and those appended since
/// the flush.
///
/// A postamble that is in the file is not written again. Appended postambles are written after it, so a kill during the write leaves the
/// earlier ones intact. An inserted postamble moves all others, and all of them are written again.
#[derive(Debug, Default)]
pub(crate) struct Postambles {
    list: VecDeque<Postamble>,
    /// Number of postambles inserted since the last flush.
    inserted: usize,
    /// Number of postambles after these that a flush has requested: they belong in the file.
    wanted: usize,
    /// Number of those in the file, and their bytes.
    written: usize,
    written_bytes: u64,
}

#[derive(Debug)]
enum Postamble {
    /// Written once.
    Fixed(Vec<u8>),
    /// Written repeatedly.
    Replaceable(Replaceable),
}

impl Postamble {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Fixed(bytes) => bytes,
            Self::Replaceable(postamble) => postamble.bytes(),
        }
    }

    /// Size in the file in bytes.
    fn len(&self) -> usize {
        match self {
            Self::Fixed(bytes) => bytes.len(),
            Self::Replaceable(postamble) => postamble.len(),
        }
    }

    fn replaceable(&mut self, tag: [u8; 4]) -> Option<&mut Replaceable> {
        match self {
            Self::Replaceable(postamble) if postamble.tag() == tag => Some(postamble),
            _ => None,
        }
    }
}

impl Postambles {
    pub(crate) fn append(&mut self, postamble: Vec<u8>) {
        self.list.push_back(Postamble::Fixed(postamble));
    }

    pub(crate) fn insert(&mut self, postamble: Vec<u8>) {
        self.list.push_front(Postamble::Fixed(postamble));
        self.inserted += 1;
    }

    /// Returns whether any of their bytes are, or may be, in the file.
    pub(crate) fn are_in_file(&self) -> bool {
        self.wanted > 0
    }

    /// Notes that the file was truncated at their start: no postamble is in it now.
    pub(crate) fn displaced(&mut self) {
        (self.written, self.written_bytes) = (0, 0);
    }

    /// Executes a flush of all postambles: writes those that are not in the file after those that are. The first one begins at `location`.
    pub(crate) fn write<S: Storage>(&mut self, storage: &mut S, location: u64) -> Result<(), Error> {
        if std::mem::take(&mut self.inserted) > 0 {
            self.displaced();
        }
        self.wanted = self.list.len();
        self.restore(storage, location)
    }

    /// Writes the postambles that belong in the file and are missing there.
    pub(crate) fn restore<S: Storage>(&mut self, storage: &mut S, location: u64) -> Result<(), Error> {
        for postamble in self.list.range(self.inserted..self.inserted + self.wanted).skip(self.written) {
            if let Err(error) = storage.write_at(location + self.written_bytes, postamble.bytes()) {
                return Err(Error::io(storage.path(), "write a postamble", error));
            }
            self.written += 1;
            self.written_bytes += postamble.len() as u64;
        }
        Ok(())
    }

    /// Replaces the contents of the postamble with this tag, also in the file. If none has the capacity, appends a larger one: a
    /// reader ignores it until it has its first copy, and uses the previous one until then.
    pub(crate) fn put<S: Storage>(
        &mut self,
        storage: &mut S,
        location: u64,
        tag: [u8; 4],
        contents: &[u8],
    ) -> Result<(), Error> {
        let place = match self.with_capacity(tag, contents.len()) {
            Some(place) => place,
            None => self.allocate(storage, location, Replaceable::growing(tag, contents.len())?)?,
        };
        self.write(storage, location)?;
        let before: usize = self.list.iter().take(place).map(Postamble::len).sum();
        let Some(postamble) = self.list[place].replaceable(tag) else { unreachable!("a replaceable postamble") };
        postamble.put(storage, location + before as u64, contents)?;
        self.list.iter_mut().take(place).filter_map(|earlier| earlier.replaceable(tag)).for_each(Replaceable::retire);
        Ok(())
    }

    /// Ensures that a postamble with this tag has the capacity. A new one has at least twice the capacity of the previous one, so that their total
    /// size is not much larger than the last one.
    pub(crate) fn reserve<S: Storage>(
        &mut self,
        storage: &mut S,
        location: u64,
        tag: [u8; 4],
        capacity: usize,
    ) -> Result<(), Error> {
        if self.with_capacity(tag, capacity).is_some() {
            return Ok(());
        }
        let postamble = match self.last(tag) {
            Some((_, previous)) => previous.larger(capacity)?,
            None => Replaceable::new(tag, capacity)?,
        };
        self.allocate(storage, location, postamble).map(drop)
    }

    /// The place of the last postamble with this tag, if it has the capacity.
    fn with_capacity(&self, tag: [u8; 4], capacity: usize) -> Option<usize> {
        self.last(tag).filter(|(_, postamble)| capacity <= postamble.capacity()).map(|(place, _)| place)
    }

    fn last(&self, tag: [u8; 4]) -> Option<(usize, &Replaceable)> {
        self.list.iter().enumerate().rev().find_map(|(place, postamble)| match postamble {
            Postamble::Replaceable(postamble) if postamble.tag() == tag => Some((place, postamble)),
            _ => None,
        })
    }

    /// Appends a postamble, also in the file, and returns its place in the list.
    fn allocate<S: Storage>(&mut self, storage: &mut S, location: u64, postamble: Replaceable) -> Result<usize, Error> {
        let place = self.list.len();
        self.list.push_back(Postamble::Replaceable(postamble));
        let bytes: usize = self.list.iter().map(Postamble::len).sum();
        let outcome = match storage.allocate(location + bytes as u64) {
            Ok(()) => self.write(storage, location),
            Err(error) => Err(Error::io(storage.path(), "make room for a postamble", error)),
        };
        if outcome.is_err() {
            self.list.truncate(place);
            self.wanted = self.wanted.min(place);
        }
        outcome.map(|()| place)
    }
}
