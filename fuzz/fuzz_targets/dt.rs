//! Any bytes as a dt file: slots are within the file, in order, and each occurs once.

#![no_main]

use std::io::Read;

use datatrace::DtReader;
use libfuzzer_sys::fuzz_target;

/// Limits the slots of an input, because a large number would only make it slow.
const MAX_SLOTS: usize = 4096;

fuzz_target!(|bytes: &[u8]| {
    let Ok(reader) = DtReader::from_bytes(bytes.to_vec()) else {
        return;
    };
    let header = *reader.header();
    assert_eq!(header.to_bytes()[..], bytes[..20], "the header comes out as it went in");
    let number = u64::from(header.number_buffers());
    let mut last_age = None;
    for slot in reader.slots().take(MAX_SLOTS).flatten() {
        let age = (u64::from(slot.index()) + number - u64::from(header.oldest().unwrap())) % number;
        assert!(last_age < Some(age), "oldest first");
        last_age = Some(age);
        assert!(Some(slot.index()) != header.in_progress());
        let (start, length) = (slot.offset() as usize, slot.len() as usize);
        assert_eq!(slot.bytes().unwrap(), bytes[start..start + length]);
    }
    for size in [1, 7] {
        for entry in reader.entries(size, 3).take(MAX_SLOTS).flatten() {
            assert_eq!(entry.bytes.len(), size);
            assert_eq!(bytes[entry.offset as usize], entry.bytes[0]);
        }
    }
    let mut postambles = Vec::new();
    reader.postambles().read_to_end(&mut postambles).unwrap();
    let location = usize::try_from(reader.header().postamble_location()).unwrap_or(usize::MAX).min(bytes.len());
    assert_eq!(postambles, bytes[location..]);
    assert!(reader.tagged_postambles().all(|tagged| tagged.is_ok()));
    if let Ok(Some(format)) = reader.format() {
        for entry in reader.entries(format.size(), 0).take(MAX_SLOTS).flatten() {
            format.values(&entry.bytes).for_each(|(field, value)| drop(format!("{} = {value}", field.name)));
        }
    }
});
