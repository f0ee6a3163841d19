//! The records of a ring buffer of perf, whose events were opened with [`SAMPLE_TYPE`].
//!
//! | record | bytes, after type u32, misc u16, size u16 |
//! |---|---|
//! | sample (9) | pid u32, tid u32, time u64, cpu u32, reserved u32, weight u64, *stack*, size of the raw bytes u32, raw bytes |
//! | lost (2) | id u64, number of lost samples u64 |
//! | throttle (5), unthrottle (6) | time u64, id u64, stream id u64, *common* |
//! | mmap2 (10) | pid u32, tid u32, address u64, length u64, offset in the file u64, *build id*, 2 × u32, path, *common* |
//! | switch (14) | *common*; `misc` says whether the thread begins or ceases to run |
//!
//! *stack* is the number of addresses of the call stack, then the addresses, all u64. *build id* is its size u8, 3 bytes, and 20 bytes with the build id;
//! `misc` says whether there is one. *common* is pid u32, tid u32, time u64, cpu u32, reserved u32.
//!
//! A record other than a sample of a tracepoint becomes a sample with raw bytes of our own, with a number such as [`SWITCH`]. Records of other types are
//! skipped.

use std::borrow::Cow;
use thiserror::Error;

/// The contents of samples: `PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW`.
/// Without the period, the kernel would store an event with a weight many times.
pub const SAMPLE_TYPE: u64 = 1 << 1 | 1 << 2 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 10;

const LOST: u32 = 2;
const THROTTLE: u32 = 5;
const UNTHROTTLE: u32 = 6;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const HEADER: usize = 8;
const SWITCHED: u32 = 14;
/// The size of what records other than samples have in common, at their end.
const COMMON: usize = 24;
/// Bits of `misc` in a record of a switch: the thread ceases to run, and it could have gone on running.
const OUT: u16 = 1 << 13;
const PREEMPTED: u16 = 1 << 14;
/// Bit of `misc` in a record of a mapping: it has a build id.
const HAS_BUILD_ID: u16 = 1 << 14;
/// From here on, a number in a call stack is no address: it says whose addresses follow (`PERF_CONTEXT_MAX`); the kernel's (`PERF_CONTEXT_KERNEL`).
const CONTEXTS: u64 = (-4095_i64).cast_unsigned();
const KERNEL: u64 = (-128_i64).cast_unsigned();

/// The number of a switch, which the kernel gives to no tracepoint. Its raw bytes are the number, and the state that the thread changes to.
pub(super) const SWITCH: u16 = 0xffff;
/// The number of the record that tells that the switches of a thread are recorded from now on. See [`recorded_thread`].
pub(super) const RECORDED: u16 = 0xfffe;
/// The number of the record that tells that no thread is recorded any more. See [`recording_ended`].
pub(super) const ENDED: u16 = 0xfffd;
/// The number of a sample of a thread that runs.
pub(super) const SAMPLED: u16 = 0xfffc;
/// The number of a mapping of code. See [`CodeMapping`].
pub(super) const MAPPED: u16 = 0xfffb;
/// The number of the records which say that the kernel ceases to sample a thread, or resumes.
pub(super) const THROTTLED: u16 = 0xfffa;
/// The number of a software event, whose raw bytes are 0.
pub(super) const SOFTWARE: u16 = 0;
/// The bytes of the name of a thread, in the record with the number [`RECORDED`].
const COMM: usize = 16;
/// The offset of the texts of a mapping, and the maximum size of its path.
const TEXTS: usize = 40;
const MAX_PATH: usize = 4096;
/// Maximum size of a build id in bytes: `BUILD_ID_SIZE_MAX` of `linux/buildid.h`.
const MAX_BUILD_ID: usize = 20;

/// Returns the raw bytes of the record which says that a thread is recorded from now on: the state of the thread as a letter of `ps`, and its name.
pub fn recorded_thread((pid, tid): (u32, u32), time: u64, state: u8, comm: &[u8]) -> Vec<u8> {
    let mut raw = [0; 4 + COMM];
    raw[..2].copy_from_slice(&RECORDED.to_le_bytes());
    raw[2] = state;
    let len = comm.len().min(COMM);
    raw[4..4 + len].copy_from_slice(&comm[..len]);
    Sample::new((pid, tid), time, &raw).to_bytes()
}

