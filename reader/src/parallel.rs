//! Reads traces with several threads, packet by packet.
//!
//! A stream is divided into parts of some packets ([`StreamReader::split`]), which the threads take one after the other. Each thread has its own
//! visitor, which sees the events of a part in order; the order of the parts is arbitrary. Information that depends on the order of a stream's
//! packets, such as losses, is computed by the calling thread from the visitors' results for each packet ([`Fold`]).
//!
//! Parts are found by the headers of packets, which may be damaged. If a part does not end where the next one begins, other threads have read
//! from a wrong offset. Everything is then repeated with new visitors, and that stream is not divided after the damage. The results
//! are thus the same as those of a single thread; only the order of events differs.
//!
//! Each thread holds one part or packet in memory, of at most 16 MiB, and the layouts of the events seen so far. Values are decoded
//! on demand ([`EventView`]).

mod plan;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::event::Stream;
use crate::loss::{Damage, Loss};
use crate::merge::{LossFinder, Streams, Trace, TraceStream};
use crate::packet::Packet;
use crate::record::layout::{ClassLayouts, KnownLayouts};
use crate::stream::{PacketEnd, Step, StreamReader};
use crate::view::EventView;
use plan::{Part, Plan};

/// The division of a trace between threads.
#[derive(Clone, Copy, Debug)]
pub struct Parallelism {
    threads: usize,
    part: u64,
}

impl Default for Parallelism {
    /// As many threads as this process has processors.
    fn default() -> Self {
        Self { threads: thread::available_parallelism().map_or(1, NonZero::get), part: 512 << 10 }
    }
}

impl Parallelism {
    /// Uses `threads` threads, at least one, which take about `part` bytes of a stream at a time; with 0, whole streams.
    pub fn new(threads: usize, part: u64) -> Self {
        Self { threads: threads.max(1), part }
    }

    /// The number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }
}

/// A visitor of the events of a trace. The events of one packet come in order.
pub trait Visitor: Send {
    /// Called for each event.
    fn event(&mut self, event: &EventView<'_>);
}

/// Information gathered in addition to the events.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct VisitSummary {
    /// Losses recorded by the tracer, stream by stream.
    pub losses: Vec<Loss>,
    /// Parts that could not be read, stream by stream.
    pub damage: Vec<Damage>,
    /// Packets without a checksum, as [`Items::unchecked`](crate::Items::unchecked) counts them.
    pub unchecked: u64,
}

impl Trace {
    /// Reads the packets that begin no later than `until` and end no earlier than `since` (nanoseconds since the epoch), with several threads.
    /// Events outside these times may be included if they share a packet with others.
    ///
    /// `start` makes the visitors, one for each thread. If a part of a stream is so damaged that the start of the next packet is uncertain,
    /// everything is read again with new visitors. Only the last ones are returned.
    ///
    /// `progress` is called with the bytes read so far, and the total; it restarts if everything is read again.
    ///
    /// # Panics
    /// If a visitor panics, or there is none.
    pub fn visit<V: Visitor>(
        &self,
        (since, until): (Option<i64>, Option<i64>),
        parallelism: Parallelism,
        start: impl FnMut(usize) -> Vec<V>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> (Vec<V>, VisitSummary) {
        let Streams { all, mut damage, .. } = self.streams_since(since.unwrap_or(i64::MIN));
        let stream = |TraceStream { mut reader, begin, before }| {
            reader.set_until(until);
            let losses = LossFinder::new(begin, before);
            let stream = reader.stream().cloned();
            (reader, Findings { finder: losses, found: VisitSummary::default(), stream })
        };
        let streams: Vec<_> = all.into_iter().map(stream).collect();
        let mut start = start;
        let start = |threads| start(threads).into_iter().map(Events).collect();
        let (visitors, folds) = read(&streams, parallelism, start, progress);
        let mut all = VisitSummary::default();
        for VisitSummary { losses, damage: found, unchecked } in
            folds.into_iter().map(|fold| fold.finish(until.is_none()))
        {
            all.losses.extend(losses);
            damage.extend(found);
            all.unchecked += unchecked;
        }
        all.damage = damage;
        (visitors.into_iter().map(|Events(visitor)| visitor).collect(), all)
    }
}

/// A visitor of the packets of parts, which returns a result for each, for the fold of the stream.
pub(crate) trait PacketVisitor: Send {
    type Packet: Send;

    fn begin(&mut self, packet: &Packet);
    fn event(&mut self, event: &EventView<'_>);
    fn end(&mut self) -> Self::Packet;
}

/// Receives the packets of one stream in order.
pub(crate) trait Fold: Clone {
    type Packet: Send;

