//! The checksums of metadata. They are comments in it, which other readers ignore.
//!
//! The metadata of a trace grows part by part, and each part written by this tracer ends with the line `/*crc32c LENGTH SUM*/`: the number of bytes
//! before it, back to the previous checksum, and their CRC-32C in eight hexadecimal digits. A part can thus be made without the previous ones, and
//! every prefix of the metadata that a chunk or a stream has at some time contains all of its checksums.

use std::fmt::Write;

const BEGIN: &[u8] = b"/*crc32c ";
const END: &[u8] = b"*/";

/// Appends its checksum to a part of the metadata. The part ends with a line feed, or is empty.
pub fn with_checksum(mut part: String) -> String {
    if !part.is_empty() {
        // Writing to a string cannot fail.
        let _ = writeln!(part, "/*crc32c {} {:08x}*/", part.len(), crc32c::crc32c(part.as_bytes()));
    }
    part
}

/// The result of verifying the checksums of metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MetadataChecksum {
    /// There are none: the metadata is from an older version or another tracer.
    Unknown,
    Good,
    /// The metadata has been altered; the reason.
    Wrong(String),
}

/// Verifies the checksums in the text.
pub(super) fn check(text: &[u8]) -> MetadataChecksum {
    let (mut at, mut begin, mut any) = (0, 0, false);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if let Some(rest) = line.strip_prefix(BEGIN) {
            let part = &text[begin..at];
            match parse(rest) {
                Some((length, sum)) if length == part.len() && sum == crc32c::crc32c(part) => {}
                Some(_) => {
                    let (length, sum) = (part.len(), crc32c::crc32c(part));
                    return MetadataChecksum::Wrong(format!(
                        "its bytes have changed since they were written: the {length} bytes from byte {begin} on have the checksum {sum:08x}, \
                         and not the one that follows them"
                    ));
                }
                None => {
                    return MetadataChecksum::Wrong(format!(
                        "its bytes have changed since they were written: byte {at} has no whole checksum"
                    ));
                }
            }
            (begin, any) = (at + line.len(), true);
        }
        at += line.len();
    }
    match text[begin..].trim_ascii().len() {
        _ if !any => MetadataChecksum::Unknown,
        0 => MetadataChecksum::Good,
        length => MetadataChecksum::Wrong(format!(
            "its last {length} bytes have no checksum: they have changed, or are not whole"
        )),
    }
}

/// Parses the length and the sum in the rest of a line.
fn parse(line: &[u8]) -> Option<(usize, u32)> {
    let text = str::from_utf8(line.strip_suffix(b"\n")?.strip_suffix(END)?).ok()?;
    let (length, sum) = text.split_once(' ')?;
    let has_digits = |text: &str, base| !text.is_empty() && text.chars().all(|digit| digit.is_digit(base));
    let is_whole = has_digits(length, 10) && sum.len() == 8 && has_digits(sum, 16);
    is_whole.then_some(())?;
    Some((length.parse().ok()?, u32::from_str_radix(sum, 16).ok()?))
}

/// Returns the changed text with one checksum for all of it in place of the original ones; without one if the original checksums are missing or
/// wrong.
pub(crate) fn made_anew(original: &[u8], changed: Vec<u8>) -> Vec<u8> {
    if check(original) != MetadataChecksum::Good {
        return changed;
    }
    let lines = changed.split_inclusive(|byte| *byte == b'\n').filter(|line| !line.starts_with(BEGIN));
    let mut text = lines.collect::<Vec<_>>().concat();
    let line = format!("/*crc32c {} {:08x}*/\n", text.len(), crc32c::crc32c(&text));
    text.extend_from_slice(line.as_bytes());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> String {
        let parts = ["/* CTF 1.8 */\ntrace { major = 1; };\n", "event { id = 0; };\n", "", "env {\n\ta = \"b\";\n};\n"];
        parts.map(|part| with_checksum(part.to_owned())).concat()
    }

    #[test]
    fn each_part_has_a_checksum_and_any_changed_bit_is_found() {
        let text = parts();
        assert_eq!(check(text.as_bytes()), MetadataChecksum::Good);
        assert_eq!(check(format!("{text}\n \t\n").as_bytes()), MetadataChecksum::Good);
        for bit in 0..text.len() * 8 {
            let mut changed = text.clone().into_bytes();
            changed[bit / 8] ^= 1 << (bit % 8);
            let found = check(&changed);
            // Hexadecimal digits may be in either case, which is not a change.
            let is_case = (changed[bit / 8] ^ 0x20) == text.as_bytes()[bit / 8] && changed[bit / 8].is_ascii_hexdigit();
            assert!(matches!(found, MetadataChecksum::Wrong(_)) || is_case, "bit {bit}: {found:?}");
        }
    }

    #[test]
    fn metadata_without_checksums_is_unknown_and_a_part_without_one_is_wrong() {
        assert_eq!(check(b""), MetadataChecksum::Unknown);
        assert_eq!(check(b"/* CTF 1.8 */\n/* crc32c 5 12345678 */\n"), MetadataChecksum::Unknown);
        for tail in
            ["event { id = 1; };\n", "/*crc32c 0 0000000*/\n", "/*crc32c +0 00000000*/\n", "/*crc32c 0 00000001*/\n"]
        {
            assert!(matches!(check((parts() + tail).as_bytes()), MetadataChecksum::Wrong(_)), "{tail}");
        }
    }

    #[test]
    fn changed_text_gets_one_checksum_unless_it_was_wrong_before() {
        let text = parts();
        let changed = text.replace("major = 1", "major = 10").into_bytes();
        assert!(matches!(check(&changed), MetadataChecksum::Wrong(_)));
        let made = made_anew(text.as_bytes(), changed.clone());
        assert_eq!(check(&made), MetadataChecksum::Good);
        assert_eq!(made.windows(BEGIN.len()).filter(|window| *window == BEGIN).count(), 1);
        assert_eq!(made_anew(&changed, changed.clone()), changed);
        assert_eq!(made_anew(b"old", b"new".to_vec()), b"new");
    }
}
