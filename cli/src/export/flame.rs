//! A flame graph, drawn from folded stacks once all of them are known.

use super::stacks::NO_SPANS;
use inferno::flamegraph::{Options, from_reader};
use std::io::{self, Write};

/// Collects folded stacks, and draws them when it is flushed.
pub(super) struct FlameGraph<W: Write> {
    folded: Vec<u8>,
    out: W,
    unit: &'static str,
}

impl<W: Write> FlameGraph<W> {
    pub(super) fn new(out: W, unit: &'static str) -> Self {
        Self { folded: Vec::new(), out, unit }
    }
}

impl<W: Write> Write for FlameGraph<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.folded.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut options = Options::default();
        "tracectl export --flame".clone_into(&mut options.title);
        self.unit.clone_into(&mut options.count_name);
        let folded = std::mem::take(&mut self.folded);
        if folded.is_empty() {
            let message = format!("there is no span or call stack to draw among the selected events: {NO_SPANS}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        from_reader(&mut options, folded.as_slice(), &mut self.out)?;
        self.out.flush()
    }
}
