//! Serves a trace's metadata to a viewer: each declaration once, although a stock sender sends all metadata again with each trace chunk.
//!
//! A new chunk may divide the same text into packets differently, so a viewer's position is counted in bytes of *text*. If a packet has text on both
//! sides of that position, the viewer gets a packet with only the second part.

use crate::storage::Segment;
use crate::view::View;
use std::io;
use std::os::unix::fs::FileExt;

/// Size of a metadata packet's header in bytes.
const HEADER: usize = 37;
const MAGIC: u32 = 0x75D1_1D57;
/// Maximum number of bytes per answer.
const MAX: usize = 1 << 20;

/// A viewer's position in the metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MetadataCursor {
    segment: u64,
    offset: u64,
    /// Bytes of text before the offset, or before the end of earlier segments.
    text: u64,
}

pub(crate) fn has_more(view: &View, cursor: &MetadataCursor) -> bool {
    newest(view).is_some_and(|(number, segment)| number != cursor.segment || cursor.offset < segment.bytes)
}

fn newest(view: &View) -> Option<(u64, &Segment)> {
    view.metadata().last()
}

/// Returns the next bytes; empty if there are none. `uuid`, the trace's, goes into packets made from plain text. Reads all packet headers after a
/// rotation.
pub(crate) fn read(view: &View, uuid: [u8; 16], cursor: &mut MetadataCursor) -> io::Result<Vec<u8>> {
    let Some((number, segment)) = newest(view) else { return Ok(Vec::new()) };
    let mut out = Vec::new();
    if cursor.segment != number {
        // The new segment repeats all text of the earlier one, so unread text is found there.
        let delivered = match view.metadata().find(|(number, _)| *number == cursor.segment) {
            Some((_, earlier)) => skip(earlier, cursor.offset, u64::MAX, &mut out)?.text,
            None => cursor.text,
        };
        out.clear();
        let place = skip(segment, segment.bytes, delivered, &mut out)?;
        if place.text < delivered {
            return Ok(Vec::new());
        }
        *cursor = MetadataCursor { segment: number, offset: place.offset, text: delivered };
        if !out.is_empty() {
            return Ok(out);
        }
    }
    let left = segment.bytes.saturating_sub(cursor.offset);
    out.resize(usize::try_from(left).unwrap_or(MAX).min(MAX), 0);
    segment.data.read_exact_at(&mut out, cursor.offset)?;
    cursor.offset += out.len() as u64;
    if is_packetised(segment)? || out.is_empty() { Ok(out) } else { Ok(packet_of(uuid, &out)) }
}

fn is_packetised(segment: &Segment) -> io::Result<bool> {
    let mut magic = [0; 4];
    if segment.bytes < magic.len() as u64 {
        return Ok(false);
    }
    segment.data.read_exact_at(&mut magic, 0)?;
    Ok(magic == MAGIC.to_le_bytes() || magic == MAGIC.to_be_bytes())
}

/// Wraps plain text in a metadata packet. Stock viewers accept later pieces of text in no other form, and Babeltrace 1 rejects a packet whose uuid
/// differs from the one in the text.
fn packet_of(uuid: [u8; 16], text: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; HEADER];
    let bits = ((HEADER + text.len()) as u32 * 8).to_le_bytes();
    packet[..4].copy_from_slice(&MAGIC.to_le_bytes());
    packet[4..20].copy_from_slice(&uuid);
    packet[24..28].copy_from_slice(&bits);
    packet[28..32].copy_from_slice(&bits);
    packet[35..].copy_from_slice(&[1, 8]);
    packet.extend_from_slice(text);
    packet
}

struct Place {
    offset: u64,
    text: u64,
}

/// Returns the place after `text` bytes of text within the first `end` bytes. If it lies inside a packet, returns the place after that packet and
/// fills `rest` with a packet that contains the remaining text.
fn skip(segment: &Segment, end: u64, text: u64, rest: &mut Vec<u8>) -> io::Result<Place> {
    let mut place = Place { offset: 0, text: 0 };
    while place.offset < end && place.text < text {
        let mut header = [0; HEADER];
        let is_whole = segment.bytes - place.offset >= HEADER as u64;
        if is_whole {
            segment.data.read_exact_at(&mut header, place.offset)?;
        }
        let Some((content, packet)) = sizes(&header).filter(|_| is_whole) else {
            // Plain text.
            let length = (end - place.offset).min(text - place.text);
            return Ok(Place { offset: place.offset + length, text: place.text + length });
        };
        let length = content - HEADER as u64;
        if place.text + length > text {
            let kept = (place.text + length - text) as usize;
            let bits = in_order(&header, ((HEADER + kept) * 8) as u32);
            header[24..28].copy_from_slice(&bits);
            header[28..32].copy_from_slice(&bits);
            rest.extend_from_slice(&header);
            rest.resize(HEADER + kept, 0);
            segment.data.read_exact_at(&mut rest[HEADER..], place.offset + content - kept as u64)?;
            return Ok(Place { offset: place.offset + packet, text });
        }
        place = Place { offset: place.offset + packet, text: place.text + length };
    }
    Ok(place)
}

