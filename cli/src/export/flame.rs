//! A flame graph, drawn from folded stacks once all of them are known.

use super::stacks::Stacks;
use inferno::flamegraph::{Options, from_reader};
use std::io::{self, Write};

/// Collects folded stacks, and draws them when it is flushed.
pub(super) struct FlameGraph<W: Write> {
    folded: Vec<u8>,
    out: W,
    stacks: Stacks,
}

impl<W: Write> FlameGraph<W> {
    pub(super) fn new(out: W, stacks: Stacks) -> Self {
        Self { folded: Vec::new(), out, stacks }
    }
}

impl<W: Write> Write for FlameGraph<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.folded.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut options = Options::default();
        "tracectl export --flame".clone_into(&mut options.title);
        self.stacks.unit().clone_into(&mut options.count_name);
        let folded = std::mem::take(&mut self.folded);
        if folded.is_empty() {
            let (nothing, advice) = self.stacks.nothing();
            let message = format!("there is {nothing} among the selected events: {advice}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        from_reader(&mut options, folded.as_slice(), &mut self.out)?;
        self.out.flush()
    }
}
