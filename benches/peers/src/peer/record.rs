//! Recording with this library, into rings that overwrite their oldest packet.
//!
//! The proof decodes the bytes of packets by the tables of `docs/format-ring.md`, so that it does not depend on the library's own
//! reader.

use crate::kernel::Compiled;
use crate::peer::workload::{NAME, name, sum, tally_numbers, tally_text};
use crate::site::Site;
use crate::tally;
use crate::variant::{AS_IT_IS, Armed, Hold, Mode, Proof, Recording, Unusable, Variant};
use std::fmt::Display;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tracepoint::marker::{Subscriber, Subscription};
use tracepoint_ring::channel::{AnonymousMemory, Channel, HEADER_SIZE, OpenChannel};
use tracepoint_ring::clock::{self, Clock};

tracepoint::define_trace! {
    provider = "record";

    /// The workload of numbers.
    pub numbers(a: i32, b: i32, c: i64) { a: i32 = a, b: i32 = b, c: i64 = c }

    /// The workload with text.
    pub text(name: &str, n: u64) { name: str = name, n: u64 = n }
}

/// `trace!(numbers(…))`.
#[derive(Clone, Copy, Debug)]
pub struct Numbers;

impl Site for Numbers {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        tracepoint::trace!(numbers(a, b, c));
    }
}

/// `trace!(text(…))`.
#[derive(Clone, Copy, Debug)]
pub struct Text;

impl Site for Text {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        tracepoint::trace!(text(name(), sum(a, b, c)));
    }
}

/// A ring for each thread, which overwrites its oldest packet.
const RING: usize = crate::peer::plain_ring::SIZE;
/// The size of the word at the start of a record.
const WORD: usize = 8;

/// The way in which an event is recorded.
struct Plan {
    /// `numbers` or `text`.
    event: Event,
    clock: Clock,
    /// The number of open channels.
    channels: u32,
    /// The number of channels that record the event, each with its own subscriber.
    subscribers: usize,
}

/// A workload.
#[derive(Clone, Copy)]
struct Event {
    name: &'static str,
    /// The size of its records.
    size: usize,
    add_to_tally: fn(&[u8]),
}

const NUMBERS: Event = Event { name: "record:numbers", size: WORD + 16, add_to_tally: tally_numbers };
const TEXT: Event = Event { name: "record:text", size: WORD + NAME.len() + 1 + 8, add_to_tally: tally_text };

/// One subscriber, one channel.
const fn one(event: Event, clock: Clock) -> Plan {
    Plan { event, clock, channels: 1, subscribers: 1 }
}

/// Several subscribers, each with its channel.
const fn subscribers(event: Event, subscribers: usize) -> Plan {
    Plan { event, clock: Clock::Monotonic, channels: subscribers as u32, subscribers }
}

/// Several open channels; only the last one records.
const fn channels(event: Event, channels: u32) -> Plan {
    Plan { event, clock: Clock::Monotonic, channels, subscribers: 1 }
}

impl Plan {
    /// Adds the events of the account to the tally at the end.
    fn arm(self) -> Result<Armed, Unusable> {
        self.record(|channels, subscribed, _| {
            let recorded = channels[subscribed..].iter().map(|channel| recorded(channel)).min();
            tally::add_hits(recorded.unwrap_or_default());
        })
    }

    /// Counts the events in the packets at the end. All subscribers must have received the same number.
    fn count(self) -> Result<Armed, Unusable> {
        self.record(|channels, subscribed, event| {
            let of_one = recorded(&channels[subscribed]);
            assert!(
                channels[subscribed..].iter().all(|channel| recorded(channel) == of_one),
                "all subscribers record alike"
            );
            let take = |packet: tracepoint_ring::channel::Packet<'_>| {
                let records = &packet.bytes[HEADER_SIZE..];
                records.chunks_exact(event.size).for_each(|record| (event.add_to_tally)(&record[WORD..]));
                tally::add_bytes((records.len() * (channels.len() - subscribed)) as u64);
            };
            channels[subscribed].finish(take).expect("its subscription has ended");
        })
    }

    fn record(self, end: impl FnOnce(&[Arc<OpenChannel>], usize, Event) + 'static) -> Result<Armed, Unusable> {
        let unusable = |error: &dyn Display| Unusable(error.to_string());
        set_clock(self.clock)?;
        let marker = tracepoint::find(self.event.name).expect("declared above").marker().expect("has fields");
        let mut channels = Vec::new();
        for class in 0..self.channels {
            // A ring for each of the threads that are measured at once.
            let config = Channel::overwrite(RING).spares(2);
            let channel = OpenChannel::open(config, [1; 16], class, 1, Box::new(AnonymousMemory));
            channels.push(channel.map_err(|error| unusable(&error))?);
        }
        let first = channels.len() - self.subscribers;
        let mut subscriptions = Vec::new();
        for channel in &channels[first..] {
            let id = channel.add_event().map_err(|error| unusable(&error))?;
            let subscriber = Subscriber::record(Arc::clone(channel), id);
            subscriptions.push(marker.subscribe(subscriber).map_err(|error| unusable(&error))?);
        }
        Ok(Armed::until(move || {
            Subscription::end_all(subscriptions);
            end(&channels, first, self.event);
            for channel in &channels {
                channel.close();
            }
        }))
    }
}

