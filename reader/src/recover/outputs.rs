//! The outputs of a process: the CTF directories and dt files of its sinks, which the file `outputs` names.

use super::chunks;
use crate::decode::State;
use crate::dt::DtTrace;
use crate::metadata::Metadata;
use crate::packet::Packet;
use crate::source::{FileWindow, Source, read_bounded};
use crate::take::Journal;
use crate::window::Window;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The longest `outputs` file that is read.
const MAX_LENGTH: usize = 1 << 20;
/// The largest packet that is read, which is the largest of any channel.
const MAX_PACKET: u64 = 1 << 30;

/// The outputs that exist.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    /// For each sink its directory, and the chunks in it.
    directories: Vec<Vec<PathBuf>>,
    traces: Vec<DtTrace>,
}

impl Outputs {
    /// Reads the file in the directory of a process. Without the file there were no such sinks.
    pub(super) fn read(process: &Path, journal: &mut Journal) -> Self {
        let path = process.join("outputs");
        let mut outputs = Self::default();
        if !path.exists() {
            return outputs;
        }
        let text = match read_bounded(&path, MAX_LENGTH) {
            Ok(text) if text.len() <= MAX_LENGTH => text,
            Ok(_) => {
                journal.wrong(format!("{}: longer than {MAX_LENGTH} bytes", path.display()));
                return outputs;
            }
            Err(error) => {
                journal.wrong(error.to_string());
                return outputs;
            }
        };
        for line in text.split(|byte| *byte == b'\n') {
            let Some(at) = line.iter().position(|byte| *byte == b' ') else {
                continue;
            };
            let output = PathBuf::from(OsStr::from_bytes(&line[at + 1..]));
            match &line[..at] {
                b"ctf" | b"dt" if !output.is_absolute() => {
                    journal.wrong(format!("{}: `{}` is not an absolute path", path.display(), output.display()));
                }
                b"ctf" if output.is_dir() => outputs.directories.push(chunks::of(output)),
                b"dt" if output.is_file() => match DtTrace::open(&output) {
                    Ok(trace) => outputs.traces.push(trace),
                    Err(error) => journal.wrong(error.to_string()),
                },
                b"ctf" | b"dt" => journal.note(format!("the output {} does not exist any more", output.display())),
                _ => {}
            }
        }
        outputs
    }

    /// The file of a stream in the first directory that has it.
    pub(super) fn stream(
        &self,
        metadata: &Metadata,
        stream: StreamId,
        file: &str,
        journal: &mut Journal,
    ) -> Option<Kept> {
        for directories in &self.directories {
            let mut files: VecDeque<_> =
                directories.iter().map(|directory| directory.join(file)).filter(|path| path.exists()).collect();
            while let Some(path) = files.pop_front() {
                match FileWindow::open(&path) {
                    Ok(window) => {
                        let mut kept = Kept::new(path, Window::File(window), metadata, stream);
                        match kept.head(metadata) {
                            Ok(Some(_)) => return Some(Kept { files, ..kept }),
                            Ok(None) => {}
                            Err(reason) => {
                                journal.wrong(format!("{}: byte 0: {reason}; not used", kept.path.display()));
                            }
                        }
                    }
                    Err(error) => journal.wrong(format!("{}: {error}", path.display())),
                }
            }
        }
        self.traces.iter().find_map(|trace| {
            // The file may have been replaced by that of another recording.
            let found = trace.streams().iter().find(|found| {
                trace.metadata().uuid() == Some(stream.uuid)
                    && (found.class.id, found.instance) == (u64::from(stream.class), Some(stream.instance))
            })?;
            let window = Window::Slots(trace.window(found));
            Some(Kept::new(trace.path().to_owned(), window, metadata, stream))
        })
    }

    /// The number of bytes in the files of this name.
    pub(super) fn length(&self, file: &str) -> u64 {
        let lengths = self.directories.iter().flatten().filter_map(|directory| directory.join(file).metadata().ok());
        let streams = self.traces.iter().flat_map(DtTrace::streams).filter(|stream| stream.name == file);
        let slots = streams.flat_map(|stream| stream.parts.iter()).map(|part| part.length);
        lengths.map(|file| file.len()).chain(slots).fold(0, u64::saturating_add)
    }
}

/// A stream of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamId {
    pub(super) uuid: [u8; 16],
    pub(super) class: u32,
    pub(super) instance: u64,
}

/// A stream that a sink has kept, read packet by packet.
#[derive(Debug)]
pub(super) struct Kept {
    path: PathBuf,
    window: Window,
    state: State,
    offset: u64,
    stream: StreamId,
    /// The files that continue it.
    files: VecDeque<PathBuf>,
}

impl Kept {
    fn new(path: PathBuf, mut window: Window, metadata: &Metadata, stream: StreamId) -> Self {
        let offset = window.first();
        Self { path, window, state: State::new(metadata.slots()), offset, stream, files: VecDeque::new() }
    }

    /// The next whole packet. A partial packet is reported and left out; so is the rest of a file behind bytes that are not a packet.
    pub(super) fn next(&mut self, metadata: &Metadata, journal: &mut Journal) -> Option<Vec<u8>> {
        loop {
            if let Some(packet) = self.next_in_file(metadata, journal) {
                return Some(packet);
            }
            let path = self.files.pop_front()?;
            match FileWindow::open(&path) {
                Ok(window) => {
                    let files = std::mem::take(&mut self.files);
                    *self = Self { files, ..Self::new(path, Window::File(window), metadata, self.stream) };
                }
                Err(error) => journal.wrong(format!("{}: {error}", path.display())),
            }
        }
    }

    fn next_in_file(&mut self, metadata: &Metadata, journal: &mut Journal) -> Option<Vec<u8>> {
        let at = self.offset;
        let file = self.path.display().to_string();
        let rest = self.window.length().saturating_sub(at);
        match self.head(metadata) {
            Ok(Some(packet)) => {
                let size = packet.size();
                let bytes =
                    self.window.bytes(at, size as usize).map(|bytes| bytes.get(..size as usize).map(<[u8]>::to_vec));
                self.offset = self.window.following(at, size);
                match bytes {
                    Ok(Some(bytes)) => return Some(bytes),
                    Ok(None) => journal.note(format!("{file}: byte {at}: cut short while it was read")),
                    Err(error) => journal.wrong(format!("{file}: byte {at}: {error}")),
                }
            }
            Ok(None) if rest > 0 => {
                journal.note(format!("{file}: its last {rest} bytes are a part of a packet, and left out"));
            }
            Ok(None) => {}
            Err(reason) => journal.wrong(format!("{file}: byte {at}: {reason}; the rest of it is left out")),
        }
        self.offset = self.window.length();
        None
    }

    /// The header of the packet at the offset; `None` if the file ends before the packet does.
    fn head(&mut self, metadata: &Metadata) -> Result<Option<Packet>, String> {
        let length = self.window.length();
        if self.offset >= length {
            return Ok(None);
        }
        let packet = match Packet::open(&mut self.window, metadata, &mut self.state, self.offset) {
            Ok(packet) => packet,
            Err(fault) if fault.short => return Ok(None),
            Err(fault) => return Err(fault.reason),
        };
        let StreamId { uuid, class, instance } = self.stream;
        if (packet.uuid, packet.instance) != (Some(uuid), Some(instance)) || packet.class.id != u64::from(class) {
            return Err("a packet of another trace or stream".to_owned());
        }
        if packet.size() > MAX_PACKET {
            return Err(format!("a packet of {} bytes, more than any channel has", packet.size()));
        }
        Ok((packet.size() <= length - self.offset).then_some(packet))
    }
}
