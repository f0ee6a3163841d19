//! The fields of events that match, on their way from a site to the thread.
//!
//! ```text
//!   FREE ──claim: CAS, by the event──▶ WRITING ──fields written──▶ READY ──taken, by the thread──▶ FREE
//! ```
//!
//! An event claims a slot by a bounded scan, without retrying because of other events. Signal handlers may do so as well, because a handler
//! that interrupts an event claims another slot. If there is no free slot, the event is counted. A claim is an Acquire (E1), which pairs
//! with the Release of the thread that freed the slot (E1): the contents of one use are written after those of the previous use were read.
//! READY is stored by a Release (E2), which pairs with the thread's Acquire (E2). The words themselves are Relaxed.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use tracepoint_core::field::Value;
use tracepoint_core::marker::{FieldView, MarkerDescriptor};
use tracepoint_session_io::trigger::Detail;

/// Maximum number of events that wait for the thread with their fields.
const SLOTS: usize = 8;
/// Size of the fields of one event, in words of 8 bytes. Further fields are left out.
const WORDS: usize = 56;
/// Maximum number of bytes of a text that are kept.
const MAX_TEXT: usize = 128;

const FREE: u32 = 0;
const WRITING: u32 = 1;
const READY: u32 = 2;

/// The kinds of captured fields, in the highest byte of their first words.
const NONE: u64 = 0;
const UNSIGNED: u64 = 1;
const SIGNED: u64 = 2;
const FLOAT: u64 = 3;
/// The lowest bits contain the length in bytes, and the bytes follow.
const TEXT: u64 = 4;
const KIND_SHIFT: u32 = 56;

/// An event with its fields.
#[derive(Debug)]
struct Slot {
    state: AtomicU32,
    /// Index of the watched event.
    event: AtomicU32,
    time: AtomicU64,
    /// Number of used words.
    used: AtomicU32,
    words: [AtomicU64; WORDS],
}

/// The slots of a trigger.
#[derive(Debug)]
pub(super) struct CaptureSlots {
    slots: [Slot; SLOTS],
    /// Number of events for which there was no slot.
    missed: AtomicU64,
}

/// A captured event.
#[derive(Debug)]
pub(super) struct Capture {
    pub(super) event: u32,
    /// Time in ns on the clock of the events.
    pub(super) time: u64,
    /// The captured fields, in order.
    words: Vec<u64>,
}

impl CaptureSlots {
    pub(super) const fn new() -> Self {
        Self { slots: [const { Slot::new() }; SLOTS], missed: AtomicU64::new(0) }
    }

    /// Captures an event. Called by the site.
    pub(super) fn push(&self, event: u32, time: u64, fields: FieldView<'_>) {
        for slot in &self.slots {
            // E1: pairs with the store of FREE in `take`.
            if slot.state.compare_exchange(FREE, WRITING, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                slot.event.store(event, Ordering::Relaxed);
                slot.time.store(time, Ordering::Relaxed);
                slot.write(fields);
                // E2: pairs with the load in `take`.
                slot.state.store(READY, Ordering::Release);
                return;
            }
        }
        self.missed.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes the captured events, in the order of their times, and the number of the others. Called by the thread.
    pub(super) fn take(&self) -> (Vec<Capture>, u64) {
        let mut captures = Vec::new();
        for slot in &self.slots {
            // E2: pairs with the store of READY in `push`.
            if slot.state.load(Ordering::Acquire) == READY {
                captures.push(slot.read());
                // E1: pairs with the claim in `push`.
                slot.state.store(FREE, Ordering::Release);
            }
        }
        captures.sort_by_key(|capture| capture.time);
        (captures, self.missed.swap(0, Ordering::Release))
    }

    /// Returns whether there is an event that was not taken.
    pub(super) fn is_pending(&self) -> bool {
        // E1: pairs with the store of FREE in `take`.
        self.missed.load(Ordering::Acquire) > 0
            || self.slots.iter().any(|slot| slot.state.load(Ordering::Acquire) != FREE)
    }
}

impl Slot {
    const fn new() -> Self {
        Self {
            state: AtomicU32::new(FREE),
            event: AtomicU32::new(0),
            time: AtomicU64::new(0),
            used: AtomicU32::new(0),
            words: [const { AtomicU64::new(0) }; WORDS],
        }
    }

