//! Bytes that are not a valid dt file: errors name offset and reason, nothing panics, and valid slots can be read.

use crate::file::round_trip::read;
use datatrace::{DtReader, DtWriter, Error, Layout, ReadError, Version};
use proptest::prelude::*;

fn header(fields: [i32; 5]) -> Vec<u8> {
    fields.iter().flat_map(|field| field.to_le_bytes()).collect()
}

#[test]
fn an_invalid_header_is_an_error_that_names_the_field() {
    let cases: [(&[u8], &str); 13] = [
        (&[], "dt file: byte 0: the file ends in its header of 20 bytes"),
        (&header([1, 10, 0, -1, 0])[..19], "dt file: byte 19: the file ends in its header of 20 bytes"),
        (
            b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\0\0\0\0",
            "dt file: byte 0: this is no dt file: its version is 1179403647",
        ),
        (&header([1 << 24, 10, 0, -1, 0]), "dt file: byte 0: the numbers are big-endian"),
        (&header([1, 0, 0, -1, 0]), "dt file: byte 4: bufferSize is 0; it must be more than 0"),
        (&header([2, 8, 0, -1, 0]), "dt file: byte 4: bufferSize is 8; it must be more than 8"),
        (&header([1, -5, 0, -1, 0]), "dt file: byte 4: bufferSize is -5; it must be more than 0"),
        (&header([1, 10, -1, -1, 0]), "dt file: byte 8: numberBuffers is -1; it cannot be negative"),
        (&header([1, 10, 3, 3, 1]), "dt file: byte 12: lastBufferIdx is 3; with 3 slots it must be from -1 to 2"),
        (&header([1, 10, 3, -2, 1]), "dt file: byte 12: lastBufferIdx is -2; with 3 slots it must be from -1 to 2"),
        (&header([1, 10, 3, -1, 0]), "dt file: byte 12: lastBufferIdx is -1, with 3 slots in a byte stream"),
        (&header([1, 10, 3, 0, 11]), "dt file: byte 16: lastBufferSize is 11; it must be 0, or from 1 to 10"),
        (&header([1, 10, 0, -1, 4]), "dt file: byte 16: lastBufferSize is 4, and no slot is written"),
    ];
    for (bytes, expected) in cases {
        let error = DtReader::from_bytes(bytes.to_vec()).unwrap_err();
        assert!(matches!(error, ReadError::Header { .. }));
        assert!(error.to_string().starts_with(expected), "{error}");
        assert!(error.to_string().ends_with("; name a dt file whose header is whole"), "{error}");
    }
}

/// The damage found, and the number of readable slots.
fn damage(bytes: Vec<u8>) -> (Vec<String>, usize) {
    let reader = DtReader::from_bytes(bytes).unwrap();
    let (whole, damaged): (Vec<_>, Vec<_>) = reader.slots().partition(Result::is_ok);
    (damaged.into_iter().map(|error| error.unwrap_err().to_string()).collect(), whole.len())
}

#[test]
fn a_truncated_file_is_read_as_far_as_it_reaches() {
    // Five slots of ten bytes, slot 1 written last: 2 3 4 0 1 is their order.
    let mut bytes = header([1, 10, 5, 1, 4]);
    bytes.extend(0..50u8);
    assert_eq!(damage(bytes.clone()), (vec![], 5));
    let cut = |length| damage(bytes[..length].to_vec());
    assert_eq!(cut(65), (vec!["dt file: slot 4, byte 65: the file ends after 5 of 10 bytes".into()], 4));
    assert_eq!(
        cut(50),
        (vec!["dt file: slot 3, byte 50: it and all to slot 4 are missing: the file ends here".into()], 3)
    );
    let (damaged, whole) = cut(34);
    assert_eq!(damaged, ["dt file: slot 2, byte 34: it and all to slot 4 are missing: the file ends here",]);
    assert_eq!(whole, 2);
}

#[test]
fn a_header_with_excessive_counts_ends_at_the_file_size() {
    let (damaged, whole) = damage(header([1, i32::MAX, i32::MAX, 1000, 1]));
    assert_eq!(whole, 0);
    assert_eq!(damaged.len(), 2, "one up to the end of the file, one for the newer ones: {damaged:?}");
    let (damaged, whole) = damage(header([2, i32::MAX, i32::MAX, -1, 0]));
    assert_eq!((whole, damaged.len()), (0, 1));
}

