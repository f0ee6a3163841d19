//! Ring files made by hand from the tables of `docs/format-ring.md`: a tracer that shares no code with the real one, and
//! that can be killed between any two of its stores.

// Each test file is a separate crate and uses only a part of this.
#![allow(dead_code, unreachable_pub)]

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::hand::{PREAMBLE, UUID, stream};

/// The time at which the channel was opened.
pub const OPENED: u64 = 1000;
/// The instance of the stream of events that had no ring.
pub const RINGLESS: u64 = 4_294_967_295;
/// The directory of the process.
pub const PROCESS: &str = "4242-777";

/// Two events: a number, and a number with some bytes.
pub fn metadata() -> String {
    let event = |id: u32, fields: &str| {
        format!("event {{ name = \"p:e{id}\"; id = {id}; stream_id = 0; fields := struct {{ {fields} }}; }};\n")
    };
    format!("{PREAMBLE}{}{}{}", stream(0), event(0, "u32 n;"), event(1, "u32 n; u16 len; u8 data[len];"))
}

/// The configuration of a ring.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub overwrite: bool,
    pub place: usize,
    pub places: usize,
    pub instance: u64,
    /// No packets: only the counters of threads without a ring.
    pub ringless: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self { overwrite: false, place: 512, places: 4, instance: 0, ringless: false }
    }
}

/// The reasons of losses, by their places in the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    RingFull = 0,
    TooLarge = 1,
    NoRing = 2,
    Nested = 3,
}

/// The moment at which a signal handler interrupts an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// It has fired, and nothing is written yet.
    Fired,
    /// Its record is being written: the handler's events are nested.
    Writing,
    /// It is committed but not yet counted.
    Committed,
}

/// The consumer's handling of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consumer {
    /// Its sink keeps them.
    Keeps,
    /// It releases them, and they are in no output.
    Forgets,
}

/// One stream of a ring.
#[derive(Clone, Debug)]
struct Lane {
    nested: bool,
    offset: usize,
    place: usize,
    places: usize,
    counters: usize,
    released: usize,
    open: bool,
    used: usize,
    last: u64,
    /// The sink's output: complete packets, and perhaps a part of one.
    output: Vec<u8>,
    kept: Vec<u64>,
    /// The packet in each place.
    holds: Vec<Option<u64>>,
    /// The committed events: packet and number.
    committed: Vec<(u64, u32)>,
}

/// A ring, and the thread that writes to it.
#[derive(Clone, Debug)]
pub struct Tracer {
    pub shape: Shape,
    pub bytes: Vec<u8>,
    /// Number of stores left before it is killed.
    pub fuse: u64,
    pub stores: u64,
    lanes: [Lane; 2],
    clock: u64,
    next: u32,
}

const HEADER: usize = 4096;
const EVENTS: usize = 2;
const PACKET_HEADER: usize = 96;

impl Tracer {
    pub fn new(shape: Shape) -> Self {
        let account = HEADER;
        let main = (account + EVENTS * 128).next_multiple_of(4096);
        let (places, nested_places) = if shape.ringless { (0, 0) } else { (shape.places, 2) };
        let nested = (main + places * shape.place).next_multiple_of(4096);
        let size = nested + nested_places * 512;
        let lane = |nested_lane: bool, offset, place, places| Lane {
            nested: nested_lane,
            offset,
            place,
            places,
            counters: if nested_lane { 384 } else { 320 },
            released: if nested_lane { 456 } else { 448 },
            open: false,
            used: 0,
            last: OPENED,
            output: Vec::new(),
            kept: Vec::new(),
            holds: vec![None; places],
            committed: Vec::new(),
        };
        let mut tracer = Self {
            shape,
            bytes: vec![0; size],
            fuse: u64::MAX,
            stores: 0,
            lanes: [lane(false, main, shape.place, places), lane(true, nested, 512, nested_places)],
            clock: OPENED,
            next: 0,
        };
        tracer.put(8, &1u32.to_le_bytes());
        tracer.put(12, &4096u32.to_le_bytes());
        tracer.put_number(16, size as u64);
        tracer.put(24, &UUID);
        tracer.put(44, &u32::from(shape.overwrite).to_le_bytes());
        tracer.put_number(48, if shape.ringless { RINGLESS } else { shape.instance });
        tracer.put_number(56, EVENTS as u64);
        tracer.put_number(64, account as u64);
        tracer.put_number(72, 128);
        tracer.put_number(88, OPENED);
        for (at, [offset, place, places]) in [(96, [main, shape.place, places]), (120, [nested, 512, nested_places])] {
            tracer.put_number(at, offset as u64);
            tracer.put_number(at + 8, place as u64);
            tracer.put_number(at + 16, places as u64);
        }
        tracer.put(1024, &4242u32.to_le_bytes());
        tracer.put_number(1032, 777);
        tracer.put(1040, &[9; 16]);
        for (at, text) in
            [(1088, "/bin/prog"), (2112, "box"), (2368, "shop"), (2624, "/somewhere/metadata"), (3648, "channel0")]
        {
            tracer.put(at, &(text.len() as u16).to_le_bytes());
            tracer.put(at + 2, text.as_bytes());
        }
        tracer.put(0, b"tp-ring\n");
        tracer
    }