/// Selects a clock; the time stamp counter is measured once.
pub(super) fn set_clock(clock: Clock) -> Result<(), Unusable> {
    static CALIBRATED: OnceLock<Result<(), String>> = OnceLock::new();
    let calibrate = || clock::calibrate(Duration::from_millis(10)).map_err(|error| error.to_string());
    CALIBRATED.get_or_init(calibrate).clone().map_err(Unusable)?;
    clock::select(clock).map_err(|error| Unusable(error.to_string()))
}

/// The number of committed records.
fn recorded(channel: &OpenChannel) -> u64 {
    channel.account().events.into_iter().map(|event| event.recorded).sum()
}

const RECORDED: Variant = Variant {
    name: "ours",
    mode: Mode::Recorded,
    does: "a record of 24 bytes with its time, in this thread's ring",
    kernels: Compiled::of::<Numbers>(),
    arm: || one(NUMBERS, Clock::Monotonic).arm(),
    count: || one(NUMBERS, Clock::Monotonic).count(),
    proof: Proof::Values,
    counts_losses: true,
    hold: Hold::Sample,
    limit: u64::MAX,
    recording: Some(Recording { floor: "floor", warm: 12_000, thread: AS_IT_IS, sustained: false }),
};

const RECORDED_TEXT: Variant = Variant {
    name: "ours-text",
    does: "a record of 49 bytes, 32 of text, with its time",
    kernels: Compiled::of::<Text>(),
    arm: || one(TEXT, Clock::Monotonic).arm(),
    count: || one(TEXT, Clock::Monotonic).count(),
    recording: Some(Recording { floor: "floor-text", warm: 6_000, thread: AS_IT_IS, sustained: false }),
    ..RECORDED
};

/// Makes a variant from another one, with its name, its description and its plan.
macro_rules! like {
    ($base:ident, $name:literal, $does:literal, $plan:expr) => {
        Variant { name: $name, does: $does, arm: || $plan.arm(), count: || $plan.count(), ..$base }
    };
}

/// Both workloads: with other clocks, for several subscribers, next to other channels.
pub const VARIANTS: &[Variant] = &[
    RECORDED,
    like!(RECORDED, "ours-coarse", "the same with the time of the kernel's last tick", one(NUMBERS, Clock::Coarse)),
    like!(RECORDED, "ours-untimed", "the same without a time", one(NUMBERS, Clock::None)),
    like!(RECORDED, "ours-2", "two subscribers, each with its channel: two records", subscribers(NUMBERS, 2)),
    like!(RECORDED, "ours-4", "four subscribers, each with its channel: four records", subscribers(NUMBERS, 4)),
    like!(RECORDED, "ours-of-8", "one record; eight channels are open", channels(NUMBERS, 8)),
    RECORDED_TEXT,
    like!(
        RECORDED_TEXT,
        "ours-text-coarse",
        "the same with the time of the kernel's last tick",
        one(TEXT, Clock::Coarse)
    ),
    like!(RECORDED_TEXT, "ours-text-untimed", "the same without a time", one(TEXT, Clock::None)),
    like!(RECORDED_TEXT, "ours-text-2", "two subscribers, each with its channel: two records", subscribers(TEXT, 2)),
    like!(RECORDED_TEXT, "ours-text-4", "four subscribers, each with its channel: four records", subscribers(TEXT, 4)),
    like!(RECORDED_TEXT, "ours-text-of-8", "one record; eight channels are open", channels(TEXT, 8)),
];
