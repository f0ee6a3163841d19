//! Reads the packets of stream files, merged by time.

use super::Description;
use crate::udp::server::Packet;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tracepoint_reader::{Damage, Packets};

/// Maximum size of a packet that is served, in bytes.
const LONGEST_PACKET: u64 = 64 << 20;

/// One stream file.
struct OpenStream {
    path: PathBuf,
    file: File,
    packets: Packets,
    next: tracepoint_reader::Packet,
}

/// Pushes all packets. Returns `false` if `push` accepts no more.
pub(super) fn run(
    files: &[PathBuf],
    description: &Description,
    push: &mut dyn FnMut(Packet) -> bool,
    damaged: &mut dyn FnMut(Damage),
) -> bool {
    let mut streams = Vec::new();
    let mut order = BinaryHeap::new();
    for path in files {
        match OpenStream::open(description, path, damaged) {
            Ok(Some(stream)) => {
                order.push(Reverse((stream.next.begin, streams.len())));
                streams.push(stream);
            }
            Ok(None) => {}
            Err(damage) => damaged(damage),
        }
    }
    while let Some(Reverse((_, index))) = order.pop() {
        let Some(stream) = streams.get_mut(index) else { break };
        let packet = match stream.packet(description) {
            Ok(packet) => packet,
            Err(damage) => {
                damaged(damage);
                continue;
            }
        };
        if !push(packet) {
            return false;
        }
        if let Some(next) = next(&mut stream.packets, damaged) {
            stream.next = next;
            order.push(Reverse((stream.next.begin, index)));
        }
    }
    true
}

/// Returns the next undamaged packet.
fn next(packets: &mut Packets, damaged: &mut dyn FnMut(Damage)) -> Option<tracepoint_reader::Packet> {
    packets.find_map(|packet| packet.map_err(&mut *damaged).ok())
}

impl OpenStream {
    /// Opens a stream file; `None` if it is empty.
    fn open(description: &Description, path: &Path, damaged: &mut dyn FnMut(Damage)) -> Result<Option<Self>, Damage> {
        let damage = |reason: String| Damage::new(path, 0, reason);
        let file = File::open(path).map_err(|error| damage(format!("cannot be opened: {error}")))?;
        let mut packets = Packets::open(&description.metadata, path).map_err(|error| damage(error.to_string()))?;
        let next = next(&mut packets, damaged);
        Ok(next.map(|next| Self { path: path.to_owned(), file, packets, next }))
    }

    /// Reads the next packet.
    fn packet(&self, description: &Description) -> Result<Packet, Damage> {
        let offset = self.next.offset;
        let damage = |reason: String| Damage::new(&self.path, offset, reason);
        let content = self.next.content_bits.div_ceil(8);
        let size = if description.sizes.is_some() { content } else { self.next.size() };
        if size > LONGEST_PACKET {
            return Err(damage(format!("a packet of {size} bytes is too long to be served")));
        }
        let mut bytes = vec![0; size as usize];
        self.file.read_exact_at(&mut bytes, offset).map_err(|error| damage(format!("cannot be read: {error}")))?;
        description.packet(self.next.class.id, self.next.instance, bytes).map_err(damage)
    }
}
