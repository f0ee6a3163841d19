//! `fullness`, which decides when a drain is woken: the share of full packets in a ring, or of spare rings that were taken and can be
//! replaced.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint::marker::Subscriber;
use tracepoint_ring::channel::{AnonymousMemory, Channel, MemorySource, OpenChannel, RingMemory, RingRequest};

tracepoint::define_trace! {
    provider = "fullness";
    seen(n: u64) { n: u64 = n }
}

fn open(config: Channel) -> Arc<OpenChannel> {
    OpenChannel::open(config, [1; 16], 0, 1, Box::new(AnonymousMemory)).expect("memory")
}

#[test]
fn rings_and_spares_count() {
    own_process!();
    let drained = open(Channel::discard(8 << 10).packets(4).spares(4));
    // Initially, all rings that the channel may have are spare rings.
    let bounded = open(Channel::overwrite(8 << 10).spares(2).max_rings(2));
    let marker = tracepoint::find("fullness:seen").expect("listed").marker().expect("has fields");
    let subscriptions: Vec<_> = [&drained, &bounded]
        .map(|channel| {
            let id = channel.add_event().expect("an id");
            marker.subscribe(Subscriber::record(Arc::clone(channel), id)).expect("switches")
        })
        .into();
    assert_eq!((drained.fullness(), bounded.fullness()), (0, 0));

    trace_seen(0);
    assert_eq!((drained.fullness(), bounded.fullness()), (25, 50), "a spare ring of four, and of two, was taken");
    for channel in [&drained, &bounded] {
        channel.maintain().expect("memory");
        assert_eq!(channel.fullness(), 0, "it was replaced, or never will be");
    }

    // 2 KiB a packet, 16 bytes a record: two packets are closed, and the third is open.
    (0..300).for_each(trace_seen);
    assert_eq!((drained.fullness(), bounded.fullness()), (50, 0));
    drained.drain(|_| {});
    assert_eq!(drained.fullness(), 0);
    drop(subscriptions);
    for channel in [drained, bounded] {
        channel.close();
    }
}

/// Anonymous memory; counts the rings.
#[derive(Debug, Default)]
struct Counted(Arc<AtomicU64>);

impl MemorySource for Counted {
    fn ring_memory(&self, request: RingRequest<'_>) -> io::Result<Box<dyn RingMemory>> {
        self.0.fetch_add(u64::from(request.index.is_some()), Ordering::Relaxed);
        AnonymousMemory.ring_memory(request)
    }
}

#[test]
fn a_channel_begins_with_some_of_its_spares() {
    own_process!();
    let rings = |config: Channel| {
        let count = Arc::<AtomicU64>::default();
        let source = Box::new(Counted(Arc::clone(&count)));
        let channel = OpenChannel::open(config, [1; 16], 0, 1, source).expect("memory");
        let counts = [(); 4].map(|()| {
            let made = count.load(Ordering::Relaxed);
            assert_eq!(channel.fullness(), 0, "what was not there was not taken");
            channel.maintain().expect("memory");
            made
        });
        channel.close();
        counts
    };
    let spares = |spares| Channel::discard(8 << 10).spares(spares);
    assert_eq!(rings(spares(6)), [6; 4]);
    assert_eq!(rings(spares(6).at_first(9)), [9; 4]);
    assert_eq!(rings(spares(6).at_first(3)), [3, 5, 6, 6]);
    assert_eq!(rings(spares(6).at_first(0)), [1, 3, 5, 6]);
    assert_eq!(rings(spares(6).max_rings(2).at_first(1)), [1, 2, 2, 2]);
}
