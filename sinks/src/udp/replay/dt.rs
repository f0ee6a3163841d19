//! Reads the packets of a dt file, sorted by begin time.

use super::Description;
use crate::udp::server::Packet;
use tracepoint_reader::dt::{DtPacket, DtTrace};
use tracepoint_reader::{Damage, PacketDecoder};

/// Pushes all packets. Returns `false` if `push` accepts no more.
pub(super) fn run(
    trace: &DtTrace,
    description: &Description,
    push: &mut dyn FnMut(Packet) -> bool,
    damaged: &mut dyn FnMut(Damage),
) -> bool {
    trace.damage().iter().cloned().for_each(&mut *damaged);
    for packet in trace.packets() {
        match read(packet, description) {
            Ok(packet) => {
                if !push(packet) {
                    return false;
                }
            }
            Err(reason) => damaged(Damage::new(trace.path(), packet.offset(), reason)),
        }
    }
    true
}

fn read(packet: DtPacket<'_>, description: &Description) -> Result<Packet, String> {
    let bytes = packet.bytes();
    let mut bytes = bytes.ok_or("a packet cannot be read, or was overwritten since the file was opened")?;
    if description.sizes.is_some() {
        let content = PacketDecoder::new(&description.metadata, &bytes).map(|decoder| decoder.packet().content_bits);
        bytes.truncate(content.map_err(|damage| damage.reason)?.div_ceil(8) as usize);
    }
    description.packet(packet.class(), packet.instance(), bytes)
}
