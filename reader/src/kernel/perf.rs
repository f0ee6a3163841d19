//! The records of a ring buffer of perf, whose events were opened with [`SAMPLE_TYPE`].
//!
//! | record | bytes, after type u32, misc u16, size u16 |
//! |---|---|
//! | sample (9) | pid u32, tid u32, time u64, cpu u32, reserved u32, weight u64, size of the raw bytes u32, raw bytes |
//! | lost (2) | id u64, number of lost samples u64 |
//! | switch (14) | pid u32, tid u32, time u64, cpu u32, reserved u32; `misc` says whether the thread begins or ceases to run |
//!
//! A switch becomes a sample with raw bytes of our own, whose number is [`SWITCH`]. Records of other types are skipped.

use thiserror::Error;

/// The contents of samples: `PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW`. Without the period,
/// the kernel would store an event with a weight many times.
pub const SAMPLE_TYPE: u64 = 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 10;

const LOST: u32 = 2;
const SAMPLE: u32 = 9;
const HEADER: usize = 8;
const SWITCHED: u32 = 14;
/// Bits of `misc` in a record of a switch: the thread ceases to run, and it could have gone on running.
const OUT: u16 = 1 << 13;
const PREEMPTED: u16 = 1 << 14;

/// The number of a switch, which the kernel gives to no tracepoint. Its raw bytes are the number, and the state that the thread changes to.
pub(super) const SWITCH: u16 = 0xffff;
/// The number of the record that tells that the switches of a thread are recorded from now on. See [`recorded_thread`].
pub(super) const RECORDED: u16 = 0xfffe;
/// The number of the record that tells that no thread is recorded any more. See [`recording_ended`].
pub(super) const ENDED: u16 = 0xfffd;
/// The number of a software event, whose raw bytes are 0.
pub(super) const SOFTWARE: u16 = 0;
/// The bytes of the name of a thread, in the record with the number [`RECORDED`].
const COMM: usize = 16;

/// Returns the raw bytes of the record which says that a thread is recorded from now on: the state of the thread as a letter of `ps`, and its name.
pub fn recorded_thread((pid, tid): (u32, u32), time: u64, state: u8, comm: &[u8]) -> Vec<u8> {
    let mut raw = [0; 4 + COMM];
    raw[..2].copy_from_slice(&RECORDED.to_le_bytes());
    raw[2] = state;
    let len = comm.len().min(COMM);
    raw[4..4 + len].copy_from_slice(&comm[..len]);
    Sample { pid, tid, time, weight: 0, raw: &raw }.to_bytes()
}

/// Returns the raw bytes of the record which says that the recording of all threads ends.
pub fn recording_ended(time: u64) -> Vec<u8> {
    Sample { pid: 0, tid: 0, time, weight: 0, raw: &ENDED.to_le_bytes() }.to_bytes()
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PerfRecord<'a> {
    /// An event.
    Sample(Sample<'a>),
    /// This number of events did not fit into the buffer.
    Lost(u64),
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    pub raw: &'a [u8],
}

impl Sample<'_> {
    /// The number of the event, as in its `format` file.
    pub fn number(&self) -> u16 {
        self.raw.first_chunk().map_or(0, |number| u16::from_le_bytes(*number))
    }

    /// Returns whether it is a switch of its thread, or says that the thread is recorded.
    pub fn is_of_recorded_thread(&self) -> bool {
        [SWITCH, RECORDED].contains(&self.number())
    }

    /// Returns the bytes of a record with it, as in a ring buffer.
    fn to_bytes(self) -> Vec<u8> {
        let size = (HEADER + 36 + self.raw.len()) as u16;
        let mut bytes = SAMPLE.to_le_bytes().to_vec();
        bytes.extend([0, size].map(u16::to_le_bytes).as_flattened());
        bytes.extend([self.pid, self.tid].map(u32::to_le_bytes).as_flattened());
        bytes.extend([self.time, 0, self.weight].map(u64::to_le_bytes).as_flattened());
        bytes.extend((self.raw.len() as u32).to_le_bytes());
        bytes.extend(self.raw);
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
    let size = u32_at(body, 32)? as usize;
    let raw = body.get(36..)?.get(..size)?;
    let (pid, tid, time, weight) = (u32_at(body, 0)?, u32_at(body, 4)?, u64_at(body, 8)?, u64_at(body, 24)?);
    Some(Sample { pid, tid, time, weight, raw })
}

fn switch(misc: u16, body: &[u8]) -> Option<Sample<'static>> {
    let raw: &[u8] = match (misc & OUT != 0, misc & PREEMPTED != 0) {
        (false, _) => b"\xff\xffrunning\0",
        (true, true) => b"\xff\xffready\0",
        (true, false) => b"\xff\xffblocked\0",
    };
    Some(Sample { pid: u32_at(body, 0)?, tid: u32_at(body, 4)?, time: u64_at(body, 8)?, weight: 0, raw })
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
        Sample { pid: 7, tid: 8, time: 9, weight: 6, raw }.to_bytes()
    }

    #[test]
    fn records_are_read_in_order_and_others_skipped() {
        let lost = record(LOST, &[5_u64.to_le_bytes(), 3_u64.to_le_bytes()].concat());
        let bytes = [sample_bytes(&[0x74, 1, 9]), record(77, &[1; 8]), lost].concat();
        let records: Vec<_> = PerfRecords::new(&bytes).collect();
        let sample = Sample { pid: 7, tid: 8, time: 9, weight: 6, raw: &[0x74, 1, 9] };
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
            states.push(state.fields[0].bytes(sample.raw).to_vec());
        }
        assert_eq!(states, [&b"running\0"[..], b"blocked\0", b"ready\0"]);
    }

    #[test]
    fn a_recorded_thread_has_a_state_and_a_name() {
        let format = EventFormat::recorded_thread();
        let record = recorded_thread((7, 8), 9, b'S', b"a name that is too long");
        let Some(Ok(PerfRecord::Sample(sample))) = PerfRecords::new(&record).next() else { panic!("no sample") };
        let bytes: Vec<_> = format.fields.iter().map(|field| field.bytes(sample.raw)).collect();
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
