//! Finds the tagged postambles of a dt file.

use super::{DtReader, ReadError};
use crate::replaceable::{COPY_HEAD, NUMBER, ROOM_TAG};
use crate::tagged::{MAX_TAGGED, TAGGED_HEAD, TAGGED_MAGIC, TaggedPostamble, checksum};

/// The result of parsing a tagged postamble.
enum ParsedPostamble {
    /// A postamble, and the offset of its end.
    Whole(TaggedPostamble, u64),
    /// A replaceable postamble with this tag that has no intact copy; the offset of its end; and true if both copies were written: a kill
    /// cannot tear both.
    Empty([u8; 4], u64, bool),
}

impl DtReader {
    /// The tagged postambles at the beginning of the postambles, up to the first one that has no tag or is not intact. For a
    /// [replaceable](crate::DtWriter::put_postamble) one, the newest intact copy.
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`].
    pub fn tagged_postambles(&self) -> impl Iterator<Item = Result<TaggedPostamble, ReadError>> + '_ {
        self.found().filter_map(|found| match found {
            Ok((_, ParsedPostamble::Whole(tagged, _))) => Some(Ok(tagged)),
            Ok((_, ParsedPostamble::Empty(..))) => None,
            Err(error) => Some(Err(error)),
        })
    }

    /// The postamble with this tag. If there are several, the last one.
    ///
    /// # Errors
    ///
    /// [`ReadError::Postamble`] if no copy of it is intact; [`ReadError::Io`].
    pub fn tagged_postamble(&self, tag: [u8; 4]) -> Result<Option<TaggedPostamble>, ReadError> {
        let mut last = None;
        let mut torn = None;
        for found in self.found() {
            match found? {
                (_, ParsedPostamble::Whole(tagged, _)) if tagged.tag == tag => last = Some(tagged),
                (offset, ParsedPostamble::Empty(of, _, true)) if of == tag => torn = Some(offset),
                _ => {}
            }
        }
        match torn {
            Some(offset) if last.is_none() => {
                let reason = format!("neither copy of `{}` has its checksum", tag.escape_ascii());
                Err(ReadError::Postamble { path: self.path().to_owned(), offset, reason })
            }
            _ => Ok(last),
        }
    }

    fn found(&self) -> impl Iterator<Item = Result<(u64, ParsedPostamble), ReadError>> + '_ {
        let mut offset = self.header().postamble_location();
        std::iter::from_fn(move || {
            let at = offset;
            let found = self.found_at(at).transpose()?;
            if let Ok(ParsedPostamble::Whole(_, end) | ParsedPostamble::Empty(_, end, _)) = &found {
                offset = *end;
            }
            Some(found.map(|found| (at, found)))
        })
    }

    fn found_at(&self, offset: u64) -> Result<Option<ParsedPostamble>, ReadError> {
        let Some((tagged, end)) = self.whole_at(offset, self.file_size())? else {
            return Ok(None);
        };
        match *tagged.contents.as_slice() {
            [a, b, c, d, m0, m1, m2, m3] if tagged.tag == ROOM_TAG => {
                self.newest_copy([a, b, c, d], end, u32::from_le_bytes([m0, m1, m2, m3]))
            }
            _ => Ok(Some(ParsedPostamble::Whole(tagged, end))),
        }
    }

    /// The newer intact copy of the two copies that begin at `first`; `None` if the file ends before they do.
    fn newest_copy(&self, tag: [u8; 4], first: u64, most: u32) -> Result<Option<ParsedPostamble>, ReadError> {
        let size = COPY_HEAD as u64 + u64::from(most);
        let end = first + 2 * size;
        if end > self.file_size() {
            return Ok(None);
        }
        let mut newest: Option<(u64, TaggedPostamble)> = None;
        let mut begun = true;
        for start in [first, first + size] {
            let mut magic = [0; TAGGED_MAGIC.len()];
            self.read_at(start, &mut magic)?;
            begun &= magic != [0; TAGGED_MAGIC.len()];
            let Some((mut copy, _)) = self.whole_at(start, start + size)?.filter(|(copy, _)| copy.tag == tag) else {
                continue;
            };
            let Some(number) = copy.contents.first_chunk::<NUMBER>().map(|number| u64::from_le_bytes(*number)) else {
                continue;
            };
            if newest.as_ref().is_none_or(|(newest, _)| *newest < number) {
                copy.contents.drain(..NUMBER);
                newest = Some((number, copy));
            }
        }
        Ok(Some(
            newest.map_or(ParsedPostamble::Empty(tag, end, begun), |(_, tagged)| ParsedPostamble::Whole(tagged, end)),
        ))
    }

    /// The tagged postamble at `offset`, and the offset of its end; `None` if no intact one ends before `limit`.
    fn whole_at(&self, offset: u64, limit: u64) -> Result<Option<(TaggedPostamble, u64)>, ReadError> {
        let mut head = [0; TAGGED_HEAD];
        if self.read_at(offset, &mut head)? < TAGGED_HEAD || head[..4] != TAGGED_MAGIC {
            return Ok(None);
        }
        let word = |at: usize| [head[at], head[at + 1], head[at + 2], head[at + 3]];
        let (tag, length) = (word(4), u32::from_le_bytes(word(8)));
        let begin = offset + TAGGED_HEAD as u64;
        let end = begin + u64::from(length);
        if length > MAX_TAGGED || end > limit {
            return Ok(None);
        }
        let mut contents = vec![0; length as usize];
        let whole = self.read_at(begin, &mut contents)? == contents.len()
            && checksum(tag, word(8), &contents) == u32::from_le_bytes(word(12));
        Ok(whole.then_some((TaggedPostamble { tag, offset, contents }, end)))
    }
}
