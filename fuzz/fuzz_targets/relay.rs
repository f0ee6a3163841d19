//! Any bytes as commands of a sender, answers of a relay, and entries of an index file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tracepoint_wire::Decoded;
use tracepoint_wire::relay::{Command, ControlHeader, DataHeader, IndexFile, MINOR_WITH_CHUNKS, Reply};

/// Maximum payload; larger ones are refused because of their size.
const MAX: u64 = 1 << 16;

fuzz_target!(|bytes: &[u8]| {
    let Some((&minor, mut rest)) = bytes.split_first() else { return };
    let minor = u32::from(minor % 16);
    if let Some(header) = rest.first_chunk() {
        assert_eq!(DataHeader::decode(header).encode(), *header);
    }
    if let Some(format) = rest.first_chunk().and_then(IndexFile::of_header) {
        let entries = rest[IndexFile::HEADER..].chunks(format.entry_size()).filter_map(|bytes| format.entry(bytes));
        assert!(entries.count() <= rest.len() / format.entry_size());
    }
    loop {
        match Command::decode(rest, minor, MAX) {
            Ok(Decoded::Whole(command, size)) => {
                assert!(size >= ControlHeader::SIZE && size <= rest.len());
                // A decoded command is encoded to bytes that decode to the same command, without trailing bytes and padding. Names that were not
                // UTF-8 may be too long for the fixed fields of lower minor versions, and are cut.
                let mut out = Vec::new();
                command.encode(minor, &mut out);
                let again = Command::decode(&out, minor, u64::MAX);
                assert!(
                    again.is_ok()
                        && (minor < MINOR_WITH_CHUNKS || again == Ok(Decoded::Whole(command.clone(), out.len())))
                );
                rest = &rest[size..];
                match Reply::decode(&command, rest, minor) {
                    Ok(Decoded::Whole(_, size)) => assert!(size <= rest.len()),
                    Ok(Decoded::Needs(size)) => assert!(size > rest.len() && size < 1 << 13),
                    Err(error) => assert!(!error.to_string().is_empty()),
                }
            }
            Ok(Decoded::Needs(size)) => {
                assert!(size > rest.len() && size as u64 <= MAX + ControlHeader::SIZE as u64);
                return;
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                return;
            }
        }
    }
});
