//! Any bytes as the `format` file of a kernel event and, after a NUL, as a ring buffer of perf: each sample gives bytes for each field.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tracepoint_reader::kernel::{EventFormat, PerfRecord, PerfRecords};

fuzz_target!(|bytes: &[u8]| {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let format = EventFormat::parse(&String::from_utf8_lossy(&bytes[..end]));
    for record in PerfRecords::new(bytes.get(end + 1..).unwrap_or_default()) {
        let Ok(PerfRecord::Sample(sample)) = record else { continue };
        let _ = sample.number();
        for field in format.iter().flat_map(|format| &format.fields) {
            assert!(field.bytes(&sample.raw).len() <= sample.raw.len());
        }
    }
});
