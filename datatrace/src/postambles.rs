//! The postambles of one trace object, the original's list of `dtpost`, and how much of it stands in the file.

use crate::error::Error;
use crate::room::Room;
use crate::storage::Storage;
use std::collections::VecDeque;

/// A list of buffers, and how many from its front are in the file, one after the other.
///
/// What is in the file is not written again: appended postambles are added behind it, so that a kill while they are written leaves
/// the earlier ones whole. One that is inserted in front moves all others, and they are all written again.
#[derive(Debug, Default)]
pub(crate) struct Postambles {
    list: VecDeque<Postamble>,
    written: usize,
    written_bytes: u64,
    /// Have been asked for in the file, and so belong there.
    wanted: bool,
}

#[derive(Debug)]
enum Postamble {
    /// Written once.
    Fixed(Vec<u8>),
    /// Written again and again.
    Room(Room),
}

impl Postamble {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Fixed(bytes) => bytes,
            Self::Room(room) => room.bytes(),
        }
    }

    /// How many bytes it takes in the file.
    fn length(&self) -> usize {
        match self {
            Self::Fixed(bytes) => bytes.len(),
            Self::Room(room) => room.length(),
        }
    }

    fn room(&self, tag: [u8; 4]) -> Option<&Room> {
        match self {
            Self::Room(room) if room.tag() == tag => Some(room),
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
            if let Err(error) = storage.write_at(location + self.written_bytes, postamble.bytes()) {
                return Err(Error::io(storage.path(), "write a postamble", error));
            }
            self.written += 1;
            self.written_bytes += postamble.length() as u64;
        }
        Ok(())
    }

    /// Puts `contents` into the room for this tag, in the file too. Where there is none that is large enough, it gets one at the end:
    /// a room into which nothing was put yet does not count for a reader, who takes the one before until then.
    pub(crate) fn put<S: Storage>(
        &mut self,
        storage: &mut S,
        location: u64,
        tag: [u8; 4],
        contents: &[u8],
    ) -> Result<(), Error> {
        let place = match self.room_for(tag, contents.len()) {
            Some(place) => place,
            None => self.make_room(storage, location, Room::growing(tag, contents.len())?)?,
        };
        self.write(storage, location)?;
        let before: usize = self.list.iter().take(place).map(Postamble::length).sum();
        match &mut self.list[place] {
            Postamble::Room(room) => room.put(storage, location + before as u64, contents)?,
            Postamble::Fixed(_) => unreachable!("the place is a room's"),
        }
        for earlier in self.list.iter_mut().take(place) {
            match earlier {
                Postamble::Room(room) if room.tag() == tag => room.retire(),
                _ => {}
            }
        }
        Ok(())
    }

    /// Where the room is that takes `most` bytes for this tag, which is made if there is none: of at least twice the size of the one
    /// before, so that all of them together are not much larger than the last.
    pub(crate) fn reserve<S: Storage>(
        &mut self,
        storage: &mut S,
        location: u64,
        tag: [u8; 4],
        most: usize,
    ) -> Result<usize, Error> {
        match (self.room_for(tag, most), self.last_room(tag)) {
            (Some(place), _) => Ok(place),
            (None, Some((_, room))) => self.make_room(storage, location, room.larger(most)?),
            (None, None) => self.make_room(storage, location, Room::new(tag, most)?),
        }
    }

    /// The last room for this tag, if it takes so many bytes.
    fn room_for(&self, tag: [u8; 4], most: usize) -> Option<usize> {
        self.last_room(tag).filter(|(_, room)| room.takes(most)).map(|(place, _)| place)
    }

    fn last_room(&self, tag: [u8; 4]) -> Option<(usize, &Room)> {
        self.list.iter().enumerate().rev().find_map(|(place, postamble)| Some((place, postamble.room(tag)?)))
    }

    /// Appends a room, in the file too; where it is in the list.
    fn make_room<S: Storage>(&mut self, storage: &mut S, location: u64, room: Room) -> Result<usize, Error> {
        let place = self.list.len();
        self.list.push_back(Postamble::Room(room));
        let bytes: usize = self.list.iter().map(Postamble::length).sum();
        let made = match storage.allocate(location + bytes as u64) {
            Ok(()) => self.write(storage, location),
            Err(error) => Err(Error::io(storage.path(), "make room for a postamble", error)),
        };
        if made.is_err() {
            self.list.truncate(place);
        }
        made.map(|()| place)
    }
}
