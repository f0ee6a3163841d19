//! Code that was mapped in a process, as recorded in the metadata of its trace.

use std::ops::Range;
use std::path::PathBuf;

/// A part of a file that was mapped as code in a process, see [`Metadata::modules`](super::Metadata::modules).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Module {
    start: u64,
    end: u64,
    /// Its beginning in the file.
    offset: u64,
    /// The build id of the file in base 16, if it has one.
    pub build_id: Option<String>,
    /// The path of the file in the process.
    pub path: PathBuf,
}

impl Module {
    /// A part of a file, which begins at `offset` there, at these addresses.
    pub const fn new(addresses: Range<u64>, offset: u64, build_id: Option<String>, path: PathBuf) -> Self {
        Self { start: addresses.start, end: addresses.end, offset, build_id, path }
    }

    /// Returns whether another mapping puts other code at some of its addresses.
    pub fn is_replaced_by(&self, other: &Self) -> bool {
        let begin = |module: &Self| module.start.wrapping_sub(module.offset);
        let is_same = self.path == other.path && self.build_id == other.build_id && begin(self) == begin(other);
        self.start < other.end && other.start < self.end && !is_same
    }

    /// Parses `START-END OFFSET BUILD-ID PATH` from the metadata; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.splitn(4, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let (start, end, offset) = (number(start)?, number(end)?, number(words.next()?)?);
        let build_id = Some(words.next()?).filter(|id| *id != "-").map(str::to_owned);
        Some(Self { start, end, offset, build_id, path: words.next()?.into() })
    }

    /// The offset of an address in the file, in bytes, if the address is in this part.
    pub fn place(&self, address: u64) -> Option<u64> {
        (self.start..self.end).contains(&address).then(|| (address - self.start).saturating_add(self.offset))
    }
}
