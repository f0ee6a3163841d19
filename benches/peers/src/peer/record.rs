//! What it costs to record: this library's rings, next to the floor, the same bytes stored inline behind a bare time stamp.
//!
//! Two workloads: `{i32, i32, i64}`, 24 bytes with the header word, and 32 bytes of text with a `u64`, 49 bytes.

use crate::kernel::Compiled;
use crate::site::Site;
use crate::tally;
use crate::variant::{Arm, Armed, Hold, Mode, Proof, Unusable, Variant};
use std::arch::x86_64::_rdtsc;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::time::Duration;
use tracepoint::channel::{AnonymousMemory, Channel, HEADER_SIZE, OpenChannel};
use tracepoint::clock::Clock;
use tracepoint::marker::{Subscriber, Subscription};

tracepoint::define_trace! {
    provider = "record";

    /// The small workload.
    pub numbers(a: i32, b: i32, c: i64) { a: i32 = a, b: i32 = b, c: i64 = c }

    /// The workload with text.
    pub text(name: &str, a: i32, b: i32, c: i64) {
        name: str = name,
        n: u64 = i64::from(a).wrapping_add(i64::from(b)).wrapping_add(c).cast_unsigned(),
    }
}

/// 32 bytes that the compiler knows nothing about.
#[inline(always)]
fn name() -> &'static str {
    static NAME: &str = "a name of two and thirty letters";
    black_box(NAME)
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
        tracepoint::trace!(text(name(), a, b, c));
    }
}

/// A ring for each thread, in which the oldest is overwritten.
const RING: usize = 256 << 10;

/// Records `name` into so many channels.
fn record(name: &str, channels: u32, tell: bool) -> Result<Armed, Unusable> {
    record_with(Clock::Monotonic, name, channels, tell)
}

fn record_with(clock: Clock, name: &str, channels: u32, tell: bool) -> Result<Armed, Unusable> {
    let unusable = |error: &dyn std::fmt::Display| Unusable(error.to_string());
    tracepoint::clock::calibrate(Duration::from_millis(10)).map_err(|error| unusable(&error))?;
    tracepoint::clock::select(clock).map_err(|error| unusable(&error))?;
    let marker = tracepoint::find(name).expect("declared above").marker().expect("has fields");
    let mut open = Vec::new();
    let mut subscriptions = Vec::new();
    for class in 0..channels {
        let config = Channel::overwrite(RING).spares(1);
        let channel =
            OpenChannel::open(config, [1; 16], class, 1, Box::new(AnonymousMemory)).map_err(|e| unusable(&e))?;
        let id = channel.add_event().map_err(|error| unusable(&error))?;
        let subscriber = Subscriber::record(Arc::clone(&channel), id);
        subscriptions.push(marker.subscribe(subscriber).map_err(|error| unusable(&error))?);
        open.push(channel);
    }
    Ok(Armed::until(move || {
        Subscription::end_all(subscriptions);
        for (number, channel) in open.into_iter().enumerate() {
            if tell && number == 0 {
                channel
                    .finish(|packet| packet.bytes[HEADER_SIZE..].chunks_exact(SMALL).for_each(tell_small))
                    .expect("ended");
            }
            channel.close();
        }
    }))
}

/// The size of a record of the small workload, and where its values are.
const SMALL: usize = 24;

fn tell_small(record: &[u8]) {
    let word = |at: usize| i32::from_le_bytes(record[at..at + 4].try_into().expect("four bytes"));
    let c = i64::from_le_bytes(record[16..].try_into().expect("eight bytes"));
    tally::add(word(8), word(12), c);
}

/// The floor's ring: where it begins, and how far it is filled.
static ON: AtomicBool = AtomicBool::new(false);
static BASE: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static USED: AtomicUsize = AtomicUsize::new(0);

/// Reserves `size` bytes: the beginning again when the ring is full.
#[inline(always)]
fn reserve(size: usize) -> *mut u8 {
    let mut used = USED.load(Ordering::Relaxed);
    if used + size > RING {
        used = 0;
    }
    USED.store(used + size, Ordering::Relaxed);
    // SAFETY: `used + size` is at most RING, the size of what BASE points to.
    unsafe { BASE.load(Ordering::Relaxed).add(used) }
}

#[inline(always)]
fn stamp() -> u64 {
    // SAFETY: reads a counter.
    unsafe { _rdtsc() << 16 }
}

