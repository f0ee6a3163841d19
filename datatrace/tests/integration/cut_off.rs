//! A file that is truncated while it is written: the program continues, and entries that it writes later can be read.

use datatrace::{DtReader, Layout, TraceOptions, Version};
use std::fs::File;

#[test]
fn a_truncated_file_continues_from_its_end() {
    own_process!();
    for version in [Version::ByteStream, Version::Framed] {
        for (length, positional) in [(0, false), (7, false), (20, false), (30, false), (0, true)] {
            let (_alone, place) = crate::object::alone();
            let options = TraceOptions::new(Layout::new(48, 2).version(version)).directory(place.path());
            let options = if positional { options.positional() } else { options };
            let object = options.create("cut").unwrap();
            object.trace_buf(&[b'a'; 30]).unwrap();
            object.flush(true).unwrap();
            for round in 0..2 {
                File::options().write(true).open(object.path()).unwrap().set_len(length).unwrap();
                for number in 0u64..20 {
                    object.trace1(number).unwrap();
                }
                object.flush(true).unwrap();
                let file = DtReader::open(object.path()).unwrap();
                assert_eq!(file.header(), &object.header().unwrap(), "{version:?} {length} {round}");
                let entries: Vec<u8> = file.slots().flat_map(|slot| slot.unwrap().bytes().unwrap()).collect();
                assert!(entries.ends_with(&19u64.to_le_bytes()) && entries.len() > 40, "{entries:?}");
            }
        }
    }
}
