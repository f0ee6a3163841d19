//! A file that is truncated while it is written: the program continues, and entries that it writes later can be read.

use datatrace::{DtReader, Layout, TraceOptions, Version};
use std::fs::File;

#[test]
fn a_truncated_file_continues_from_its_end() {
    own_process!();
    for version in [Version::ByteStream, Version::Framed] {
        for (length, maps_header) in [(0, true), (7, true), (20, true), (30, true), (0, false)] {
            let (_alone, place) = crate::object::alone();
            let options = TraceOptions::new(Layout::new(48, 2).version(version)).directory(place.path());
            let options = if maps_header { options.map_header() } else { options };
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

/// The handler of SIGBUS.
fn handler() -> usize {
    // SAFETY: an action is integers and a pointer that may be null, of which zero is a value; the call changes nothing but `action`.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        assert_eq!(libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut action), 0);
        action.sa_sigaction
    }
}

#[test]
fn a_signal_handler_is_installed_on_request_only() {
    own_process!();
    let before = handler();
    let (_alone, place) = crate::object::alone();
    let options = TraceOptions::new(Layout::new(48, 2)).directory(place.path());
    let write = |options: TraceOptions, name: &str| {
        let object = options.create(name).unwrap();
        object.trace1(1u64).unwrap();
        object.flush(true).unwrap();
    };
    write(options.clone(), "unasked");
    assert_eq!(handler(), before);
    write(options.map_header(), "asked");
    assert_ne!(handler(), before, "the header of a file in {} is mapped", place.path().display());
}