#[test]
fn a_changed_byte_in_a_framed_slot_is_reported() {
    let file = crate::file::memory::Memory::default();
    let mut writer = DtWriter::create(file.clone(), Layout::new(24, 4).version(Version::Framed)).unwrap();
    (0..9u64).try_for_each(|n| writer.trace1(n)).unwrap();
    writer.flush(false).unwrap();
    let bytes = file.0.borrow().bytes.clone();
    assert_eq!(damage(bytes.clone()), (vec![], 4));
    let mut changed = bytes.clone();
    changed[20 + 24 + 8] ^= 1;
    let (damaged, whole) = damage(changed);
    assert_eq!(whole, 3);
    assert!(damaged[0].starts_with("dt file: slot 1, byte 44: its 16 bytes do not have the checksum"), "{damaged:?}");
    let mut changed = bytes;
    changed[20 + 24] = 17;
    let (damaged, whole) = damage(changed);
    assert_eq!(whole, 3);
    assert_eq!(damaged, ["dt file: slot 1, byte 44: its frame tells 17 bytes; it must be from 1 to 16"]);
}

#[test]
fn invalid_sizes_are_refused() {
    let refused = |layout| DtWriter::create(crate::file::memory::Memory::default(), layout).unwrap_err().to_string();
    let framed = |logsize, filesize| Layout::new(logsize, filesize).version(Version::Framed);
    assert!(refused(Layout::new(0, 3)).starts_with("logsize (bytes of a buffer) is 0; it must be from 1 to"));
    assert!(refused(Layout::new(10, 0)).starts_with("filesize (buffers in the file) is 0; it must be from 1 to"));
    assert!(refused(Layout::new(u32::MAX, 1)).contains("it must be from 1 to 268435456"));
    assert!(refused(Layout::new(10, u32::MAX)).contains("it must be from 1 to 2147483647"));
    assert!(refused(Layout::new(1 << 28, 1 << 28)).starts_with("logsize times filesize (bytes of the file)"));
    assert!(refused(framed(8, 3)).contains("it must be from 9 to"));
    assert!(refused(framed(21, 3)).contains("multiple of 4"));
    assert!(refused(Layout::new(10, 3).full_size()).starts_with("full_size needs a framed file"));
}

#[test]
fn an_oversized_entry_is_refused_and_the_others_stay() {
    for (version, most) in [(Version::ByteStream, 20), (Version::Framed, 12)] {
        let file = crate::file::memory::Memory::default();
        let mut writer = DtWriter::create(file.clone(), Layout::new(20, 3).version(version)).unwrap();
        writer.trace1(7u8).unwrap();
        let error = writer.trace_buf(&[0; 21]).unwrap_err();
        assert!(matches!(error, Error::EntryTooLarge { length: 21, most: reported } if reported == most), "{error}");
        assert!(matches!(writer.trace(datatrace::pack!(0u128, 0u64)), Err(Error::EntryTooLarge { .. })));
        writer.flush(false).unwrap();
        assert_eq!(read(&file.0.borrow().bytes).slots, [(0, vec![7])]);
    }
}

proptest! {
    #![proptest_config(crate::random())]

    #[test]
    fn any_bytes_are_read_or_refused(
        version in 0i32..4,
        sizes in prop::array::uniform4(-3i32..40),
        rest in prop::collection::vec(prop_oneof![Just(0u8), any::<u8>()], 0..300),
    ) {
        let [a, b, c, d] = sizes;
        let mut bytes = header([version, a, b, c, d]);
        bytes.extend(rest);
        if let Ok(reader) = DtReader::from_bytes(bytes) {
            let slots = reader.slots().count();
            prop_assert!(slots as u64 <= u64::from(reader.header().number_buffers()));
            for entry in reader.entries(5, 3) {
                prop_assert!(entry.map_or(true, |entry| entry.bytes.len() == 5));
            }
            prop_assert!(reader.tagged_postambles().all(|tagged| tagged.is_ok()));
            let _ = reader.format();
        }
    }
}
