//! Selects the packets of a trace that a query needs, by their times and streams, and divides them into partitions.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use datafusion::physical_expr::PhysicalExpr;
use tracepoint_tables::{TableStream, TraceTables, days};

use crate::pruning::Ranges;

/// The data that a query needs from a trace.
pub(super) struct ScanRequest {
    pub(super) tables: Arc<TraceTables>,
    /// The events of the table.
    pub(super) names: Vec<String>,
    pub(super) schema: SchemaRef,
    /// The columns to read.
    pub(super) columns: SchemaRef,
    pub(super) predicate: Option<Arc<dyn PhysicalExpr>>,
    pub(super) partitions: usize,
}

pub(super) struct Packets {
    /// The events for which the predicate may be true.
    pub(super) names: Vec<String>,
    /// Ranges of packets, with the index of their stream, for each partition.
    pub(super) partitions: Vec<Vec<(usize, Range<usize>)>>,
    /// Number of packets skipped.
    pub(super) pruned: usize,
}

/// Consecutive packets of a stream.
struct Run {
    stream: usize,
    packets: Range<usize>,
}

impl Packets {
    /// Reads the headers of packets.
    pub(super) fn find(wanted: &ScanRequest) -> datafusion::common::Result<Self> {
        let names = wanted.names()?;
        let tables: HashSet<_> = names.iter().map(String::as_str).collect();
        let (mut runs, mut pruned) = (Vec::new(), 0);
        for (number, stream) in wanted.tables.streams().iter().enumerate() {
            let count = stream.index.len();
            let reads = if stream.may_have(&tables) { wanted.runs(stream)? } else { Vec::new() };
            pruned += count - reads.iter().map(ExactSizeIterator::len).sum::<usize>();
            runs.extend(reads.into_iter().map(|packets| Run { stream: number, packets }));
        }
        Ok(Self { names, partitions: wanted.divided(runs), pruned })
    }
}

impl ScanRequest {
    /// The events for which the predicate may be true.
    fn names(&self) -> datafusion::common::Result<Vec<String>> {
        let mut ranges = Ranges::new(self.names.len());
        let value = |name: &String| (ScalarValue::from(name.as_str()), ScalarValue::from(name.as_str()));
        ranges.add(&self.schema, "event", self.names.iter().map(value))?;
        let may_match = ranges.may_match(self.predicate.as_ref(), &self.schema);
        Ok(self.names.iter().zip(may_match).filter(|(_, may_match)| *may_match).map(|(name, _)| name.clone()).collect())
    }

    /// Ranges of packets in a stream for which the predicate may be true.
    fn runs(&self, stream: &TableStream) -> datafusion::common::Result<Vec<Range<usize>>> {
        let count = stream.index.len();
        let Some(predicate) = &self.predicate else { return Ok(std::iter::once(0..count).collect()) };
        // First, decide whether any packet of the stream may match.
        let text = |value: Option<&str>| {
            let value = ScalarValue::Utf8(value.map(str::to_owned));
            (value.clone(), value)
        };
        let session = stream.place.session_column();
        let may_match = |count: usize, times: &[(Option<i64>, Option<i64>)]| -> datafusion::common::Result<Vec<bool>> {
            let mut ranges = Ranges::new(count);
            let same = |value: Option<&str>| std::iter::repeat_n(text(value), count);
            ranges.add(&self.schema, "host", same(stream.place.host.as_deref()))?;
            ranges.add(&self.schema, "session", same(session.as_deref()))?;
            ranges.add(&self.schema, "stream", same(Some(&stream.name)))?;
            if !times.is_empty() {
                let time = |time: Option<i64>| ScalarValue::TimestampNanosecond(time, Some("UTC".into()));
                let day =
                    |time: Option<i64>| ScalarValue::Date32(time.and_then(|time| i32::try_from(days::of(time)).ok()));
                ranges.add(&self.schema, "ts", times.iter().map(|(begin, end)| (time(*begin), time(*end))))?;
                ranges.add(&self.schema, "day", times.iter().map(|(begin, end)| (day(*begin), day(*end))))?;
            }
            Ok(ranges.may_match(Some(predicate), &self.schema))
        };
        if may_match(1, &[])? == [false] {
            return Ok(Vec::new());
        }
        let packets = (0..count).map(|number| stream.index.packet(number));
        let times: Vec<_> = packets.map(|packet| (packet.begin_ns, packet.end_ns)).collect();
        let matches = may_match(count, &times)?;
        if !stream.is_divisible(&self.columns) {
            // Event numbers are counted from the first packet.
            let last = matches.iter().rposition(|may_match| *may_match);
            return Ok(last.map(|last| 0..last + 1).into_iter().collect());
        }
        let mut runs: Vec<Range<usize>> = Vec::new();
        for number in (0..count).filter(|number| matches[*number]) {
            match runs.last_mut() {
                Some(run) if run.end == number => run.end += 1,
                _ => runs.push(number..number + 1),
            }
        }
        Ok(runs)
    }

    /// Divides packets into partitions of about the same number of bytes.
    fn divided(&self, runs: Vec<Run>) -> Vec<Vec<(usize, Range<usize>)>> {
        let streams = self.tables.streams();
        let size = |stream: usize, number: usize| streams[stream].index.packet(number).size;
        let bytes: u64 = runs.iter().flat_map(|run| run.packets.clone().map(|number| size(run.stream, number))).sum();
        let each = bytes.div_ceil(self.partitions.max(1) as u64).max(1);
        let mut partitions: Vec<Vec<(usize, Range<usize>)>> = vec![Vec::new()];
        let mut filled = 0;
        for Run { stream, packets } in runs {
            if !streams[stream].is_divisible(&self.columns) {
                filled += packets.clone().map(|number| size(stream, number)).sum::<u64>();
                partitions.last_mut().into_iter().for_each(|last| last.push((stream, packets.clone())));
                if filled >= each {
                    partitions.push(Vec::new());
                    filled = 0;
                }
                continue;
            }
            let mut begin = packets.start;
            for number in packets.clone() {
                filled += size(stream, number);
                if filled >= each {
                    partitions.last_mut().into_iter().for_each(|last| last.push((stream, begin..number + 1)));
                    partitions.push(Vec::new());
                    (begin, filled) = (number + 1, 0);
                }
            }
            if begin < packets.end {
                partitions.last_mut().into_iter().for_each(|last| last.push((stream, begin..packets.end)));
            }
        }
        if partitions.len() > 1 && partitions.last().is_some_and(Vec::is_empty) {
            partitions.pop();
        }
        partitions
    }
}