/// A time stamp and three stores.
#[derive(Clone, Copy, Debug)]
pub struct FloorNumbers;

impl Site for FloorNumbers {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        if ON.load(Ordering::Relaxed) {
            let to = reserve(SMALL);
            // SAFETY: `reserve` gives as many bytes, for this thread alone.
            unsafe {
                to.cast::<u64>().write_unaligned(stamp());
                to.add(8).cast::<i32>().write_unaligned(a);
                to.add(12).cast::<i32>().write_unaligned(b);
                to.add(16).cast::<i64>().write_unaligned(c);
            }
        }
    }
}

/// A time stamp, 32 bytes and a NUL, and a store.
#[derive(Clone, Copy, Debug)]
pub struct FloorText;

impl Site for FloorText {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        if ON.load(Ordering::Relaxed) {
            let name = name();
            let to = reserve(8 + name.len() + 1 + 8);
            // SAFETY: `reserve` gives as many bytes, for this thread alone.
            unsafe {
                to.cast::<u64>().write_unaligned(stamp());
                std::ptr::copy_nonoverlapping(name.as_ptr(), to.add(8), name.len());
                to.add(8 + name.len()).write(0);
                let n = i64::from(a).wrapping_add(i64::from(b)).wrapping_add(c);
                to.add(8 + name.len() + 1).cast::<i64>().write_unaligned(n);
            }
        }
    }
}

const FLOOR: Arm = || {
    let mut ring = vec![0u8; RING].into_boxed_slice();
    BASE.store(ring.as_mut_ptr(), Ordering::Relaxed);
    USED.store(0, Ordering::Relaxed);
    ON.store(true, Ordering::Relaxed);
    Ok(Armed::until(move || {
        ON.store(false, Ordering::Relaxed);
        drop(ring);
    }))
};

const FLOOR_TELLS: Arm = || {
    let mut ring = vec![0u8; RING].into_boxed_slice();
    BASE.store(ring.as_mut_ptr(), Ordering::Relaxed);
    USED.store(0, Ordering::Relaxed);
    ON.store(true, Ordering::Relaxed);
    Ok(Armed::until(move || {
        ON.store(false, Ordering::Relaxed);
        ring[..USED.load(Ordering::Relaxed)].chunks_exact(SMALL).for_each(tell_small);
    }))
};

const RECORDED: Variant = Variant {
    name: "ours-recorded",
    mode: Mode::On,
    does: "a record of 24 bytes with its time, in this thread's ring",
    kernels: Compiled::of::<Numbers>(),
    arm: || record("record:numbers", 1, false),
    count: || record("record:numbers", 1, true),
    proof: Proof::Values,
    tells: false,
    hold: Hold::Sample,
    limit: u64::MAX,
};

/// The floor first, then ours.
pub const VARIANTS: &[Variant] = &[
    Variant {
        name: "floor",
        does: "rdtsc and stores inline: 24 bytes, nothing else",
        kernels: Compiled::of::<FloorNumbers>(),
        arm: FLOOR,
        count: FLOOR_TELLS,
        ..RECORDED
    },
    RECORDED,
    Variant {
        name: "ours-recorded-coarse",
        does: "a record of 24 bytes with the time of the kernel's last tick",
        arm: || record_with(Clock::Coarse, "record:numbers", 1, false),
        ..RECORDED
    },
    Variant {
        name: "ours-recorded-untimed",
        does: "a record of 24 bytes without a time",
        arm: || record_with(Clock::None, "record:numbers", 1, false),
        ..RECORDED
    },
    Variant {
        name: "ours-recorded-4",
        does: "four records of 24 bytes, in four channels",
        arm: || record("record:numbers", 4, false),
        ..RECORDED
    },
    Variant {
        name: "floor-text",
        does: "rdtsc and stores inline: 49 bytes, 32 of text",
        kernels: Compiled::of::<FloorText>(),
        arm: FLOOR,
        count: crate::variant::AS_IT_IS,
        proof: Proof::Nothing,
        ..RECORDED
    },
    Variant {
        name: "ours-recorded-text",
        does: "a record of 49 bytes, 32 of text",
        kernels: Compiled::of::<Text>(),
        arm: || record("record:text", 1, false),
        count: crate::variant::AS_IT_IS,
        proof: Proof::Nothing,
        ..RECORDED
    },
];
