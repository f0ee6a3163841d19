//! The error of the parsers for globs and filters: the problem in a text, and its place.

use std::fmt;
use std::ops::Range;
use winnow::error::ParserError;
use winnow::stream::Stream;

/// The text does not follow its grammar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyntaxError {
    /// This alternative of the grammar does not apply; another one may. No complete parser returns it.
    NoMatch,
    /// No alternative applies.
    At {
        /// The place, in bytes of the text.
        place: Range<usize>,
        /// The problem, in a sentence.
        reason: String,
    },
}

impl SyntaxError {
    pub(crate) fn at(place: Range<usize>, reason: impl Into<String>) -> Self {
        Self::At { place, reason: reason.into() }
    }

    /// Returns the error with its place moved into a text that contains this one from byte `offset` on.
    pub(crate) fn moved(self, offset: usize) -> Self {
        match self {
            Self::At { place, reason } => Self::At { place: place.start + offset..place.end + offset, reason },
            Self::NoMatch => Self::NoMatch,
        }
    }

    /// Returns the place and the reason. If no alternative applied, the place is the start.
    pub(crate) fn into_parts(self) -> (Range<usize>, String) {
        match self {
            Self::At { place, reason } => (place, reason),
            Self::NoMatch => (0..0, "the text does not follow the grammar".to_owned()),
        }
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (place, reason) = self.clone().into_parts();
        write!(f, "{reason}, at byte {}", place.start + 1)
    }
}

impl std::error::Error for SyntaxError {}

impl<I: Stream> ParserError<I> for SyntaxError {
    type Inner = Self;

    fn from_input(_: &I) -> Self {
        Self::NoMatch
    }

    fn is_backtrack(&self) -> bool {
        matches!(self, Self::NoMatch)
    }

    fn into_inner(self) -> Result<Self, Self> {
        Ok(self)
    }
}