    /// A packet that was read completely, or up to damage.
    fn packet(&mut self, stream: &Arc<Stream>, packet: Arc<Packet>, events: Self::Packet, end: Option<PacketEnd>);
    fn damage(&mut self, damage: Damage);
    fn unchecked(&mut self, packets: u64);
}

/// The results of a part of a stream.
enum PartItem<P> {
    Packet(Arc<Stream>, Arc<Packet>, P, Option<PacketEnd>),
    Damage(Damage),
}

/// The result of a part.
struct PartResult<P> {
    /// The stream, and the number of the part in it.
    place: (usize, usize),
    /// True if the data after the part was read from the right offset.
    is_certain: bool,
    found: Vec<PartItem<P>>,
    unchecked: u64,
    bytes: u64,
}

/// Reads streams to their ends. Returns the visitors, and the folds of the streams.
pub(crate) fn read<V, F>(
    streams: &[(StreamReader, F)],
    parallelism: Parallelism,
    mut start: impl FnMut(usize) -> Vec<V>,
    progress: &mut dyn FnMut(u64, u64),
) -> (Vec<V>, Vec<F>)
where
    V: PacketVisitor,
    F: Fold<Packet = V::Packet>,
{
    // Number of parts of each stream that are read separately.
    let mut parts = vec![usize::MAX; streams.len()];
    let (mut done, size) = (0, streams.iter().map(|(reader, _)| reader.size()).sum::<u64>());
    loop {
        let readers = streams.iter().map(|(reader, _)| reader.clone()).zip(parts.iter().copied());
        let plan = Mutex::new(Plan::new(readers, parallelism.part));
        let mut folds: Vec<_> = streams.iter().map(|(_, fold)| OrderedFold::new(fold.clone())).collect();
        let mut uncertain = false;
        let mut visitors = start(parallelism.threads);
        assert!(!visitors.is_empty(), "the parts need a visitor");
        thread::scope(|scope| {
            let (results, received) = mpsc::sync_channel(4 * visitors.len());
            for visitor in &mut visitors {
                let (plan, results) = (&plan, results.clone());
                scope.spawn(move || work(plan, visitor, &results));
            }
            drop(results);
            for result in received {
                let (stream, part) = result.place;
                done += result.bytes;
                progress(done.min(size), size);
                if !result.is_certain {
                    parts[stream] = parts[stream].min(part);
                    uncertain = true;
                }
                folds[stream].add(part, result);
            }
        });
        if !uncertain {
            return (visitors, folds.into_iter().map(|ordered| ordered.fold).collect());
        }
        done = 0;
    }
}

/// Reads parts until none is left.
fn work<V: PacketVisitor>(plan: &Mutex<Plan>, visitor: &mut V, results: &SyncSender<PartResult<V::Packet>>) {
    let mut layouts = KnownLayouts::new(ClassLayouts::of);
    // A panic of another thread ends this one as well, but the plan is never left half updated.
    while let Some(part) = { plan.lock().unwrap_or_else(PoisonError::into_inner).next() } {
        if results.send(read_part(part, visitor, &mut layouts)).is_err() {
            break;
        }
    }
}

fn read_part<V: PacketVisitor>(part: Part, visitor: &mut V, layouts: &mut KnownLayouts) -> PartResult<V::Packet> {
    let Part { place, mut reader, is_last } = part;
    let (mut found, mut open, mut bytes) = (Vec::new(), None, 0);
    while let Some(step) = reader.next() {
        match step {
            Step::Begin(packet) => {
                bytes += packet.size();
                visitor.begin(&packet);
                reader.visit(layouts.of(&packet.class), |event| visitor.event(event));
                open = reader.stream().cloned().map(|stream| (stream, packet));
            }
            Step::Event(event) => visitor.event(&EventView::from(&event)),
            Step::End(end) => {
                let packet = open.take();
                found.extend(packet.map(|(stream, packet)| PartItem::Packet(stream, packet, visitor.end(), Some(end))));
            }
            Step::Damage(damage) => {
                let packet = open.take();
                found.extend(packet.map(|(stream, packet)| PartItem::Packet(stream, packet, visitor.end(), None)));
                found.push(PartItem::Damage(damage));
            }
        }
    }
    let is_certain = is_last || reader.has_met_its_end();
    PartResult { place, is_certain, found, unchecked: reader.unchecked(), bytes }
}

/// Passes the results of a stream's parts to its fold in order.
struct OrderedFold<F: Fold> {
    fold: F,
    next: usize,
    early: BTreeMap<usize, PartResult<F::Packet>>,
}

impl<F: Fold> OrderedFold<F> {
    fn new(fold: F) -> Self {
        Self { fold, next: 0, early: BTreeMap::new() }
    }

    fn add(&mut self, part: usize, result: PartResult<F::Packet>) {
        self.early.insert(part, result);
        while let Some(result) = self.early.remove(&self.next) {
            self.next += 1;
            self.fold.unchecked(result.unchecked);
            for found in result.found {
                match found {
                    PartItem::Packet(stream, packet, events, end) => self.fold.packet(&stream, packet, events, end),
                    PartItem::Damage(damage) => self.fold.damage(damage),
                }
            }
        }
    }
}

/// Passes only the events to a visitor.
struct Events<V>(V);

impl<V: Visitor> PacketVisitor for Events<V> {
    type Packet = ();

    fn begin(&mut self, _packet: &Packet) {}

    fn event(&mut self, event: &EventView<'_>) {
        self.0.event(event);
    }

    fn end(&mut self) {}
}

/// Collects losses and damage of a stream.
#[derive(Clone)]
struct Findings {
    finder: LossFinder,
    found: VisitSummary,
    stream: Option<Arc<Stream>>,
}

impl Findings {
    /// The findings, including the losses after the last packet if the stream was read to its end.
    fn finish(mut self, is_whole: bool) -> VisitSummary {
        if let Some(stream) = self.stream.filter(|_| is_whole) {
            self.found.losses.extend(self.finder.finish(&stream));
        }
        self.found
    }
}

impl Fold for Findings {
    type Packet = ();

    fn packet(&mut self, stream: &Arc<Stream>, packet: Arc<Packet>, (): (), end: Option<PacketEnd>) {
        self.found.losses.extend(self.finder.before(stream, &packet));
        self.finder.ended(packet, end);
        self.stream.get_or_insert_with(|| Arc::clone(stream));
    }

    fn damage(&mut self, damage: Damage) {
        self.found.damage.push(damage);
    }

    fn unchecked(&mut self, packets: u64) {
        self.found.unchecked += packets;
    }
}
