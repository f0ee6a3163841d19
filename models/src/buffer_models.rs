//! Models of the gate: the open packet of a buffer belongs to its owner or to the flusher, never to both, and a request to close
//! it is never lost.

use crate::gate::{Gate, Switch};
use crate::primitive::heavy_fence;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// The open packet: how many records are in it; `None` if there is none. Loom reports any two accesses that are not ordered.
struct Buffer {
    gate: Gate,
    packet: UnsafeCell<Option<usize>>,
    closed: UnsafeCell<usize>,
}

// SAFETY: what the models are to show.
unsafe impl Sync for Buffer {}

const ROOM: usize = 10;

impl Buffer {
    fn new() -> Arc<Self> {
        Arc::new(Self { gate: Gate::new(), packet: UnsafeCell::new(None), closed: UnsafeCell::new(0) })
    }

    /// What the owner does with an event; `false` if it goes to the nested buffer.
    fn record(&self) -> bool {
        assert!(self.gate.enter(), "there are no signal handlers here");
        let written = self.record_inside();
        self.gate.leave();
        written
    }

    fn record_inside(&self) -> bool {
        if self.gate.limit() == 0 {
            match self.gate.may_switch() {
                Switch::Busy => return false,
                Switch::Close => self.close(),
                Switch::Free => {}
            }
            self.packet.with_mut(|packet| {
                // SAFETY: exclusive, as loom checks.
                unsafe { (*packet).get_or_insert(0) };
            });
            self.gate.set_limit(ROOM);
        }
        // SAFETY: exclusive, as loom checks.
        self.packet.with_mut(|packet| unsafe { *(*packet).as_mut().expect("a packet is open") += 1 });
        true
    }

    fn close(&self) {
        // SAFETY: exclusive, as loom checks.
        if let Some(records) = self.packet.with_mut(|packet| unsafe { (*packet).take() }) {
            // SAFETY: exclusive, as loom checks.
            self.closed.with_mut(|closed| unsafe { *closed += records });
        }
        self.gate.no_packet();
    }

    /// What the flusher does. `false` if the owner was writing.
    fn flush(&self) -> bool {
        self.gate.ask();
        assert!(heavy_fence());
        self.gate.settle(|| self.close())
    }

    fn counts(&self) -> (usize, usize) {
        // SAFETY: called when the other threads have ended.
        let open = self.packet.with(|packet| unsafe { *packet }).unwrap_or(0);
        // SAFETY: as above.
        (open, self.closed.with(|closed| unsafe { *closed }))
    }
}

/// Needs F1/F2, F3 and F4: without one of them both have the packet at a time, or one does not see what the other did.
#[test]
fn the_packet_has_one_master_at_a_time() {
    loom::model(|| {
        let buffer = Buffer::new();
        let owner = {
            let buffer = Arc::clone(&buffer);
            thread::spawn(move || usize::from(buffer.record()) + usize::from(buffer.record()))
        };
        buffer.flush();
        let written = owner.join().unwrap();
        let (open, closed) = buffer.counts();
        assert_eq!(open + closed, written, "no record is lost");
    });
}

/// Needs F5: the owner opens a packet while it is asked to close it.
#[test]
fn a_request_is_not_lost() {
    loom::model(|| {
        let buffer = Buffer::new();
        assert!(buffer.record());
        let owner = {
            let buffer = Arc::clone(&buffer);
            thread::spawn(move || buffer.record())
        };
        let settled = buffer.flush();
        owner.join().unwrap();
        let (_, closed) = buffer.counts();
        assert!(closed > 0 || !settled, "the record from before was closed by one of the two");
        assert!(closed > 0 || buffer.gate.limit() == 0, "the owner will find the request");
    });
}

/// A thread that records all the time closes its packet itself, and the flusher's next look finds that done.
#[test]
fn a_busy_owner_closes_itself() {
    loom::model(|| {
        let buffer = Buffer::new();
        assert!(buffer.record());
        buffer.gate.ask();
        let owner = {
            let buffer = Arc::clone(&buffer);
            thread::spawn(move || buffer.record())
        };
        assert!(heavy_fence());
        let settled = buffer.gate.settle(|| buffer.close());
        assert!(owner.join().unwrap() || settled, "only a packet that the flusher has is refused");
        let (_, closed) = buffer.counts();
        assert_eq!(closed, 1, "closed once, with what was in it when it was asked for");
    });
}
