//! Writes lines to the output, each completely and once: after a failure, writing resumes at the byte where it stopped.

use super::reorder::Entry;
use std::io::{self, Write};
use tracepoint_reader::Item;
use tracepoint_reader::text::{TextOptions, TextWriter};

/// Number of buffered bytes that are written at once.
const CHUNK: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Lines<W> {
    out: W,
    writer: TextWriter,
    buffer: Vec<u8>,
    /// Number of buffered bytes that were written.
    written: usize,
    /// True if the output may have buffered bytes itself.
    unflushed: bool,
}

impl<W: Write> Lines<W> {
    pub(super) fn new(out: W, options: TextOptions) -> Self {
        Self { out, writer: TextWriter::new(options), buffer: Vec::new(), written: 0, unflushed: false }
    }

    pub(super) fn with(self, options: TextOptions) -> Self {
        Self { writer: TextWriter::new(options), ..self }
    }

    /// Adds a line. The entry is consumed even if the output fails.
    pub(super) fn add(&mut self, entry: Entry) -> io::Result<()> {
        match entry {
            Entry::Event(event) => self.writer.write_item(&mut self.buffer, &Item::Event(event))?,
            Entry::Note(line) => self.buffer.extend_from_slice(line.as_bytes()),
        }
        if self.buffer.len() < CHUNK { Ok(()) } else { self.flush() }
    }

    /// Writes the buffer.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while self.written < self.buffer.len() {
            match self.out.write(&self.buffer[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => (self.written, self.unflushed) = (self.written + n, true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.buffer.clear();
        self.written = 0;
        Ok(())
    }

    /// Writes the buffer, and flushes the output.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.flush()?;
        if self.unflushed {
            self.out.flush()?;
            self.unflushed = false;
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Returns the number of lines that are not written completely.
    pub(super) fn unwritten(&self) -> usize {
        self.buffer[self.written..].split_inclusive(|byte| *byte == b'\n').count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepts three bytes at a time, and fails every other call.
    #[derive(Default)]
    struct PartialWriter {
        taken: Vec<u8>,
        refuses: bool,
    }

    impl Write for PartialWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.refuses = !self.refuses;
            if !self.refuses {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let n = bytes.len().min(3);
            self.taken.extend_from_slice(&bytes[..n]);
            Ok(n)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn partial_writes_are_continued_where_they_ended() -> io::Result<()> {
        let mut lines = Lines::new(PartialWriter::default(), TextOptions::default());
        lines.add(Entry::Note("first\n".to_owned()))?;
        lines.add(Entry::Note("second\n".to_owned()))?;
        assert_eq!(lines.unwritten(), 2);
        let tries = (1..10).find(|_| lines.flush().is_ok());
        assert_eq!(tries, Some(5));
        assert_eq!(lines.out.taken, b"first\nsecond\n");
        assert_eq!(lines.unwritten(), 0);
        Ok(())
    }
}
