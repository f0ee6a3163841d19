//! The dt files among the outputs of a process.

use crate::dt::{DtStream, DtTrace};
use crate::error::ReadError;
use crate::window::Window;
use std::path::Path;
use tracepoint_ring::channel::StreamKey;

/// The files that exist.
#[derive(Debug, Default)]
pub(super) struct DtFiles(Vec<DtTrace>);

impl DtFiles {
    /// Adds a file.
    pub(super) fn open(&mut self, path: &Path) -> Result<(), ReadError> {
        self.0.push(DtTrace::open(path)?);
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The packets of a stream, and the file that has them.
    pub(super) fn stream(&self, stream: StreamKey) -> Option<(&Path, Window)> {
        self.0.iter().find_map(|trace| {
            // The file may have been replaced by a file of another recording.
            let found = trace.streams().iter().find(|found| {
                trace.metadata().uuid() == Some(stream.uuid)
                    && (found.class.id, found.instance) == (u64::from(stream.class), Some(stream.instance))
            })?;
            Some((trace.path(), Window::Slots(trace.window(found))))
        })
    }

    /// The streams of the trace `uuid`, by class and instance, with their names.
    pub(super) fn streams(&self, uuid: [u8; 16]) -> impl Iterator<Item = ((u32, u64), String)> {
        let of_trace = self.0.iter().filter(move |trace| trace.metadata().uuid() == Some(uuid));
        let key = |stream: &DtStream| Some((u32::try_from(stream.class.id).ok()?, stream.instance?));
        of_trace.flat_map(DtTrace::streams).filter_map(move |stream| Some((key(stream)?, stream.name.clone())))
    }

    /// The number of bytes in the streams of this name.
    pub(super) fn length(&self, name: &str) -> u64 {
        let streams = self.0.iter().flat_map(DtTrace::streams).filter(|stream| stream.name == name);
        streams.flat_map(|stream| stream.parts.iter()).map(|part| part.length).fold(0, u64::saturating_add)
    }
}
