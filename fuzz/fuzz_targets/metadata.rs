//! Any bytes as the metadata of a trace, plain or packetised.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tracepoint_reader::metadata::{Metadata, Module};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(metadata) = Metadata::parse(bytes) {
        for stream in metadata.streams() {
            assert!(metadata.stream(stream.id).is_some());
        }
        for module in metadata.modules().filter_map(Module::parse) {
            assert_eq!(module.place(u64::MAX), None, "the end is outside");
        }
    }
});