    fn write(&self, fields: FieldView<'_>) {
        let mut used = 0;
        for index in 0.. {
            let Some(value) = fields.get(index) else { break };
            let Some(next) = self.write_value(used, value) else { break };
            used = next;
        }
        self.used.store(used as u32, Ordering::Relaxed);
    }

    /// Writes a value; returns the index of the next one, or `None` if there is no space.
    fn write_value(&self, at: usize, value: Value<'_>) -> Option<usize> {
        let (kind, number) = match value {
            Value::Unsigned(number) => (UNSIGNED, number),
            Value::Bool(truth) => (UNSIGNED, truth.into()),
            Value::Signed(number) => (SIGNED, number.cast_unsigned()),
            Value::Float(number) => (FLOAT, number.to_bits()),
            Value::Text(text) => return self.write_bytes(at, text.as_bytes()),
            Value::Path(path) => return self.write_bytes(at, path),
            _ => {
                self.words.get(at)?.store(NONE << KIND_SHIFT, Ordering::Relaxed);
                return Some(at + 1);
            }
        };
        let [first, second] = [self.words.get(at)?, self.words.get(at + 1)?];
        first.store(kind << KIND_SHIFT, Ordering::Relaxed);
        second.store(number, Ordering::Relaxed);
        Some(at + 2)
    }

    fn write_bytes(&self, at: usize, bytes: &[u8]) -> Option<usize> {
        let bytes = &bytes[..bytes.len().min(MAX_TEXT)];
        let end = at + 1 + bytes.len().div_ceil(8);
        let (first, words) = self.words.get(at..end)?.split_first()?;
        first.store(TEXT << KIND_SHIFT | bytes.len() as u64, Ordering::Relaxed);
        for (word, part) in words.iter().zip(bytes.chunks(8)) {
            let mut whole = [0; 8];
            whole[..part.len()].copy_from_slice(part);
            word.store(u64::from_le_bytes(whole), Ordering::Relaxed);
        }
        Some(end)
    }

    fn read(&self) -> Capture {
        let used = self.used.load(Ordering::Relaxed) as usize;
        Capture {
            event: self.event.load(Ordering::Relaxed),
            time: self.time.load(Ordering::Relaxed),
            words: self.words.iter().take(used).map(|word| word.load(Ordering::Relaxed)).collect(),
        }
    }
}

impl Capture {
    /// Returns the captured fields as entries: `field_NAME`. Arrays are left out.
    pub(super) fn entries(&self, descriptor: &MarkerDescriptor) -> Vec<(String, Detail)> {
        let mut entries = Vec::new();
        let mut words = self.words.iter().copied();
        for field in descriptor.fields() {
            let Some(first) = words.next() else { break };
            let detail = match first >> KIND_SHIFT {
                UNSIGNED => Detail::Number(words.next().unwrap_or(0)),
                SIGNED => {
                    let number = words.next().unwrap_or(0).cast_signed();
                    u64::try_from(number).map_or_else(|_| Detail::Text(number.to_string()), Detail::Number)
                }
                FLOAT => Detail::Text(f64::from_bits(words.next().unwrap_or(0)).to_string()),
                TEXT => {
                    let len = (first & 0xffff) as usize;
                    let bytes: Vec<u8> =
                        words.by_ref().take(len.div_ceil(8)).flat_map(u64::to_le_bytes).take(len).collect();
                    Detail::Text(String::from_utf8_lossy(&bytes).into_owned())
                }
                _ => continue,
            };
            let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
            entries.push((format!("field_{}", field.name.chars().map(plain).collect::<String>()), detail));
        }
        entries
    }
}
