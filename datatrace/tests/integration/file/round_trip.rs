//! After each call of any sequence, the file equals a plain model, according to the independent decoder and the crate.

use crate::file::independent::{self, Decoded};
use crate::file::model::{Model, Operation};
use crate::file::run::{Case, case, run, writer};
use datatrace::{DtReader, Header, ReadError, Version};
use proptest::prelude::*;
use std::io::Read;

/// The contents read by the crate, in the form of the independent decoder.
pub(crate) fn read(bytes: &[u8]) -> Decoded {
    let reader = DtReader::from_bytes(bytes.to_vec()).unwrap();
    let header: [u8; 20] = reader.header().to_bytes();
    let fields = std::array::from_fn(|n| i32::from_le_bytes(header[4 * n..4 * n + 4].try_into().unwrap()));
    let mut decoded = Decoded { header: fields, slots: Vec::new(), torn: Vec::new(), postambles: Vec::new() };
    for slot in reader.slots() {
        let slot = match slot {
            Ok(slot) => slot,
            Err(ReadError::Damaged { slot, .. }) => {
                decoded.torn.push(slot as usize);
                continue;
            }
            Err(other) => panic!("{other}"),
        };
        let mut streamed = Vec::new();
        slot.reader().read_to_end(&mut streamed).unwrap();
        assert_eq!(streamed, slot.bytes().unwrap());
        decoded.slots.push((slot.index() as usize, streamed));
    }
    reader.postambles().read_to_end(&mut decoded.postambles).unwrap();
    assert_eq!(reader.postamble_size(), decoded.postambles.len() as u64);
    decoded
}

proptest! {
    #![proptest_config(crate::random())]

    #[test]
    fn a_file_equals_the_model(case in case()) {
        let (mut writer, file) = writer(&case);
        let mut model = Model::new(case.version, case.logsize as usize, case.filesize as usize, case.full_size);
        for operation in &case.operations {
            prop_assert_eq!(run(&mut writer, operation).is_ok(), model.run(operation));
            let bytes = file.0.borrow().bytes.clone();
            let expected = model.decoded();
            prop_assert_eq!(&independent::decode(&bytes), &expected);
            prop_assert_eq!(&read(&bytes), &expected);
            prop_assert_eq!(writer.buffered(), model.buffer.len());
            // The bytes after the slots are exactly the postambles.
            let location = writer.postamble_location();
            prop_assert_eq!(Header::from_bytes(bytes[..20].try_into().unwrap()).unwrap().postamble_location(), location);
            prop_assert_eq!(bytes.len() as u64, location + expected.postambles.len() as u64);
        }
        drop(writer);
        model.run(&Operation::Flush(true));
        prop_assert_eq!(independent::decode(&file.0.borrow().bytes), model.decoded());
    }

    /// Entries of one size are read back as written, across slots and wraps.
    #[test]
    fn entries_round_trip(
        framed: bool,
        logsize in 3u32..20,
        filesize in 1u32..6,
        size in 1usize..12,
        count in 0u8..60,
    ) {
        let version = if framed { Version::Framed } else { Version::ByteStream };
        let logsize = 4 * logsize + u32::from(!framed);
        let case = Case { version, logsize, filesize, full_size: false, operations: Vec::new() };
        let (mut writer, file) = writer(&case);
        let fits = size <= logsize as usize - version.frame_size();
        for number in 0..count {
            prop_assert_eq!(writer.trace_buf(&vec![number; size]).is_ok(), fits);
        }
        writer.flush(false).unwrap();
        let bytes = file.0.borrow().bytes.clone();
        let reader = DtReader::from_bytes(bytes.clone()).unwrap();
        // In a byte stream that has wrapped, the first complete entry begins after the rest of another one.
        let total = u64::from(count) * size as u64;
        let held = reader.slots().map(|slot| u64::from(slot.unwrap().len())).sum::<u64>();
        let skip = if framed || !fits { 0 } else { (total - held).next_multiple_of(size as u64) - (total - held) };
        if let Some(first) = reader.first_entry(size) {
            prop_assert_eq!(first, if fits { skip } else { 0 });
        } else {
            let last = reader.header().last().map(|last| last.size);
            prop_assert!(!framed && last == Some(logsize), "it ends with an entry: {:?}", reader.header());
        }
        let mut entries = reader.entries(size, skip);
        let numbers: Vec<_> = entries.by_ref().map(|entry| {
            let entry = entry.unwrap();
            assert!(entry.bytes.iter().all(|byte| *byte == entry.bytes[0]), "an entry of two: {entry:?}");
            assert_eq!(bytes[entry.offset as usize], entry.bytes[0], "its offset");
            entry.bytes[0]
        }).collect();
        prop_assert_eq!(entries.rest(), 0);
        let last = if fits { count } else { 0 };
        prop_assert_eq!(&numbers, &(last - numbers.len() as u8..last).collect::<Vec<_>>());
        if fits && !framed {
            prop_assert_eq!(numbers.len() as u64, (held - skip.min(held)) / size as u64);
        }
    }
}
