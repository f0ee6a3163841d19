//! The clocks of senders: what their alignment is, and whether they are far off.

use crate::hub::Hub;
use crate::hub::directory::make_directories;
use crate::hub::tally::text;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;
use tracepoint_reader::Metadata;
use tracepoint_wire::stream::{NO_BOUND, Sync};

/// Where it is in a trace.
pub(super) const FILE: &str = ".account/clock-alignment";
/// Differences from this one on, in nanoseconds, are told.
const FAR_OFF: u64 = 1_000_000_000;

impl Hub {
    /// A synchronisation message tells how the clock of the trace is aligned.
    pub(super) fn align(&mut self, id: u64, sync: &Sync) {
        if let Err(error) = self.write_alignment(id, sync) {
            self.say(format!("cannot write the clock alignment: {error}"));
        }
        if let Some(note) = self.clock_note(id) {
            self.say(note);
        }
    }

    /// Writes the clock alignment beside the account, when it has changed by more than its bound: time of the session, offset, bound.
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

    /// Says once for a session that the clock of its host is far off. The metadata has the time of that clock; it is parsed once.
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
