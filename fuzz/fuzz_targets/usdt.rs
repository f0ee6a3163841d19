//! Any bytes as a program: its notes are refused, or can be read repeatedly with the same result.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tracepoint_reader::usdt::notes_of_bytes;

fuzz_target!(|bytes: &[u8]| {
    let Ok(notes) = notes_of_bytes(bytes) else { return };
    for note in &notes {
        assert_eq!(note.full_name().len(), note.provider.len() + 1 + note.name.len());
        assert!(note.arguments.iter().all(|argument| !argument.is_empty()));
        let fields = note.fields.iter().flatten();
        assert_eq!(note.is_by_address(), fields.map(|field| field.words()).sum::<usize>() > 12);
    }
    assert_eq!(notes_of_bytes(bytes).expect("read before"), notes);
});
