//! The outputs of a process: the CTF directories and dt files of its sinks, which are listed in the file `outputs`.

#[cfg_attr(not(feature = "traces"), path = "outputs/no_dt_files.rs")]
mod dt_files;

use super::chunks;
use super::process_source::ProcessSource;
use super::removed::RemovedChunks;
use crate::checked_packet::{self, DamagedPacket};
use crate::decode::State;
use crate::directories::stream_files;
use crate::headers::Packets;
use crate::metadata::Metadata;
use crate::packet::Packet;
use crate::path_bytes;
use crate::source::{FileWindow, Source};
use crate::take::Journal;
use crate::window::Window;
use dt_files::DtFiles;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use tracepoint_ring::channel::StreamKey;

/// Maximum size of a packet, which is that of the largest packet of any channel.
const MAX_PACKET: u64 = 1 << 30;

/// The outputs that exist.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    /// The directory of each sink.
    directories: Vec<PathBuf>,
    dt_files: DtFiles,
}

impl Outputs {
    /// Reads the list of a process. Without a list, there were no such sinks.
    pub(super) fn read(source: ProcessSource<'_>, journal: &mut Journal) -> Self {
        let mut outputs = Self::default();
        let text = match source.outputs() {
            Ok(text) => text,
            Err(error) => {
                journal.wrong(error.to_string());
                return outputs;
            }
        };
        let path = source.path().join("outputs");
        for line in text.split(|byte| *byte == b'\n') {
            let Some(at) = line.iter().position(|byte| *byte == b' ') else {
                continue;
            };
            let output = path_bytes::path(&line[at + 1..]);
            match &line[..at] {
                b"ctf" | b"dt" if !output.is_absolute() => {
                    journal.wrong(format!("{}: `{}` is not an absolute path", path.display(), output.display()));
                }
                b"ctf" if output.is_dir() => outputs.directories.push(output),
                b"dt" if output.is_file() => {
                    outputs.dt_files.open(&output).unwrap_or_else(|error| journal.wrong(error.to_string()));
                }
                b"ctf" | b"dt" => journal.note(format!("the output {} does not exist any more", output.display())),
                _ => {}
            }
        }
        outputs
    }

    pub(super) fn is_empty(&self) -> bool {
        self.directories.is_empty() && self.dt_files.is_empty()
    }

    /// Each directory with its current chunks: a running session may begin further ones.
    fn directories(&self) -> impl Iterator<Item = Vec<PathBuf>> {
        self.directories.iter().map(|directory| chunks::of(directory))
    }

    /// The file of a stream in the first directory that contains it.
    pub(super) fn stream(
        &self,
        metadata: &Metadata,
        stream: StreamKey,
        file: &str,
        journal: &mut Journal,
    ) -> Option<KeptStream> {
        for directories in self.directories() {
            let mut files: VecDeque<_> =
                directories.iter().map(|directory| directory.join(file)).filter(|path| path.exists()).collect();
            while let Some(path) = files.pop_front() {
                match FileWindow::open(&path) {
                    Ok(window) => {
                        let mut kept = KeptStream::new(path, Window::of_file(window), metadata, stream);
                        if kept.find(metadata, journal).is_some() {
                            return Some(KeptStream { files, removed: RemovedChunks::of(&directories), ..kept });
                        }
                    }
                    Err(error) => journal.wrong(format!("{}: {error}", path.display())),
                }
            }
        }
        self.dt_files.stream(stream).map(|(path, window)| KeptStream::new(path.to_owned(), window, metadata, stream))
    }

    /// The chunks of the first output from which some were removed.
    pub(super) fn removed_chunks(&self) -> Option<RemovedChunks> {
        self.directories().find_map(|directories| RemovedChunks::of(&directories))
    }

    /// The streams of the trace `uuid` in the outputs, by class and instance, with the names of their files.
    pub(super) fn streams(&self, metadata: &Metadata, uuid: [u8; 16]) -> BTreeMap<(u32, u64), String> {
        let mut streams = BTreeMap::new();
        let mut add = |found: Option<[u8; 16]>, class: u64, instance: Option<u64>, name: String| {
            if let (true, Ok(class), Some(instance)) = (found == Some(uuid), u32::try_from(class), instance) {
                streams.entry((class, instance)).or_insert(name);
            }
        };
        for path in self.directories().flatten().filter_map(|directory| stream_files(&directory).ok()).flatten() {
            let first = Packets::open(metadata, &path).ok().and_then(|packets| packets.flatten().next());
            if let (Some(packet), Some(name)) = (first, path.file_name()) {
                add(packet.uuid, packet.class.id, packet.instance, name.to_string_lossy().into_owned());
            }
        }
        for (key, name) in self.dt_files.streams(uuid) {
            streams.entry(key).or_insert(name);
        }
        streams
    }

