//! CTF sinks created from a description: one directory for each process.

use super::space::{Allowance, Space, Watch};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tracepoint_core::channel::Packet;
use tracepoint_session_spec::CtfSinkSpec;
use tracepoint_sinks::account::Account;
use tracepoint_sinks::{
    CtfError, CtfSink, NewEvents, Output, Rotation, Sink, SinkError, SinkExtension, StreamInfo, TraceStart,
};

/// Divides the trace into chunks as described.
fn with_chunks(mut sink: CtfSink, spec: &CtfSinkSpec) -> CtfSink {
    if let Some(size) = spec.rotate_size {
        sink = sink.rotate_size(size);
    }
    if let Some(every) = spec.rotate_every_ms {
        sink = sink.rotate_every(Duration::from_millis(every));
    }
    match spec.keep {
        Some(keep) => sink.keep(keep as usize),
        None => sink,
    }
}

/// Creates a CTF directory `name` in the path of the description, or `name-2` and so on if that is not empty. The sink writes as many bytes as `allowance`
/// permits, removes its oldest chunks if it keeps only the newest, and leaves a twentieth of its file system free.
pub fn ctf(spec: &CtfSinkSpec, name: &str, allowance: Arc<Allowance>) -> Result<(LimitedCtfSink, PathBuf), CtfError> {
    let mut path = spec.path.join(name);
    for number in 2_u64.. {
        match CtfSink::create(&path) {
            Err(CtfError::NotEmpty { .. }) => path = spec.path.join(format!("{name}-{number}")),
            made => {
                let sink = with_chunks(made?, spec);
                let space = Space::new(&path, allowance);
                let keeps = spec.keep.is_some();
                return Ok((LimitedCtfSink { sink, space, keeps }, path));
            }
        }
    }
    unreachable!("no directory has that many entries")
}

/// A sink that refuses packets beyond its limits.
#[derive(Debug)]
pub struct LimitedCtfSink {
    sink: CtfSink,
    space: Space,
    /// True if the newest chunks are kept: the oldest is removed if their total size is too large.
    keeps: bool,
}

impl LimitedCtfSink {
    pub(super) fn watch(&self) -> Arc<Watch> {
        self.space.watch()
    }
}

impl Sink for LimitedCtfSink {
    fn name(&self) -> String {
        self.sink.name()
    }

    fn begin(&mut self, start: &TraceStart<'_>) -> Result<(), SinkError> {
        self.sink.begin(start)
    }

    fn describe(&mut self, new: &NewEvents<'_>) -> Result<(), SinkError> {
        self.sink.describe(new)
    }

    fn packet(&mut self, stream: &StreamInfo, packet: &Packet<'_>) -> Result<(), SinkError> {
        let len = packet.bytes.len() as u64;
        // The packet that ends a stream is exempt: without it a reader could not count the missing packets.
        if packet.events_after > packet.events_before {
            while self.keeps && self.space.is_beyond(self.sink.kept_bytes(), len) && self.sink.remove_oldest()? {}
            self.space
                .check(self.sink.kept_bytes(), len)
                .map_err(|error| SinkError::new(format!("write to {}", self.sink.path().display()), error))?;
        }
        self.sink.packet(stream, packet).inspect_err(|error| self.space.fail(error.io_error()))?;
        self.space.add(len);
        Ok(())
    }

    fn finish(&mut self, account: &Account) -> Result<(), SinkError> {
        self.sink.finish(account)
    }

    fn extension(&mut self) -> Option<&mut dyn SinkExtension> {
        Some(self)
    }
}

impl SinkExtension for LimitedCtfSink {
    fn output(&self) -> Option<Output> {
        self.sink.output()
    }

    fn adjust_account(&self, account: &mut Account) {
        self.sink.adjust_account(account);
    }

    fn close_files(&mut self) {
        self.sink.close_files();
    }

    fn can_rotate(&self) -> bool {
        self.sink.can_rotate()
    }

    fn rotate(&mut self, when: Rotation) -> Result<Option<PathBuf>, SinkError> {
        let rotated = self.sink.rotate(when);
        // If no rotation was due, the last failure remains the current message.
        if !matches!(rotated, Ok(None)) {
            self.space.watch().rotated(rotated.as_ref().err().map(ToString::to_string));
        }
        rotated
    }
}