    /// Writes without counting as a store of the thread.
    pub fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    pub fn put_number(&mut self, at: usize, number: u64) {
        self.put(at, &number.to_le_bytes());
    }

    pub fn number(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().unwrap())
    }

    /// One step of the process; `false` once it is dead.
    fn step(&mut self) -> bool {
        if self.fuse == 0 {
            return false;
        }
        self.fuse -= 1;
        self.stores += 1;
        true
    }

    pub fn is_alive(&self) -> bool {
        self.fuse > 0
    }

    /// A store of the thread.
    fn store(&mut self, at: usize, bytes: &[u8]) -> bool {
        let lives = self.step();
        if lives {
            self.put(at, bytes);
        }
        lives
    }

    fn count(&mut self, at: usize) {
        let number = self.number(at) + 1;
        self.store(at, &number.to_le_bytes());
    }

    // -- the account ----------------------------------------------------------------------------------------------------

    fn entry(id: u16) -> usize {
        HEADER + usize::from(id) * 128
    }

    fn lose(&mut self, lane: usize, id: u16, reason: Lost) {
        self.count(Self::entry(id) + 32 + 8 * reason as usize);
        self.count(self.lanes[lane].counters + 16);
    }

    /// An event that is lost before an attempt to record it.
    pub fn lost(&mut self, id: u16, reason: Lost) {
        self.count(Self::entry(id));
        self.lose(0, id, reason);
    }

    /// An event rejected by a filter.
    pub fn filtered(&mut self, id: u16) {
        self.count(Self::entry(id));
        self.count(Self::entry(id) + 16);
    }

    // -- records --------------------------------------------------------------------------------------------------------

    /// An event with `extra` bytes.
    pub fn fire(&mut self, extra: usize) {
        self.fire_in(0, extra, &mut |_, _| {});
    }

    /// An event interrupted by handlers that each fire an event.
    pub fn fire_interrupted(&mut self, extra: usize, at: Moment, handlers: &[usize]) {
        self.fire_in(0, extra, &mut |tracer, moment| {
            if moment == at {
                for extra in handlers {
                    tracer.fire_in(usize::from(at == Moment::Writing), *extra, &mut |_, _| {});
                }
            }
        });
    }

    fn fire_in(&mut self, lane: usize, extra: usize, handler: &mut dyn FnMut(&mut Self, Moment)) {
        let id = u16::from(extra > 0);
        self.count(Self::entry(id));
        self.clock += 10;
        let clock = self.clock;
        handler(self, Moment::Fired);
        self.record(lane, id, extra, clock, handler);
    }

    fn record(&mut self, lane: usize, id: u16, extra: usize, clock: u64, handler: &mut dyn FnMut(&mut Self, Moment)) {
        let time = clock.max(self.lanes[lane].last);
        let number = self.next;
        self.next += 1;
        let mut record = (time << 16 | u64::from(id)).to_le_bytes().to_vec();
        record.extend(number.to_le_bytes());
        if id == 1 {
            record.extend((extra as u16).to_le_bytes());
            record.extend((0..extra).map(|n| n as u8));
        }
        let Lane { place, places, open, used, .. } = self.lanes[lane];
        if !open || used + record.len() > place {
            if record.len() > place - PACKET_HEADER {
                return self.lose(lane, id, Lost::TooLarge);
            }
            let next = self.number(self.lanes[lane].counters + 8) + u64::from(open);
            let full = next - self.number(self.lanes[lane].released) >= places as u64;
            if full && !self.shape.overwrite {
                return self.lose(lane, id, Lost::RingFull);
            }
            if open {
                self.close(lane);
            }
            self.open(lane, next, time);
        }
        let packet = self.number(self.lanes[lane].counters + 8);
        let base = self.base(lane, packet);
        let used = self.lanes[lane].used;
        self.store(base + used, &record);
        handler(self, Moment::Writing);
        self.lanes[lane].used = used + record.len();
        self.lanes[lane].last = time;
        self.count(self.lanes[lane].counters);
        if self.store(base + 48, &((used + record.len()) as u64 * 8).to_le_bytes()) {
            self.lanes[lane].committed.push((packet, number));
        }
        handler(self, Moment::Committed);
        self.count(Self::entry(id) + 8);
    }

    fn base(&self, lane: usize, packet: u64) -> usize {
        let Lane { offset, place, places, .. } = self.lanes[lane];
        offset + packet as usize % places * place
    }

    fn close(&mut self, lane: usize) {
        let Lane { counters, used, last, .. } = self.lanes[lane];
        let number = self.number(counters + 8);
        let base = self.base(lane, number);
        let discarded = self.number(counters + 16);
        self.store(base + 40, &last.to_le_bytes());
        self.store(base + 56, &(used as u64 * 8).to_le_bytes());
        self.store(base + 72, &discarded.to_le_bytes());
        self.count(counters + 8);
        self.lanes[lane].open = false;
    }

    /// Closes the open packet, like the drain when its thread is idle.
    pub fn flush(&mut self) {
        for lane in 0..2 {
            if self.lanes[lane].open && self.lanes[lane].used > PACKET_HEADER {
                self.close(lane);
            }
        }
    }

    fn open(&mut self, lane: usize, number: u64, time: u64) {
        let Lane { nested, place, places, counters, .. } = self.lanes[lane];
        let base = self.base(lane, number);
        let slot = number as usize % places;
        if self.store(base, &[0; 4]) {
            self.lanes[lane].holds[slot] = None;
        }
        let instance = self.shape.instance + u64::from(nested);
        let records = self.number(counters);
        self.store(base + 4, &UUID);
        self.store(base + 20, &0u32.to_le_bytes());
        let numbers = [
            (24, instance),
            (32, time),
            (40, time),
            (56, place as u64 * 8),
            (64, number + 1),
            (72, 0),
            (80, 77),
            (88, records),
            (48, PACKET_HEADER as u64 * 8),
        ];
        for (at, number) in numbers {
            self.store(base + at, &number.to_le_bytes());
        }
        if self.store(base, &0xC1FC_1FC1u32.to_le_bytes()) {
            self.lanes[lane].holds[slot] = Some(number);
        }
        self.lanes[lane].open = true;
        self.lanes[lane].used = PACKET_HEADER;
    }

    // -- the consumer ---------------------------------------------------------------------------------------------------

    /// Takes the closed packets, and releases them.
    pub fn drain(&mut self, consumer: Consumer) {
        for lane in 0..2 {
            let Lane { counters, released, .. } = self.lanes[lane];
            for number in self.number(released)..self.number(counters + 8) {
                if consumer == Consumer::Keeps {
                    self.keep(lane, number);
                }
                self.store(released, &(number + 1).to_le_bytes());
            }
        }
    }

    /// Appends a packet to the sink's file, in two writes.
    fn keep(&mut self, lane: usize, number: u64) {
        if self.lanes[lane].output.is_empty() {
            let first = self.empty_packet(lane);
            if self.step() {
                self.lanes[lane].output.extend(first);
            }
        }
        let base = self.base(lane, number);
        let size = self.number(base + 48) as usize / 8;
        let packet = self.bytes[base..base + size].to_vec();
        let (half, rest) = packet.split_at(size / 2);
        if self.step() {
            self.lanes[lane].output.extend(half);
        }
        if self.step() {
            self.lanes[lane].output.extend(rest);
            self.lanes[lane].kept.push(number);
        }
    }

    fn empty_packet(&self, lane: usize) -> Vec<u8> {
        let instance = self.shape.instance + lane as u64;
        crate::hand::Packet { instance, begin: OPENED, end: OPENED, ..crate::hand::Packet::default() }.bytes()
    }

    // -- the expected result ----------------------------------------------------------------------------------------------

    /// The numbers of all events that were committed and are still in a ring or an output.
    pub fn expected(&self) -> Vec<u32> {
        let mut numbers = Vec::new();
        for lane in &self.lanes {
            let there = |packet: &u64| lane.kept.contains(packet) || lane.holds.contains(&Some(*packet));
            numbers.extend(lane.committed.iter().filter(|(packet, _)| there(packet)).map(|(_, number)| *number));
        }
        numbers.sort_unstable();
        numbers
    }

    /// The number of committed events.
    pub fn committed(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.committed.len() as u64).sum()
    }

    /// The sink's output of the main stream or the nested one.
    pub fn output(&self, lane: usize) -> &[u8] {
        &self.lanes[lane].output
    }

    /// The offset of the place of a packet of the main stream.
    pub fn place_of(&self, packet: u64) -> usize {
        self.base(0, packet)
    }
}

