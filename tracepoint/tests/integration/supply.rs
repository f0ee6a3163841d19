//! The supply of rings for threads: after many threads at once, when large rings cannot be allocated, and when the memory of a ring was
//! lost.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;
use tracepoint::marker::{Subscriber, Subscription};
use tracepoint_ring::channel::{
    AnonymousMemory, Channel, HEADER_SIZE, Loss, MemorySource, OpenChannel, RingMemory, RingRequest,
};

tracepoint::define_trace! {
    provider = "supply";
    beat(n: u64) { n: u64 = n }
}

/// Anonymous memory.
#[derive(Clone, Debug, Default)]
struct Source(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    small: AtomicUsize,
    large: AtomicUsize,
    /// Number of large rings that can be allocated; 0 for no limit.
    most_large: AtomicUsize,
    /// Number of threads of the process; 0 if unknown.
    threads: AtomicUsize,
    /// True once the memory of the existing rings was lost.
    is_lost: Arc<AtomicBool>,
}

impl Source {
    /// Returns how many small and large rings it had to create.
    fn made(&self) -> [usize; 2] {
        [&self.0.small, &self.0.large].map(|count| count.load(Ordering::Relaxed))
    }
}

struct Memory(Box<dyn RingMemory>, Arc<AtomicBool>);

impl MemorySource for Source {
    fn thread_count(&self) -> Option<usize> {
        Some(self.0.threads.load(Ordering::Relaxed)).filter(|threads| *threads > 0)
    }