/// Returns the raw bytes of the record which says that the recording of all threads ends.
pub fn recording_ended(time: u64) -> Vec<u8> {
    Sample::new((0, 0), time, &ENDED.to_le_bytes()).to_bytes()
}

/// A part of a file that is mapped as code in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeMapping<'a> {
    /// The address at which it begins.
    pub address: u64,
    /// Its size in bytes.
    pub length: u64,
    /// Its beginning in the file.
    pub offset: u64,
    /// The build id of the file in base 16; empty if it has none.
    pub build_id: &'a str,
    /// The path of the file in the process.
    pub path: &'a [u8],
}

impl CodeMapping<'_> {
    /// Returns the bytes of the record which says that a process has this mapping.
    pub fn record(&self, pid: u32, time: u64) -> Vec<u8> {
        Sample::new((pid, pid), time, self.raw()).to_bytes()
    }

    fn raw(&self) -> Vec<u8> {
        let path = &self.path[..self.path.len().min(MAX_PATH)];
        // The kernel knows none that is longer; and a record has at most 64 KiB.
        let id = if self.build_id.len() <= 2 * MAX_BUILD_ID { self.build_id.as_bytes() } else { b"" };
        // Offset and size of a text, as in the raw bytes of a tracepoint.
        let word = |offset: usize, text: &[u8]| (offset as u32) | (text.len() as u32) << 16;
        let words = [MAPPED.into(), word(TEXTS, path), word(TEXTS + path.len(), id), 0].map(u32::to_le_bytes);
        let numbers = [self.address, self.length, self.offset].map(u64::to_le_bytes);
        [words.as_flattened(), numbers.as_flattened(), path, id].concat()
    }
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PerfRecord<'a> {
    /// An event.
    Sample(Sample<'a>),
    /// This number of events did not fit into the buffer.
    Lost(u64),
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sample<'a> {
    /// The process that was running when the event fired.
    pub pid: u32,
    /// Its thread.
    pub tid: u32,
    /// The time, in nanoseconds.
    pub time: u64,
    /// The event's contribution to the kernel's counter: 1, a quantity such as nanoseconds, or 0 if the kernel has no counter of it.
    pub weight: u64,
    /// The raw bytes, whose first two are the number of the event. Padding may follow its fields.
    pub raw: Cow<'a, [u8]>,
}

impl<'a> Sample<'a> {
    /// A record of ours, without a weight.
    fn new((pid, tid): (u32, u32), time: u64, raw: impl Into<Cow<'a, [u8]>>) -> Self {
        Self { pid, tid, time, weight: 0, raw: raw.into() }
    }

    /// The number of the event, as in its `format` file.
    pub fn number(&self) -> u16 {
        self.raw.first_chunk().map_or(0, |number| u16::from_le_bytes(*number))
    }

    /// Returns whether it is a switch of its thread, or says that the thread is recorded.
    pub fn is_of_recorded_thread(&self) -> bool {
        [SWITCH, RECORDED].contains(&self.number())
    }

    /// Returns the bytes of a record with it, as in a ring buffer.
    fn to_bytes(&self) -> Vec<u8> {
        let size = (HEADER + 44 + self.raw.len()) as u16;
        let mut bytes = SAMPLE.to_le_bytes().to_vec();
        bytes.extend([0, size].map(u16::to_le_bytes).as_flattened());
        bytes.extend([self.pid, self.tid].map(u32::to_le_bytes).as_flattened());
        bytes.extend([self.time, 0, self.weight, 0].map(u64::to_le_bytes).as_flattened());
        bytes.extend((self.raw.len() as u32).to_le_bytes());
        bytes.extend(&*self.raw);
        bytes
    }
}

/// The bytes are not records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the ring buffer of the kernel has bytes that are not a record")]
pub struct MalformedRecord;

