//! Models of the flush handshake: the open packet of a buffer belongs to its owner or to the flusher, never to both, and a request to close it
//! is never lost.

use crate::flush_handshake::{FlushHandshake, Switch};
use crate::primitive::heavy_fence;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// A buffer. `packet` is the number of records in the open packet; `None` if there is none. Loom reports accesses that are not ordered.
struct Buffer {
    handshake: FlushHandshake,
    packet: UnsafeCell<Option<usize>>,
    closed: UnsafeCell<usize>,
}

// SAFETY: the models check it: loom reports a data race.
unsafe impl Sync for Buffer {}

const ROOM: usize = 10;

/// The points of an event at which a signal handler may interrupt it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Before,
    Entered,
    Written,
    After,
}

impl Step {
    /// True while the thread is writing.
    fn is_inside(self) -> bool {
        matches!(self, Self::Entered | Self::Written)
    }
}

impl Buffer {
    fn new() -> Arc<Self> {
        Arc::new(Self { handshake: FlushHandshake::new(), packet: UnsafeCell::new(None), closed: UnsafeCell::new(0) })
    }

    /// The owner records an event. `false` if it goes to the nested buffer.
    fn record(&self) -> bool {
        self.record_and(|_| {})
    }

    /// The same, with `interrupt` called at each step, like a signal handler on the thread.
    fn record_and(&self, interrupt: impl Fn(Step)) -> bool {
        interrupt(Step::Before);
        if self.handshake.is_writing() {
            return false;
        }
        self.handshake.enter();
        interrupt(Step::Entered);
        let written = self.record_inside();
        interrupt(Step::Written);
        self.handshake.leave();
        interrupt(Step::After);
        written
    }

    fn record_inside(&self) -> bool {
        if self.handshake.limit() == 0 {
            match self.handshake.may_switch() {
                Switch::Busy => return false,
                Switch::Close => self.close(),
                Switch::Free => {}
            }
            self.packet.with_mut(|packet| {
                // SAFETY: exclusive, as loom checks.
                unsafe { (*packet).get_or_insert(0) };
            });
            self.handshake.set_limit(ROOM);
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
        self.handshake.clear_limit();
    }

    /// The flusher closes the packet. `false` if the owner was writing.
    fn flush(&self) -> bool {
        self.handshake.request();
        assert!(heavy_fence());
        self.handshake.try_close(|| self.close())
    }

    fn counts(&self) -> (usize, usize) {
        // SAFETY: the other threads have ended.
        let open = self.packet.with(|packet| unsafe { *packet }).unwrap_or(0);
        // SAFETY: as above.
        (open, self.closed.with(|closed| unsafe { *closed }))
    }
}

/// Needs F1/F2, F3 and F4: without one of them, both access the packet at the same time, or one does not see the other's stores.
#[test]
fn the_packet_has_one_writer_at_a_time() {
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

/// Needs F5: the owner opens a packet while the flusher requests it.
#[test]
fn a_request_is_not_lost() {
    loom::model(|| {
        let buffer = Buffer::new();
        assert!(buffer.record());
        let owner = {
            let buffer = Arc::clone(&buffer);
            thread::spawn(move || buffer.record())
        };
        let closed_or_idle = buffer.flush();
        owner.join().unwrap();
        let (_, closed) = buffer.counts();
        assert!(closed > 0 || !closed_or_idle, "the record from before was closed by one of the two");
        assert!(closed > 0 || buffer.handshake.limit() == 0, "the owner will see the request");
    });
}

/// A thread that records continuously closes its packet itself, and the flusher finds it closed.
#[test]
fn a_busy_owner_closes_itself() {
    loom::model(|| {
        let buffer = Buffer::new();
        assert!(buffer.record());
        buffer.handshake.request();
        let owner = {
            let buffer = Arc::clone(&buffer);
            thread::spawn(move || buffer.record())
        };
        assert!(heavy_fence());
        let closed_or_idle = buffer.handshake.try_close(|| buffer.close());
        assert!(owner.join().unwrap() || closed_or_idle, "only a packet that the flusher holds is refused");
        let (_, closed) = buffer.counts();
        assert_eq!(closed, 1, "closed once, with its contents at the time of the request");
    });
}

/// Both buffers of a ring.
struct Ring {
    main: Arc<Buffer>,
    nested: Arc<Buffer>,
}

impl Ring {
    /// Records an event: tries the main buffer, then the nested one, then the main one again. `false` if it is lost.
    fn record(&self, interrupt: impl Fn(Step)) -> bool {
        self.main.record_and(interrupt) || self.nested.record() || self.main.record()
    }

    /// The flusher requests the packets of both buffers, and closes one after the other.
    fn flush(&self) {
        let buffers = [&self.main, &self.nested];
        buffers.iter().for_each(|buffer| buffer.handshake.request());
        assert!(heavy_fence());
        for buffer in buffers {
            buffer.handshake.try_close(|| buffer.close());
        }
    }
}

/// A signal handler interrupts an event at one step while both packets are flushed: it never writes to the buffer that its thread is writing to,
/// and each record exists exactly once. Needs F1/F2, F3 and F4.
fn a_handler_comes(at: Step) {
    let mut model = loom::model::Builder::new();
    // All interleavings take minutes; these have at most three preemptions.
    model.preemption_bound = Some(3);
    model.check(move || {
        let ring = Arc::new(Ring { main: Buffer::new(), nested: Buffer::new() });
        assert!(ring.main.record() && ring.nested.record());
        let owner = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                let handled = std::cell::Cell::new(false);
                let written = ring.record(|step| {
                    if step == at {
                        assert!(!(at.is_inside() && ring.main.record()), "the thread is writing there");
                        handled.set(ring.record(|_| {}));
                    }
                });
                (written, handled.get())
            })
        };
        ring.flush();
        let (written, handled) = owner.join().unwrap();
        assert!(written, "the flusher holds one buffer at a time, and the nested one last");
        assert!(
            handled || at.is_inside(),
            "a handler is refused by both only if its thread uses one and the flusher the other"
        );
        let [main, nested] = [&ring.main, &ring.nested].map(|buffer| buffer.counts());
        let recorded = 2 + usize::from(written) + usize::from(handled);
        assert_eq!(main.0 + main.1 + nested.0 + nested.1, recorded, "no record is lost");
    });
}

#[test]
fn a_handler_comes_before_a_write() {
    a_handler_comes(Step::Before);
}

#[test]
fn a_handler_comes_when_the_buffer_is_taken() {
    a_handler_comes(Step::Entered);
}

#[test]
fn a_handler_comes_when_the_record_is_written() {
    a_handler_comes(Step::Written);
}

#[test]
fn a_handler_comes_after_a_write() {
    a_handler_comes(Step::After);
}