    fn ring_memory(&self, request: RingRequest<'_>) -> io::Result<Box<dyn RingMemory>> {
        let Self(counts) = self;
        let is_large = request.len >= 64 << 10;
        let most = counts.most_large.load(Ordering::Relaxed);
        if is_large && most > 0 && counts.large.load(Ordering::Relaxed) >= most {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        if request.index.is_some() {
            let count = if is_large { &counts.large } else { &counts.small };
            count.fetch_add(1, Ordering::Relaxed);
        }
        let memory = AnonymousMemory.ring_memory(request)?;
        Ok(Box::new(Memory(memory, Arc::clone(&counts.is_lost))))
    }
}

// SAFETY: that of AnonymousMemory; when it is lost its bytes are as they were.
unsafe impl RingMemory for Memory {
    fn base(&self) -> NonNull<u8> {
        self.0.base()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn is_whole(&self) -> bool {
        !self.1.load(Ordering::Relaxed)
    }
}

fn open(config: Channel, source: &Source) -> (Arc<OpenChannel>, Subscription) {
    let channel = OpenChannel::open(config, [6; 16], 0, 1, Box::new(source.clone())).expect("opens");
    let marker = tracepoint::find("supply:beat").expect("listed").marker().expect("has fields");
    let id = channel.add_event().expect("first id");
    let subscription = marker.subscribe(Subscriber::record(Arc::clone(&channel), id)).expect("switches");
    (channel, subscription)
}

/// Returns the numbers of events that were fired, recorded, and lost without a ring.
fn found(channel: &OpenChannel) -> [u64; 3] {
    let event = &channel.account().events[0];
    [event.fired, event.recorded, event.lost(Loss::NoRing)]
}

fn end(channel: &OpenChannel, subscription: Subscription) {
    Subscription::end_all(vec![subscription]);
    channel.close();
}

/// Records of a number in a small ring: 16 packets of 1 KiB.
const IN_SMALL: u64 = 16 * ((1024 - HEADER_SIZE as u64) / 16);

/// Starts this number of threads, one after another, each of which fires this number of events; they end together. The supplier runs a
/// round after each.
fn crowd(channel: &OpenChannel, threads: usize, events: u64) {
    let all = Barrier::new(threads + 1);
    thread::scope(|scope| {
        for _ in 0..threads {
            let (fired, has_fired) = sync_channel(1);
            let all = &all;
            let body = move || {
                (0..events).for_each(trace_beat);
                fired.send(()).expect("it is waited for");
                all.wait();
            };
            thread::Builder::new().stack_size(64 << 10).spawn_scoped(scope, body).expect("a thread");
            has_fired.recv().expect("no panic");
            channel.maintain().expect("memory");
        }
        all.wait();
    });
}

/// Half of them when the channel is opened, the others in the first round, independent of the events until then and of the number of
/// threads.
#[test]
fn a_channel_begins_with_so_many_small_rings() {
    own_process!();
    let source = Source::default();
    source.0.threads.store(1, Ordering::Relaxed);
    let (channel, subscription) = open(Channel::default(), &source);
    assert_eq!(source.made(), [32, 16]);
    trace_beat(0);
    for _ in 0..3 {
        channel.maintain().expect("memory");
        assert_eq!(source.made(), [64 + 1, 16], "this thread has one, and 64 are spare");
    }
    end(&channel, subscription);
}

/// The small rings of the crowd stay, because their counters are a part of the trace. They do not replace large rings for later threads.
#[test]
fn a_crowd_leaves_large_rings_to_busy_threads() {
    own_process!();
    const MAX_RINGS: usize = 256;
    const CROWD: usize = 250;
    const BUSY: usize = 8;
    let source = Source::default();
    let (channel, subscription) = open(Channel::default().at_first(1).max_rings(MAX_RINGS), &source);
    crowd(&channel, CROWD, 1);
    assert_eq!(found(&channel), [CROWD as u64, CROWD as u64, 0]);
    crowd(&channel, BUSY, 2 * IN_SMALL);
    let fired = CROWD as u64 + BUSY as u64 * 2 * IN_SMALL;
    assert_eq!(found(&channel), [fired, fired, 0]);
    // One for each busy thread, and the spare ones: no other thread can continue in one.
    assert_eq!(source.made(), [MAX_RINGS, BUSY + Channel::default().spare_rings()], "small and large rings");
    end(&channel, subscription);
}

/// A thread that stays in its small ring fires repeatedly. Each of its events would wake the supplier in vain, because only small rings can
/// be allocated.
#[test]
fn a_thread_wakes_the_supplier_if_that_can_make_such_a_ring() {
    own_process!();
    let source = Source::default();
    source.0.most_large.store(1, Ordering::Relaxed);
    let (channel, subscription) = open(Channel::default().at_first(1), &source);
    (0..2 * IN_SMALL).for_each(trace_beat);
    channel.maintain().expect_err("there is no memory for another large ring");
    thread::scope(|scope| {
        scope.spawn(|| {
            (0..IN_SMALL).for_each(trace_beat);
            let word = channel.supply_wake_word();
            word.announce();
            trace_beat(0);
            assert!(!word.sleep(Duration::from_millis(1)), "only small rings can be made");
            source.0.most_large.store(0, Ordering::Relaxed);
            channel.maintain().expect("memory");
            trace_beat(0);
        });
    });
    assert_eq!(found(&channel), [3 * IN_SMALL + 2, 3 * IN_SMALL + 1, 1]);
    end(&channel, subscription);
}

/// Otherwise the events of the next thread in it would be discarded with the ring.
#[test]
fn a_ring_whose_memory_was_lost_is_not_handed_on() {
    own_process!();
    let source = Source::default();
    let (channel, subscription) = open(Channel::discard(1 << 14).spares(1), &source);
    thread::spawn(|| trace_beat(1)).join().expect("no panic");
    assert_eq!(found(&channel), [1, 1, 0], "its ring is handed on");
    thread::scope(|scope| {
        scope.spawn(|| {
            trace_beat(2);
            source.0.is_lost.store(true, Ordering::Relaxed);
        });
    });
    thread::spawn(|| trace_beat(3)).join().expect("no panic");
    assert_eq!(found(&channel), [3, 2, 1], "the third thread has no ring, instead of the lost one");
    end(&channel, subscription);
}