/// Iterates over records; ends after an error.
#[derive(Clone, Debug)]
pub struct PerfRecords<'a>(&'a [u8]);

impl<'a> PerfRecords<'a> {
    /// `bytes` must begin at the start of a record.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next record of any type: its type, `misc`, and the bytes after its header. `None` if the bytes end within the record.
    fn next_body(&mut self) -> Option<(u32, u16, &'a [u8])> {
        let bytes = self.0;
        let size = usize::from(u16::from_le_bytes(*bytes.get(6..)?.first_chunk()?));
        let body = bytes.get(HEADER..size)?;
        self.0 = &bytes[size..];
        let misc = u16::from_le_bytes(*bytes.get(4..)?.first_chunk()?);
        Some((u32_at(bytes, 0)?, misc, body))
    }
}

impl<'a> Iterator for PerfRecords<'a> {
    type Item = Result<PerfRecord<'a>, MalformedRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.0.is_empty() {
            let record = match self.next_body() {
                Some((SAMPLE, _, body)) => sample(body).map(PerfRecord::Sample),
                Some((SWITCHED, misc, body)) => switch(misc, body).map(PerfRecord::Sample),
                Some((MMAP2, misc, body)) => mapping(misc, body).map(PerfRecord::Sample),
                Some((THROTTLE, _, body)) => throttle(b"throttled\0", body).map(PerfRecord::Sample),
                Some((UNTHROTTLE, _, body)) => throttle(b"resumed\0", body).map(PerfRecord::Sample),
                Some((LOST, _, body)) => u64_at(body, 8).map(PerfRecord::Lost),
                Some(_) => continue,
                None => None,
            };
            if record.is_none() {
                self.0 = &[];
            }
            return Some(record.ok_or(MalformedRecord));
        }
        None
    }
}

fn sample(body: &[u8]) -> Option<Sample<'_>> {
    let count = usize::try_from(u64_at(body, 32)?).ok()?;
    let (stack, rest) = body.get(40..)?.split_at_checked(count.checked_mul(8)?)?;
    let raw = rest.get(4..)?.get(..u32_at(rest, 0)? as usize)?;
    let (pid, tid, time, weight) = (u32_at(body, 0)?, u32_at(body, 4)?, u64_at(body, 8)?, u64_at(body, 24)?);
    let sample = Sample { pid, tid, time, weight, raw: raw.into() };
    // The weight of a sample of a thread is its period; that of another software event is 1.
    Some(if sample.number() == SOFTWARE && weight > 1 {
        Sample { raw: call_stack(stack).into(), ..sample }
    } else {
        sample
    })
}

/// Returns the raw bytes of a sample of a thread: number, offset and size of the addresses, addresses.
fn call_stack(stack: &[u8]) -> Vec<u8> {
    let (mut addresses, mut is_of_kernel) = (Vec::new(), false);
    for address in stack.chunks_exact(8).filter_map(|bytes| u64_at(bytes, 0)) {
        if address >= CONTEXTS {
            is_of_kernel = address == KERNEL;
        } else if (address >> 63 == 1) == is_of_kernel {
            // What is no address of the program was found where the program has no frame pointers.
            addresses.push(address.to_le_bytes());
        }
    }
    let addresses = addresses.as_flattened();
    let words = [SAMPLED.into(), 8 | (addresses.len() as u32) << 16].map(u32::to_le_bytes);
    [words.as_flattened(), addresses].concat()
}

fn mapping(misc: u16, body: &[u8]) -> Option<Sample<'static>> {
    let (body, common) = body.split_at_checked(body.len().checked_sub(COMMON)?)?;
    let id = body.get(36..56)?.get(..usize::from(body[32])).filter(|_| misc & HAS_BUILD_ID != 0).unwrap_or_default();
    let build_id = id.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
    let path = body.get(64..)?.split(|byte| *byte == 0).next()?;
    let (address, length, offset) = (u64_at(body, 8)?, u64_at(body, 16)?, u64_at(body, 24)?);
    let raw = CodeMapping { address, length, offset, build_id: &build_id, path }.raw();
    Some(Sample::new((u32_at(body, 0)?, u32_at(body, 4)?), u64_at(common, 8)?, raw))
}