    /// The number of bytes in the files of this name.
    pub(super) fn length(&self, file: &str) -> u64 {
        let lengths = self.directories().flatten().filter_map(|directory| directory.join(file).metadata().ok());
        lengths.map(|file| file.len()).fold(self.dt_files.length(file), u64::saturating_add)
    }
}

/// A stream kept by a sink, read packet by packet.
#[derive(Debug)]
pub(super) struct KeptStream {
    path: PathBuf,
    window: Window,
    state: State,
    offset: u64,
    /// Number of packets before this position in the file.
    number: u64,
    stream: StreamKey,
    /// The files that continue it.
    files: VecDeque<PathBuf>,
    /// The removed chunks before it.
    pub(super) removed: Option<RemovedChunks>,
}

impl KeptStream {
    fn new(path: PathBuf, mut window: Window, metadata: &Metadata, stream: StreamKey) -> Self {
        let offset = window.first();
        let state = State::new(metadata.slots());
        Self { path, window, state, offset, number: 0, stream, files: VecDeque::new(), removed: None }
    }

    /// The next complete packet. A packet that is damaged or incomplete is reported and left out.
    pub(super) fn next(&mut self, metadata: &Metadata, journal: &mut Journal) -> Option<Vec<u8>> {
        loop {
            if let Some(packet) = self.next_in_file(metadata, journal) {
                return Some(packet);
            }
            let path = self.files.pop_front()?;
            match FileWindow::open(&path) {
                Ok(window) => {
                    let files = std::mem::take(&mut self.files);
                    *self = Self { files, ..Self::new(path, Window::of_file(window), metadata, self.stream) };
                }
                Err(error) => journal.wrong(format!("{}: {error}", path.display())),
            }
        }
    }

    fn next_in_file(&mut self, metadata: &Metadata, journal: &mut Journal) -> Option<Vec<u8>> {
        while let Some(size) = self.find(metadata, journal) {
            let at = self.offset;
            let bytes = self.window.bytes(at, size).map(|bytes| bytes.get(..size).map(<[u8]>::to_vec));
            self.offset = self.window.following(at, size as u64);
            self.number += 1;
            match bytes {
                Ok(Some(bytes)) => return Some(bytes),
                Ok(None) => journal.note(format!("{}: byte {at}: cut short while it was read", self.path.display())),
                Err(error) => journal.wrong(format!("{}: byte {at}: {error}", self.path.display())),
            }
        }
        None
    }

    /// Finds the next complete packet, which begins at the offset; returns its size.
    fn find(&mut self, metadata: &Metadata, journal: &mut Journal) -> Option<usize> {
        let (length, file) = (self.window.length(), self.path.display().to_string());
        while self.offset < length {
            let (at, rest, number) = (self.offset, length - self.offset, self.number + 1);
            match checked_packet::open(&mut self.window, metadata, &mut self.state, at, number) {
                Ok(packet) if !is_of(self.stream, &packet) || packet.size() > MAX_PACKET => {
                    let reason = "a packet of another trace or stream, or larger than any channel's";
                    journal.wrong(format!("{file}: byte {at}: {reason}; the rest of it is left out"));
                    self.offset = length;
                }
                Ok(packet) if packet.size() <= rest => return Some(packet.size() as usize),
                Ok(_) | Err(DamagedPacket { short: true, .. }) => {
                    journal.note(format!("{file}: its last {rest} bytes are a part of a packet, and left out"));
                    self.offset = length;
                }
                Err(DamagedPacket { offset, reason, next, .. }) => {
                    let left_out = if next.is_some() { "left out" } else { "the rest of it is left out" };
                    journal.wrong(format!("{file}: byte {offset}: {reason}; {left_out}"));
                    (self.offset, self.number) = (next.unwrap_or(length), number);
                }
            }
        }
        None
    }
}

/// True if the packet belongs to this stream.
fn is_of(stream: StreamKey, packet: &Packet) -> bool {
    (packet.uuid, packet.instance) == (Some(stream.uuid), Some(stream.instance))
        && packet.class.id == u64::from(stream.class)
}
