//! Opens the packets of a stream and compares them with their checksums.
//!
//! Nothing in a damaged packet is reliable, not even its size. The next packet is looked for where that size leads, and, if there is no sound packet,
//! at the next occurrences of the trace's magic and UUID.

use crate::checksum::{ChecksumResult, check_at};
use crate::decode::{Fault, State};
use crate::metadata::Metadata;
use crate::packet::Packet;
use crate::source::{FileWindow, Source};
use crate::window::Window;
use tracepoint_ring::channel::PACKET_MAGIC;

/// Maximum number of candidate positions for the next packet. Checking one may read the rest of the file.
const MAX_PLACES: u32 = 16;

/// A damaged packet.
#[derive(Debug)]
pub(crate) struct DamagedPacket {
    /// Its offset in the source, in bytes.
    pub(crate) offset: u64,
    pub(crate) reason: String,
    /// True if the source ends within its header.
    pub(crate) short: bool,
    /// Offset of the next packet, if it can be found.
    pub(crate) next: Option<u64>,
}

/// Opens the packet at `offset`, which is packet `number` of its file, counted from 1.
pub(crate) fn open(
    window: &mut Window,
    metadata: &Metadata,
    state: &mut State,
    offset: u64,
    number: u64,
) -> Result<Packet, DamagedPacket> {
    let before = state.clock;
    let found = checked(window, metadata, state, offset, number);
    let found = match (found, window.file()) {
        // The packet is cut off, unless other packets lie within its claimed size.
        (Ok(packet), Some(file)) if packet.size() > file.length() - offset && packet.is_checkable(metadata) => {
            match next_in_file(file, metadata, offset, 0) {
                Some(_) => {
                    let reason = format!(
                        "packet {number}: it claims {} bytes, and another packet begins within them",
                        packet.size()
                    );
                    Err((Fault { bit: 0, reason, short: false }, 0))
                }
                None => Ok(packet),
            }
        }
        (found, _) => found,
    };
    found.map_err(|(fault, size)| {
        state.clock = before;
        let next = match window.file() {
            Some(file) => next_in_file(file, metadata, offset, size),
            None => window.behind_damage(offset),
        };
        let next = next.filter(|next| *next < window.length());
        DamagedPacket { offset: offset + fault.bit / 8, short: fault.short, reason: fault.in_header(), next }
    })
}

/// The packet, or the fault and the packet's claimed size.
fn checked(
    source: &mut impl Source,
    metadata: &Metadata,
    state: &mut State,
    offset: u64,
    number: u64,
) -> Result<Packet, (Fault, u64)> {
    let mut packet = Packet::open(source, metadata, state, offset).map_err(|fault| (fault, 0))?;
    if !packet.is_checkable(metadata) {
        return Ok(packet);
    }
    // A packet that is cut off cannot be checked. It is decoded as far as it is present, and the decoder reports its end.
    let found = check_at(source, offset, packet.size()).ok().flatten();
    if let Some(reason) = found.and_then(ChecksumResult::damage) {
        let fault = Fault { bit: 0, reason: format!("packet {number}: {reason}"), short: false };
        return Err((fault, packet.size()));
    }
    packet.has_checksum = found.map(|found| found == ChecksumResult::Good);
    Ok(packet)
}

/// The next sound packet of a file after a damaged one.
fn next_in_file(file: &mut FileWindow, metadata: &Metadata, offset: u64, size: u64) -> Option<u64> {
    let is_sound = |file: &mut FileWindow, at: u64| {
        at == file.length() || checked(file, metadata, &mut State::new(metadata.slots()), at, 0).is_ok()
    };
    let claimed = offset.checked_add(size).filter(|next| *next > offset && *next <= file.length());
    if claimed.is_some_and(|next| is_sound(file, next)) {
        return claimed;
    }
    let mut begin = [0; 20];
    begin[..4].copy_from_slice(&PACKET_MAGIC.to_le_bytes());
    begin[4..].copy_from_slice(&metadata.uuid()?);
    let (mut at, mut places) = (offset + 1, 0);
    while places < MAX_PLACES {
        let bytes = file.bytes(at, begin.len()).ok()?;
        if bytes.len() < begin.len() {
            return None;
        }
        match bytes.windows(begin.len()).position(|bytes| bytes == begin) {
            Some(found) => {
                at += found as u64;
                places += 1;
                if is_sound(file, at) {
                    return Some(at);
                }
                at += 1;
            }
            None => at += (bytes.len() - begin.len() + 1) as u64,
        }
    }
    None
}