/// The remains of a process.
#[derive(Debug)]
pub struct Remains {
    pub place: TempDir,
    pub process: PathBuf,
    pub output: PathBuf,
}

impl Remains {
    /// One ring in a session's directory, with its sink's output.
    pub fn of(tracer: &Tracer) -> Self {
        Self::of_rings(&[("0-0.ring", tracer)])
    }

    pub fn of_rings(rings: &[(&str, &Tracer)]) -> Self {
        let place = tempfile::tempdir().unwrap();
        let process = place.path().join("session/rings").join(PROCESS);
        let output = place.path().join("kept");
        fs::create_dir_all(&process).unwrap();
        fs::write(process.join("metadata"), metadata()).unwrap();
        let remains = Self { place, process, output };
        for (name, tracer) in rings {
            remains.add(name, tracer);
        }
        remains
    }

    fn add(&self, name: &str, tracer: &Tracer) {
        fs::write(self.process.join(name), &tracer.bytes).unwrap();
        for lane in 0..2 {
            if tracer.output(lane).is_empty() {
                continue;
            }
            fs::create_dir_all(&self.output).unwrap();
            let name = format!("channel0_{}", tracer.shape.instance + lane as u64);
            fs::write(self.output.join(name), tracer.output(lane)).unwrap();
            fs::write(self.process.join("outputs"), format!("ctf {}\n", self.output.display())).unwrap();
        }
    }

    pub fn ring(&self) -> PathBuf {
        self.process.join("0-0.ring")
    }

    pub fn session(&self) -> PathBuf {
        self.place.path().join("session")
    }

    /// The output directory for the trace.
    pub fn out(&self) -> PathBuf {
        self.place.path().join("out")
    }
}

/// The numbers of the events in a text in babeltrace2's format.
pub fn numbers(text: &str) -> Vec<u32> {
    let number = |line: &str| line.split(" n = ").nth(1)?.split([',', ' ']).next()?.parse().ok();
    let mut numbers: Vec<u32> =
        text.lines().filter(|line| !line.is_empty()).map(|line| number(line).unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

/// The output of babeltrace2. Panics if it prints a warning other than about losses counted by the tracer.
pub fn babeltrace(directory: &Path) -> String {
    let output = std::process::Command::new("babeltrace2")
        .arg(directory)
        .output()
        .expect("babeltrace2 does not run: install it with scripts/setup.sh");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "babeltrace2 refuses the trace: {errors}");
    for line in errors.lines().filter(|line| !line.is_empty()) {
        assert!(line.starts_with("WARNING: Tracer discarded"), "babeltrace2 complains: {errors}");
    }
    String::from_utf8_lossy(&output.stdout).into_owned()
}
