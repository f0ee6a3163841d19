//! The speed of writing packets to a file.

use crate::describe::describe;
use crate::{MIB, Outcome, RECORD, events_in, fire};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracepoint::find;
use tracepoint::marker::{Subscriber, Subscription};
use tracepoint_ring::channel::{AnonymousMemory, Channel, EventId, HEADER_SIZE, OpenChannel};
use tracepoint_sinks::{ClockInfo, CtfSink, Drain, ProcessInfo, TraceInfo};

/// The size of the ring; its packets have the size used with a ring of 1 MiB.
const RING: u32 = 32 * MIB;
const PACKETS: u32 = RING >> 17;

/// The destination of packets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Null,
    File,
    /// A file that is synced to disk at the end.
    Synced,
    /// A CTF trace with its account, compared with a file.
    Trace,
}

pub(crate) fn table(rounds: usize, directory: &Path) -> Outcome {
    println!("\n{:<32} {:>10} {:>10} {:>8} {:>8}", "drain, MB/s, medians", "drained", "plain", "ratio", "MiB");
    let targets = [
        ("to /dev/null", Target::Null),
        ("to a file", Target::File),
        ("to a file, and to its disk", Target::Synced),
        ("to a CTF trace", Target::Trace),
    ];
    for (name, target) in targets {
        let directory = tempfile::tempdir_in(directory)?;
        let mut pairs = Vec::new();
        let mut bytes = 0;
        for round in 0..rounds {
            let (size, pair) = round_of(target, directory.path(), round % 2 == 1)?;
            bytes = size;
            pairs.push(pair);
        }
        let speed = |time: Duration| f64::from(bytes) / 1e6 / time.as_secs_f64();
        println!(
            "{name:<32} {:>10.0} {:>10.0} {:>8.3} {:>8.1}",
            median(pairs.iter().map(|[drain, _]| speed(*drain))),
            median(pairs.iter().map(|[_, plain]| speed(*plain))),
            median(pairs.iter().map(|[drain, plain]| plain.as_secs_f64() / drain.as_secs_f64())),
            f64::from(bytes) / f64::from(MIB)
        );
    }
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A full ring, drained; and the same bytes written from plain memory, before or afterwards.
fn round_of(target: Target, directory: &Path, plain_first: bool) -> Outcome<(u32, [Duration; 2])> {
    let full = Full::new()?;
    // The rest of a packet after its last record is not written; writes of whole packets would be page-aligned.
    let records = (full.channel.config().packet_size() - HEADER_SIZE) / RECORD;
    let sizes = vec![HEADER_SIZE + records * RECORD; PACKETS as usize - 1];
    // The contents are irrelevant. The write makes the pages resident.
    let memory = vec![0x5a; sizes.iter().sum::<usize>()];
    let plain = || -> io::Result<Duration> {
        let mut file = open(target, directory, "plain")?;
        let begun = Instant::now();
        let mut rest = &memory[..];
        for size in &sizes {
            let (packet, after) = rest.split_at(*size);
            file.write_all(packet)?;
            rest = after;
        }
        end(target, &file)?;
        Ok(begun.elapsed())
    };
    let before = plain_first.then(&plain).transpose()?;
    let (drained, drain) = full.drain(target, directory)?;
    let plain = before.map_or_else(plain, Ok)?;
    assert_eq!(drained, memory.len(), "every packet but the open one was full");
    Ok((u32::try_from(drained)?, [drain, plain]))
}

fn open(target: Target, directory: &Path, name: &str) -> io::Result<File> {
    match target {
        Target::Null => File::create("/dev/null"),
        Target::File | Target::Synced | Target::Trace => File::create(directory.join(name)),
    }
}

fn end(target: Target, file: &File) -> io::Result<()> {
    if target == Target::Synced { file.sync_data() } else { Ok(()) }
}

/// A channel whose ring is full.
struct Full {
    channel: Arc<OpenChannel>,
    id: EventId,
    subscriptions: Vec<Subscription>,
}

impl Full {
    fn new() -> Outcome<Self> {
        let config = Channel::discard(RING as usize).packets(PACKETS as usize).spares(1);
        let channel = OpenChannel::open(config, [9; 16], 0, 1, Box::new(AnonymousMemory))?;
        let id = channel.add_event()?;
        let marker = find("bench:small")?.marker().ok_or("bench:small has fields")?;
        let subscriptions = vec![marker.subscribe(Subscriber::record(Arc::clone(&channel), id))?];
        fire(events_in(RING));
        Ok(Self { channel, id, subscriptions })
    }

    /// Drains every closed packet; returns the number of bytes and the duration.
    fn drain(&self, target: Target, directory: &Path) -> Outcome<(usize, Duration)> {
        if target == Target::Trace {
            return self.drain_to_trace(directory);
        }
        let mut file = open(target, directory, "packets")?;
        let (mut bytes, mut wrote) = (0, Ok(()));
        let begun = Instant::now();
        self.channel.drain(|packet| {
            bytes += packet.bytes.len();
            if wrote.is_ok() {
                wrote = file.write_all(packet.bytes);
            }
        });
        wrote?;
        end(target, &file)?;
        Ok((bytes, begun.elapsed()))
    }

    fn drain_to_trace(&self, directory: &Path) -> Outcome<(usize, Duration)> {
        let trace = tempfile::tempdir_in(directory)?;
        let process = ProcessInfo::default();
        let info = TraceInfo { uuid: [9; 16], name: "bench".to_owned(), clock: ClockInfo::default(), process };
        let mut drain = Drain::new(info, vec![Arc::clone(&self.channel)]);
        let marker = find("bench:small")?.marker().ok_or("bench:small has fields")?;
        drain.add_sink(Box::new(CtfSink::create(trace.path().join("trace"))?))?;
        drain.describe(&[describe(marker, self.channel.class(), self.id.get())])?;
        let begun = Instant::now();
        let drained = drain.drain();
        Ok((drained.bytes as usize, begun.elapsed()))
    }
}

impl Drop for Full {
    fn drop(&mut self) {
        Subscription::end_all(std::mem::take(&mut self.subscriptions));
        self.channel.close();
    }
}
