//! The records of a ring buffer of perf, whose events were opened with [`SAMPLE_TYPE`].
//!
//! | record | bytes, after type u32, misc u16, size u16 |
//! |---|---|
//! | sample (9) | pid u32, tid u32, time u64, cpu u32, reserved u32, weight u64, size of the raw bytes u32, raw bytes |
//! | lost (2) | id u64, number of lost samples u64 |
//!
//! Records of other types are skipped.

use thiserror::Error;

/// The contents of samples: `PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW`. Without the period,
/// the kernel would store an event with a weight many times.
pub const SAMPLE_TYPE: u64 = 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 10;

const LOST: u32 = 2;
const SAMPLE: u32 = 9;
const HEADER: usize = 8;

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
    /// The event's contribution to the kernel's counter: 1, or a quantity such as nanoseconds.
    pub weight: u64,
    /// The raw bytes, whose first two are the number of the event. Padding may follow its fields.
    pub raw: &'a [u8],
}

impl Sample<'_> {
    /// The number of the event, as in its `format` file.
    pub fn number(&self) -> u16 {
        self.raw.first_chunk().map_or(0, |number| u16::from_le_bytes(*number))
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

    /// The next record of any type: its type, and the bytes after its header. `None` if the bytes end within the record.
    fn next_body(&mut self) -> Option<(u32, &'a [u8])> {
        let bytes = self.0;
        let size = usize::from(u16::from_le_bytes(*bytes.get(6..)?.first_chunk()?));
        let body = bytes.get(HEADER..size)?;
        self.0 = &bytes[size..];
        Some((u32_at(bytes, 0)?, body))
    }
}

impl<'a> Iterator for PerfRecords<'a> {
    type Item = Result<PerfRecord<'a>, MalformedRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.0.is_empty() {
            let record = match self.next_body() {
                Some((SAMPLE, body)) => sample(body).map(PerfRecord::Sample),
                Some((LOST, body)) => u64_at(body, 8).map(PerfRecord::Lost),
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

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend(((body.len() + HEADER) as u16).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    fn sample_bytes(raw: &[u8]) -> Vec<u8> {
        let mut body = [7_u32.to_le_bytes(), 8_u32.to_le_bytes()].concat();
        body.extend(9_u64.to_le_bytes());
        body.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        body.extend(6_u64.to_le_bytes());
        body.extend((raw.len() as u32).to_le_bytes());
        body.extend(raw);
        record(SAMPLE, &body)
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
