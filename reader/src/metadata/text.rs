//! Extracts the text of a metadata file, which is plain or wrapped in packets.

use std::borrow::Cow;

/// Size of a metadata packet's header, in bytes.
const HEADER: usize = 37;
const MAGIC: u32 = 0x75D1_1D57;

/// The message for a trace of the next CTF version.
const CTF_2: &str = "this is CTF 2, and CTF 1.8 is what is understood; convert the trace (babeltrace2 2.1 does, by the parameter `ctf-version` \
                     of its component `sink.ctf.fs`)";

/// A fault in the packet framing, and its offset in the file.
pub(super) struct BadPacket {
    pub(super) offset: usize,
    pub(super) reason: String,
}

/// The text in `bytes`. Packets are joined, because a declaration may span them.
pub(super) fn unwrap(bytes: &[u8]) -> Result<Cow<'_, [u8]>, BadPacket> {
    let word = |at: usize| -> Option<[u8; 4]> { bytes.get(at..at + 4)?.try_into().ok() };
    let decode = match word(0) {
        Some(magic) if u32::from_le_bytes(magic) == MAGIC => u32::from_le_bytes,
        Some(magic) if u32::from_be_bytes(magic) == MAGIC => u32::from_be_bytes,
        // A JSON text sequence: each object has a record separator in front.
        _ if matches!(bytes.trim_ascii_start(), [0x1E | b'{', ..]) => {
            return Err(BadPacket { offset: 0, reason: CTF_2.to_owned() });
        }
        _ => return Ok(Cow::Borrowed(bytes)),
    };
    let mut text = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let bad = |reason: &str| BadPacket { offset: at, reason: format!("metadata packet: {reason}") };
        let header = bytes.get(at..at + HEADER).ok_or_else(|| bad("the file ends within its header"))?;
        let field = |from: usize| word(at + from).map_or(0, decode);
        if field(0) != MAGIC {
            return Err(bad("wrong magic number"));
        }
        if header[32..35] != [0, 0, 0] {
            return Err(bad("compressed, encrypted or checksummed metadata is not understood"));
        }
        if header[35..37] != [1, 8] {
            return Err(bad(if header[35] == 2 { CTF_2 } else { "not version 1.8; convert the trace to CTF 1.8" }));
        }
        let content = field(24) as usize / 8;
        let packet = field(28) as usize / 8;
        if content < HEADER || packet < content {
            return Err(bad("its sizes contradict each other"));
        }
        let body = bytes.get(at + HEADER..at + content).ok_or_else(|| bad("the file ends within its text"))?;
        text.extend_from_slice(body);
        at += packet;
    }
    Ok(Cow::Owned(text))
}
