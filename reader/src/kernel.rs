//! Decoders for Linux tracepoint data: the `format` files of tracefs, and the records of perf's ring buffers.
//!
//! ```text
//!   events/SYSTEM/EVENT/format ──▶ EventFormat: the fields of the raw bytes, by offset and size
//!   bytes of a ring buffer     ──▶ PerfRecords: samples with time, thread and raw bytes, and counts of lost samples
//! ```
//!
//! Both are untrusted input: lengths are checked, and no input causes a panic. Numbers are little-endian.

mod format;
mod perf;

pub use format::{EventFormat, FormatError, KernelField, KernelInteger, KernelType, Place};
pub use perf::{
    CodeMapping, MalformedRecord, PerfRecord, PerfRecords, SAMPLE_TYPE, Sample, recorded_thread, recording_ended,
};
