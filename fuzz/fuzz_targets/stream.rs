//! A stream file with checksums: lengths of packets in two bytes each, up to a 0, then a bit to flip, then the bytes of the packets. Its
//! reading ends, and finds the flip.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::fs;
use std::sync::LazyLock;
use tracepoint_reader::internal::{ChecksumResult, check, seal};
use tracepoint_reader::{Metadata, Step, StreamReader};

const METADATA: &str = include_str!("../../reader/tests/golden/v1/clean/metadata");
/// Size of the header of a packet.
const HEADER: usize = 96;

static FILE: LazyLock<tempfile::NamedTempFile> = LazyLock::new(|| tempfile::NamedTempFile::new().unwrap());

fuzz_target!(|bytes: &[u8]| {
    let metadata = Metadata::parse(METADATA.as_bytes()).unwrap();
    let mut rest = bytes;
    let mut next = || {
        let (word, more) = rest.split_first_chunk()?;
        rest = more;
        Some(usize::from(u16::from_le_bytes(*word)))
    };
    let lengths: Vec<usize> = std::iter::from_fn(|| next().filter(|length| *length > 0)).take(64).collect();
    let Some(flip) = next() else { return };
    let mut file = Vec::new();
    for length in lengths {
        let (packet, more) = rest.split_at(length.min(rest.len()));
        rest = more;
        let begin = file.len();
        file.extend_from_slice(packet);
        seal(&mut file[begin..]);
        if packet.len() >= HEADER {
            assert_eq!(check(&file[begin..]), ChecksumResult::Good);
            let bit = flip % (packet.len() * 8);
            file[begin + bit / 8] ^= 1 << (bit % 8);
            assert!(check(&file[begin..]).is_wrong());
            file[begin + bit / 8] ^= 1 << (bit % 8);
        }
    }
    fs::write(FILE.path(), &file).unwrap();
    let mut last = None;
    for step in StreamReader::new(&metadata, FILE.path()) {
        if let Step::Begin(packet) = step {
            assert!(last < Some(packet.offset), "packets are in order");
            last = Some(packet.offset);
        }
    }
});
