//! Notes about collectors whose clocks are far from this host's.

use crate::message;
use crate::view::sender_note;
use std::collections::BTreeSet;
use tracepoint_controller::RecordedProcess;

/// The collectors for which a note was printed.
#[derive(Debug, Default)]
pub(super) struct FarClocks(BTreeSet<String>);

impl FarClocks {
    pub(super) fn print_new(&mut self, recorded: &[RecordedProcess]) {
        for stream in recorded.iter().flat_map(|recorded| &recorded.streams) {
            let note = stream.clock_ns.and_then(|ahead| sender_note(&stream.to, ahead));
            if let Some(note) = note.filter(|_| self.0.insert(stream.to.clone())) {
                message::note(&note);
            }
        }
    }
}
