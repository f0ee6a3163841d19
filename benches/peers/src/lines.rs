//! A writer that counts lines and drops them: the output of the peers that format text.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use tracing_subscriber::fmt::MakeWriter;

/// The number of lines that arrived since the last [`take`]. Relaxed: nothing else depends on it.
static LINES: AtomicU64 = AtomicU64::new(0);

/// Counts the lines of the process.
#[derive(Clone, Copy, Debug)]
pub struct CountLines;

/// The number of lines since the last call.
pub fn take() -> u64 {
    LINES.swap(0, Ordering::Relaxed)
}

impl Write for CountLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LINES.fetch_add(u64::from(bytes.ends_with(b"\n")), Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for CountLines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        *self
    }
}