fn is_little(header: &[u8; HEADER]) -> bool {
    header[..4] == MAGIC.to_le_bytes()
}

fn in_order(header: &[u8; HEADER], word: u32) -> [u8; 4] {
    if is_little(header) { word.to_le_bytes() } else { word.to_be_bytes() }
}

/// Returns the sizes of content and packet in bytes, or `None` if this is not a metadata packet's header.
fn sizes(header: &[u8; HEADER]) -> Option<(u64, u64)> {
    let word = |at: usize| {
        let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
        u64::from(if is_little(header) { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    };
    let (content, packet) = (word(24) / 8, word(28) / 8);
    (word(0) == u64::from(MAGIC) && content >= HEADER as u64 && packet >= content).then_some((content, packet))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Files;
    use std::path::Path;
    use tracepoint_wire::relay::IndexFile;

    const UUID: [u8; 16] = *b"the trace's uuid";

    fn packet(text: &str, padding: usize) -> Vec<u8> {
        let mut bytes = vec![0; HEADER];
        bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[24..28].copy_from_slice(&((HEADER + text.len()) as u32 * 8).to_le_bytes());
        bytes[28..32].copy_from_slice(&((HEADER + text.len() + padding) as u32 * 8).to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
        bytes.resize(bytes.len() + padding, 0);
        bytes
    }

    fn text(bytes: &[u8]) -> String {
        let (mut out, mut rest) = (String::new(), bytes);
        while let Some(header) = rest.first_chunk() {
            let (content, packet) = sizes(header).expect("a packet");
            out.push_str(std::str::from_utf8(&rest[HEADER..content as usize]).expect("text"));
            rest = &rest[packet as usize..];
        }
        out
    }

    fn segment(directory: &Path, name: &str, bytes: &[u8]) -> Segment {
        let files = Files::create(&directory.join(name), IndexFile { is_long: true }, false).expect("files");
        std::fs::write(directory.join(name), bytes).expect("bytes");
        sized(&files.segment(), bytes.len() as u64)
    }

    fn sized(segment: &Segment, bytes: u64) -> Segment {
        let mut segment = segment.clone();
        segment.bytes = bytes;
        segment
    }

    #[test]
    fn each_declaration_is_delivered_once_over_rotations() -> io::Result<()> {
        let place = tempfile::tempdir()?;
        let whole = "abcdefghijklmnopqrstuvwxyz";
        for (read_before, cut) in [(0, 5), (1, 5), (2, 5), (2, 13), (2, 20), (2, 26)] {
            let first = segment(
                place.path(),
                &format!("a{read_before}{cut}"),
                &[packet("abcde", 3), packet("fghij", 0)].concat(),
            );
            let packets = [packet(&whole[..cut], 7), packet(&whole[cut..], 0)].concat();
            let second = segment(place.path(), &format!("b{read_before}{cut}"), &packets);
            let mut view = View::new(first.clone());
            let mut cursor = MetadataCursor::default();
            let mut got = String::new();
            if read_before > 0 {
                // The viewer may have read one of two packets.
                let part = View::new(sized(&first, if read_before == 1 { 45 } else { first.bytes }));
                got.push_str(&text(&read(&part, UUID, &mut cursor)?));
            }
            let (entries, bytes) = (0, first.bytes);
            view.will_open(sized(&second, 0));
            view.opened(entries, bytes, 0);
            assert!(read(&view, UUID, &mut { cursor })?.is_empty() || read_before == 0);
            view.stored_bytes(second.bytes);
            while has_more(&view, &cursor) {
                let bytes = read(&view, UUID, &mut cursor)?;
                assert!(!bytes.is_empty());
                got.push_str(&text(&bytes));
            }
            assert_eq!(got, whole, "{read_before} {cut}");
            assert!(read(&view, UUID, &mut cursor)?.is_empty());
        }
        Ok(())
    }

    #[test]
    fn plain_text_is_delivered_once() -> io::Result<()> {
        let place = tempfile::tempdir()?;
        let mut view = View::new(segment(place.path(), "a", b"/* CTF 1.8 */ first"));
        let mut cursor = MetadataCursor::default();
        let first = read(&view, UUID, &mut cursor)?;
        assert_eq!((text(&first), &first[4..20]), ("/* CTF 1.8 */ first".to_owned(), &UUID[..]));
        view.will_open(segment(place.path(), "b", b"/* CTF 1.8 */ first second"));
        view.opened(0, 19, 0);
        assert_eq!(text(&read(&view, UUID, &mut cursor)?), " second");
        assert!(!has_more(&view, &cursor));
        Ok(())
    }
}