fn throttle(state: &[u8], body: &[u8]) -> Option<Sample<'static>> {
    let raw = [&THROTTLED.to_le_bytes(), state].concat();
    Some(Sample::new((u32_at(body, 24)?, u32_at(body, 28)?), u64_at(body, 0)?, raw))
}

fn switch(misc: u16, body: &[u8]) -> Option<Sample<'static>> {
    let raw: &[u8] = match (misc & OUT != 0, misc & PREEMPTED != 0) {
        (false, _) => b"\xff\xffrunning\0",
        (true, true) => b"\xff\xffready\0",
        (true, false) => b"\xff\xffblocked\0",
    };
    Some(Sample::new((u32_at(body, 0)?, u32_at(body, 4)?), u64_at(body, 8)?, raw))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::EventFormat;

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend(((body.len() + HEADER) as u16).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    fn sample_bytes(raw: &[u8]) -> Vec<u8> {
        Sample { pid: 7, tid: 8, time: 9, weight: 6, raw: raw.into() }.to_bytes()
    }

    #[test]
    fn records_are_read_in_order_and_others_skipped() {
        let lost = record(LOST, &[5_u64.to_le_bytes(), 3_u64.to_le_bytes()].concat());
        let bytes = [sample_bytes(&[0x74, 1, 9]), record(77, &[1; 8]), lost].concat();
        let records: Vec<_> = PerfRecords::new(&bytes).collect();
        let sample = Sample { pid: 7, tid: 8, time: 9, weight: 6, raw: (&[0x74, 1, 9]).into() };
        assert_eq!(sample.number(), 372);
        assert_eq!(records, [Ok(PerfRecord::Sample(sample)), Ok(PerfRecord::Lost(3))]);
    }

    #[test]
    fn a_switch_is_a_sample_with_the_state_of_the_thread() {
        let mut body = [7_u32.to_le_bytes(), 8_u32.to_le_bytes()].concat();
        body.extend(9_u64.to_le_bytes());
        body.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        let state = EventFormat::switch();
        let mut states = Vec::new();
        for misc in [0_u16, OUT, OUT | PREEMPTED] {
            let mut bytes = record(SWITCHED, &body);
            bytes[4..6].copy_from_slice(&misc.to_le_bytes());
            let Some(Ok(PerfRecord::Sample(sample))) = PerfRecords::new(&bytes).next() else { panic!("no sample") };
            assert_eq!((sample.pid, sample.tid, sample.time, sample.weight), (7, 8, 9, 0));
            assert_eq!(sample.number(), SWITCH);
            states.push(state.fields[0].bytes(&sample.raw).to_vec());
        }
        assert_eq!(states, [&b"running\0"[..], b"blocked\0", b"ready\0"]);
    }

    fn fields(record: &[u8], format: &EventFormat) -> (Sample<'static>, Vec<Vec<u8>>) {
        let Some(Ok(PerfRecord::Sample(sample))) = PerfRecords::new(record).next() else { panic!("no sample") };
        assert_eq!(sample.number(), format.number);
        let fields = format.fields.iter().map(|field| field.bytes(&sample.raw).to_vec()).collect();
        (Sample { raw: Cow::default(), ..sample }, fields)
    }

    fn common() -> Vec<u8> {
        [&7_u32.to_le_bytes()[..], &8_u32.to_le_bytes(), &9_u64.to_le_bytes(), &[0; 8]].concat()
    }

    #[test]
    fn a_sample_of_a_thread_has_the_addresses_of_its_call_stack() {
        let mut body = common();
        body.extend(10_101_010_u64.to_le_bytes());
        // The kernel's part and the program's, each with its context.
        let stack = [KERNEL, 0xffff_ffff_8100_0000, (-512_i64).cast_unsigned(), 0x5000, 1 << 63, 0x4000];
        body.extend([6].iter().chain(&stack).flat_map(|number: &u64| number.to_le_bytes()));
        body.extend([4, 0, 0, 0, 0, 0, 0, 0]);
        let (sample, fields) = fields(&record(SAMPLE, &body), &EventFormat::sample());
        assert_eq!((sample.pid, sample.tid, sample.time, sample.weight), (7, 8, 9, 10_101_010));
        let addresses = [0xffff_ffff_8100_0000, 0x5000, 0x4000_u64];
        assert_eq!(fields, [addresses.map(u64::to_le_bytes).as_flattened()]);
        // More addresses than there are bytes.
        for count in [9, u64::MAX / 8, u64::MAX] {
            body[32..40].copy_from_slice(&count.to_le_bytes());
            assert_eq!(PerfRecords::new(&record(SAMPLE, &body)).next(), Some(Err(MalformedRecord)));
        }
    }

    #[test]
    fn mappings_of_the_kernel_are_like_our_own() {
        let mapping =
            CodeMapping { address: 0x5000, length: 0x1000, offset: 0x200, build_id: "00ff1e", path: b"/bin/a b" };
        let own = mapping.record(7, 9);
        let long = "00".repeat(40_000);
        let too_long = CodeMapping { build_id: &long, ..mapping }.record(7, 9);
        assert_eq!(fields(&too_long, &EventFormat::code_mapping()).1[3..], [b"".to_vec(), b"/bin/a b".to_vec()]);
        let mut body = [7_u32, 8].map(u32::to_le_bytes).concat();
        body.extend([0x5000, 0x1000, 0x200_u64].map(u64::to_le_bytes).as_flattened());
        body.extend([3, 0, 0, 0, 0, 0xff, 0x1e]);
        body.resize(64, 0xee);
        body.extend(b"/bin/a b\0\0\0\0\0\0\0\0");
        body.extend(common());
        let mut of_kernel = record(MMAP2, &body);
        of_kernel[4..6].copy_from_slice(&HAS_BUILD_ID.to_le_bytes());
        let format = EventFormat::code_mapping();
        let (sample, found) = fields(&of_kernel, &format);
        assert_eq!((sample.pid, sample.tid, sample.time), (7, 8, 9));
        assert_eq!(found[3..], [b"00ff1e".to_vec(), b"/bin/a b".to_vec()]);
        assert_eq!(found, fields(&own, &format).1);
        // In place of the build id, the numbers of the file.
        assert_eq!(fields(&record(MMAP2, &body), &format).1[3], b"");
        // A build id that is too long is not one.
        of_kernel[HEADER + 32] = 21;
        assert_eq!(fields(&of_kernel, &format).1[3], b"");
    }

    #[test]
    fn throttling_begins_and_ends() {
        let body = [&9_u64.to_le_bytes()[..], &[0; 16], &common()].concat();
        for (kind, state) in [(THROTTLE, &b"throttled\0"[..]), (UNTHROTTLE, b"resumed\0")] {
            let (sample, found) = fields(&record(kind, &body), &EventFormat::throttle());
            assert_eq!((sample.pid, sample.tid, sample.time, &*found[0]), (7, 8, 9, state));
        }
    }

    #[test]
    fn a_recorded_thread_has_a_state_and_a_name() {
        let format = EventFormat::recorded_thread();
        let record = recorded_thread((7, 8), 9, b'S', b"a name that is too long");
        let Some(Ok(PerfRecord::Sample(sample))) = PerfRecords::new(&record).next() else { panic!("no sample") };
        let bytes: Vec<_> = format.fields.iter().map(|field| field.bytes(&sample.raw)).collect();
        assert_eq!(bytes, [&b"S\0"[..], b"a name that is t"]);
    }

    #[test]
    fn a_record_that_is_cut_off_is_an_error() {
        let bytes = sample_bytes(&[1, 0, 3]);
        for end in 1..bytes.len() {
            let records: Vec<_> = PerfRecords::new(&bytes[..end]).collect();
            assert_eq!(records, [Err(MalformedRecord)], "{end}");
        }
        // A record that is shorter than its header would never end.
        assert_eq!(PerfRecords::new(&[0; 16]).count(), 1);
    }
}
