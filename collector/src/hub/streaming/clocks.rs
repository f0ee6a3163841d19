//! The clocks of senders: their alignment, and warnings about large differences.

use crate::files::make_directories;
use crate::hub::Hub;
use crate::hub::tally::text;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;
use tracepoint_reader::Metadata;
use tracepoint_wire::stream::{NO_BOUND, Sync};

/// The file's path in a trace.
pub(super) const FILE: &str = ".account/clock-alignment";
/// Difference in nanoseconds from which a warning is given.
const FAR_OFF: u64 = 1_000_000_000;

impl Hub {
    /// Handles the clock alignment in a synchronisation message.
    pub(super) fn align(&mut self, id: u64, sync: &Sync) {
        if let Err(error) = self.write_alignment(id, sync) {
            self.say(format!("cannot write the clock alignment: {error}"));
        }
        if let Some(note) = self.clock_note(id) {
            self.say(note);
        }
    }

    /// Writes the clock alignment next to the account when it has changed by more than its bound: session time, offset, bound.
    fn write_alignment(&mut self, id: u64, sync: &Sync) -> io::Result<()> {
        let Some(path) = self.trace_directory(id) else { return Ok(()) };
        let Some(streamed) = self.streamed(id).filter(|_| sync.bound != NO_BOUND) else { return Ok(()) };
        let (offset, bound) = (sync.offset, sync.bound);
        if streamed.alignment.is_some_and(|(known, least)| offset.abs_diff(known) <= bound && bound >= least) {
            return Ok(());
        }
        streamed.alignment = Some((offset, bound));
        make_directories(&path, Path::new(".account"))?;
        let file = OpenOptions::new().append(true).create(true).open(path.join(FILE));
        file.and_then(|mut file| writeln!(file, "{} {offset} {bound}", sync.time))
    }

    /// Warns once per session if its host's clock is far off. The metadata contains the host's time; it is parsed once.
    fn clock_note(&mut self, id: u64) -> Option<String> {
        let streamed = self.streamed(id)?;
        let ((offset, bound), handle) = (streamed.alignment?, streamed.metadata);
        if streamed.is_clock_checked {
            return None;
        }
        let text = text(&self.stream(handle)?.view)?;
        self.streamed(id)?.is_clock_checked = true;
        let ahead = Metadata::parse(&text).ok()?.clocks().first()?.nanoseconds(0).saturating_sub(offset);
        let by = ahead.unsigned_abs();
        let direction = if ahead > 0 { "ahead of" } else { "behind" };
        let (host, by_text) = (&self.session(id)?.host, Duration::from_millis(by / 1_000_000));
        (by >= bound.saturating_add(FAR_OFF)).then(|| {
            format!(
                "the clock of {host} is {by_text:?} {direction} that of this collector; `tracectl view` shows its events at the collector's time, other readers \
                 at that of {host}"
            )
        })
    }
}
