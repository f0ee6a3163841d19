//! Models of a packet's slot and a reader in another process: the reader copies a packet's committed records, or detects that the copy is
//! invalid.
//!
//! The reader's system calls are modelled according to C3 of `docs/ordering.md`: the loads of one call come before the loads of the next, and are
//! made in any order.

use crate::call_order::{end_call, first_look, look_again};
use crate::packet::{PacketEnd, PacketPtr};
use crate::packet_header::{
    CONTENT_SIZE, EVENTS_BEFORE, HEADER_SIZE, PACKET_MAGIC, PACKET_SIZE, PacketHeader, SEQ_NUM, StreamKey, bits,
};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use std::convert::Infallible;

const WORDS_OF_HEADER: usize = HEADER_SIZE / 8;
/// The words of a header that a reader uses.
const CONTENT: usize = CONTENT_SIZE / 8;
const SIZE: usize = PACKET_SIZE / 8;
const NUMBER: usize = SEQ_NUM / 8;
const BEFORE: usize = EVENTS_BEFORE / 8;
/// The number of records that fit; each is one word.
const ROOM: usize = 2;
const SLOT_SIZE: usize = HEADER_SIZE + 8 * ROOM;

const STREAM: StreamKey = StreamKey { uuid: [7; 16], class: 0, instance: 0 };

/// A stream with one slot, and the number of its closed packets.
struct Slot {
    words: [AtomicU64; WORDS_OF_HEADER + ROOM],
    closed: AtomicU64,
}

/// A packet that a reader has copied.
#[derive(Debug, PartialEq, Eq)]
struct Copy {
    number: u64,
    records: Vec<u64>,
}

/// The content of record `index` of packet `number`.
fn record(number: u64, index: usize) -> u64 {
    10 * number + index as u64
}

impl Slot {
    fn new() -> Arc<Self> {
        Arc::new(Self { words: std::array::from_fn(|_| AtomicU64::new(0)), closed: AtomicU64::new(0) })
    }

    fn packet(&self) -> PacketPtr {
        PacketPtr(self.words.as_ptr().cast_mut().cast())
    }

    // -- the owner: what `Buffer` does ------------------------------------------------------------------------------------

    fn open(&self, number: u64) {
        let packet_bits = bits(SLOT_SIZE);
        let header = PacketHeader {
            packet_bits,
            sequence: number,
            events_before: number - 1,
            tid: 1,
            ..PacketHeader::empty(STREAM, 0)
        };
        // SAFETY: the slot has `SLOT_SIZE` bytes, and only one thread of a model writes to it.
        unsafe { self.packet().open(&header) };
    }

    fn write(&self, number: u64, index: usize) {
        self.words[WORDS_OF_HEADER + index].store(record(number, index), Ordering::Relaxed);
        self.packet().commit(HEADER_SIZE + 8 * (index + 1));
    }

    fn close(&self, content: usize) {
        let closing = PacketEnd { time: 0, content: HEADER_SIZE + 8 * content, events_discarded: 0 };
        // SAFETY: as above.
        unsafe { self.packet().close(closing) };
        self.closed.fetch_add(1, Ordering::Release);
    }

    // -- a reader of another process --------------------------------------------------------------------------------------

    /// One system call that copies words.
    fn read<const N: usize>(&self, at: [usize; N]) -> [u64; N] {
        let words = at.map(|at| self.words[at].load(Ordering::Relaxed));
        end_call();
        words
    }

    /// One system call that copies the magic and the number.
    fn look(&self) -> Result<(u32, u64), Infallible> {
        let [first, number] = self.read([0, NUMBER]);
        Ok((first as u32, number))
    }

    /// The packet that a reader copies; `None` if the slot has no valid one.
    fn try_copy(&self) -> Option<Copy> {
        let closed = self.closed.load(Ordering::Acquire);
        let Ok(head) = first_look(|| self.look(), |head| head.0 == PACKET_MAGIC);
        if head.0 != PACKET_MAGIC {
            return None;
        }
        let number = head.1;
        let [content] = self.read([CONTENT]);
        let records = (content as usize / 8 - HEADER_SIZE) / 8;
        let [size] = self.read([SIZE]);
        let [before] = self.read([BEFORE]);
        let bytes = (0..records).map(|index| self.read([WORDS_OF_HEADER + index])[0]).collect();
        let Ok(again) = look_again(|| self.look());
        if again != head {
            return None;
        }
        assert_eq!(before, number - 1, "the header is of one packet");
        assert!(number > closed || size == content, "a packet that counts as closed is complete");
        Some(Copy { number, records: bytes })
    }
}

/// Checks that the records are the first ones of the packet.
fn check(copy: &Copy, most: usize) {
    let expected = (0..copy.records.len()).map(|index| record(copy.number, index));
    assert!(copy.records.len() <= most && copy.records.iter().copied().eq(expected), "{copy:?}");
}

/// Committed records are complete. Needs C1.
#[test]
fn a_copy_has_whole_records() {
    loom::model(|| {
        let slot = Slot::new();
        slot.open(1);
        let owner = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || (0..ROOM).for_each(|index| slot.write(1, index)))
        };
        let copy = slot.try_copy().expect("the packet is not switched here");
        assert_eq!(copy.number, 1);
        check(&copy, ROOM);
        owner.join().unwrap();
    });
}

/// A slot is used for the first time: a reader that finds a magic finds the number of that packet. Needs C2.
#[test]
fn a_magic_comes_with_its_number() {
    loom::model(|| {
        let slot = Slot::new();
        let owner = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || slot.open(1))
        };
        let Ok(head) = first_look(|| slot.look(), |head| head.0 == PACKET_MAGIC);
        assert!(head.0 != PACKET_MAGIC || head.1 == 1, "{head:?}");
        owner.join().unwrap();
    });
}

/// The slot is reused during the read: the copy is of the previous packet, of the next one, or rejected. Needs C1, C2 and R2.
///
/// The threads are interrupted at most three times, which is bounded to take seconds; each mutation of this order is found with two.
#[test]
fn a_copy_is_of_one_packet() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(3));
    model.check(|| {
        let slot = Slot::new();
        slot.open(1);
        slot.write(1, 0);
        let owner = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || {
                slot.close(1);
                slot.open(2);
                slot.write(2, 0);
            })
        };
        if let Some(copy) = slot.try_copy() {
            assert!([1, 2].contains(&copy.number), "{copy:?}");
            check(&copy, 1);
            assert!(copy.number == 2 || copy.records.len() == 1, "the first record was committed before: {copy:?}");
        }
        owner.join().unwrap();
        let copy = slot.try_copy();
        assert_eq!(
            copy,
            Some(Copy { number: 2, records: vec![record(2, 0)] }),
            "without a concurrent writer it can be read"
        );
    });
}
