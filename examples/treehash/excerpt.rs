//! The first and the last lines of a trace.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use tracepoint_reader::text::{TextOptions, TextWriter};
use tracepoint_reader::{ReadError, Trace};

/// Number of lines at either end.
const LINES: usize = 3;
/// Maximum length of a line. Longer ones are cut.
const WIDTH: usize = 240;

/// Lines from both ends of a trace, in the format of `tracectl view`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excerpt {
    /// The first lines.
    pub first: Vec<String>,
    /// Number of lines omitted in between.
    pub between: u64,
    /// The last lines, if there are more.
    pub last: VecDeque<String>,
}

impl Excerpt {
    /// Reads the complete trace in `directory`.
    ///
    /// # Errors
    ///
    /// If there is no trace.
    pub fn of(directory: &Path) -> Result<Self, ReadError> {
        let mut excerpt = Self::default();
        let mut writer = TextWriter::new(TextOptions::default());
        for item in Trace::open(directory)?.items() {
            let mut line = Line::default();
            // Writing to a `Line` cannot fail.
            let _ = writer.write_item(&mut line, &item);
            let line = line.to_text();
            if excerpt.first.len() < LINES {
                excerpt.first.push(line);
                continue;
            }
            excerpt.last.push_back(line);
            if excerpt.last.len() > LINES {
                excerpt.last.pop_front();
                excerpt.between += 1;
            }
        }
        Ok(excerpt)
    }
}

/// The beginning of a line.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    cut: bool,
}

impl io::Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = WIDTH.saturating_sub(self.bytes.len());
        self.bytes.extend(bytes.iter().take(room));
        self.cut |= bytes.len() > room;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Line {
    fn to_text(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        format!("{}{}", text.trim_end(), if self.cut { "…" } else { "" })
    }
}
