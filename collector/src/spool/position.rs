//! The progress of publishing a trace, stored for the next collector in the file [`POSITION`] in the session's directory.
//!
//! ```text
//!   log BYTES                     offset in the log up to which the broker has its messages
//!   NUMBER PASSED LAST            for each stream, by its number in the log; LAST is `-` before the first packet
//! ```
//!
//! or the line `done`, when the broker has everything.

use crate::files::put;
use std::fmt::Write;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use tracepoint_wire::stream::NO_SEQ;

/// The position file in a session's directory.
const POSITION: &str = ".published";
/// Its content when everything is published.
const DONE: &str = "done\n";

/// A position in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Number of stored packets before it: published ones, and ones lost to the broker.
    pub(crate) passed: u64,
    /// The number of the last published packet, or [`NO_SEQ`].
    pub(crate) last: u64,
}

impl Default for Place {
    fn default() -> Self {
        Self { passed: 0, last: NO_SEQ }
    }
}

/// Progress of publishing a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// Offset in the log up to which the broker has its messages.
    pub(crate) log: u64,
    /// Position in each stream.
    pub(crate) streams: Vec<Place>,
}

/// Returns whether the trace in this directory is published completely.
pub(crate) fn has_published(root: &Path) -> bool {
    fs::read_to_string(root.join(POSITION)).is_ok_and(|text| text == DONE)
}

impl Position {
    /// Reads the position of an earlier collector. If the file is missing or damaged, starts from the beginning: publishing again is safe.
    pub(crate) fn read(root: &Path) -> Self {
        let text = fs::read_to_string(root.join(POSITION)).unwrap_or_default();
        Self::parse(&text).unwrap_or_default()
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let log = lines.next()?.strip_prefix("log ")?.parse().ok()?;
        let mut streams = Vec::new();
        for (number, line) in lines.enumerate() {
            let mut fields = line.split(' ');
            let mut field = || fields.next();
            if field()?.parse() != Ok(number) {
                return None;
            }
            let passed = field()?.parse().ok()?;
            let last = match field()? {
                "-" => NO_SEQ,
                last => last.parse().ok()?,
            };
            streams.push(Place { passed, last });
        }
        Some(Self { log, streams })
    }

    fn text(&self) -> String {
        let mut text = format!("log {}\n", self.log);
        for (number, Place { passed, last }) in self.streams.iter().enumerate() {
            let last = if *last == NO_SEQ { "-".to_owned() } else { last.to_string() };
            // Writing to a String does not fail.
            let _ = writeln!(text, "{number} {passed} {last}");
        }
        text
    }

    /// Writes the position.
    pub(crate) fn write(&self, root: &Path) -> io::Result<()> {
        put(root, POSITION, self.text().as_bytes())
    }

    /// Records that everything is published, and removes the log.
    pub(crate) fn done(root: &Path) -> io::Result<()> {
        put(root, POSITION, DONE.as_bytes())?;
        match fs::remove_file(root.join(super::log::LOG)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_written_and_a_damaged_one_is_the_beginning() -> io::Result<()> {
        let place = tempfile::tempdir()?;
        let position = Position { log: 77, streams: vec![Place { passed: 3, last: 9 }, Place::default()] };
        assert_eq!(Position::read(place.path()), Position::default());
        position.write(place.path())?;
        assert_eq!(Position::read(place.path()), position);
        assert!(!has_published(place.path()));
        for damaged in ["", "log", "log x\n", "log 7\n1 2 3\n", "log 7\n0 2\n"] {
            fs::write(place.path().join(POSITION), damaged)?;
            assert_eq!(Position::read(place.path()), Position::default(), "{damaged}");
        }
        Position::done(place.path())?;
        assert!(has_published(place.path()));
        Ok(())
    }
}
