//! How much a drain is wanted: as much as rings are full, and as spare rings were taken that can be replaced.

use std::sync::Arc;
use tracepoint::channel::{AnonymousMemory, Channel, OpenChannel};
use tracepoint::marker::Subscriber;

tracepoint::define_trace! {
    provider = "fullness";
    seen(n: u64) { n: u64 = n }
}

fn open(config: Channel) -> Arc<OpenChannel> {
    OpenChannel::open(config, [1; 16], 0, 1, Box::new(AnonymousMemory)).expect("memory")
}

#[test]
fn rings_and_spares_count() {
    let drained = open(Channel::discard(8 << 10).packets(4).spares(4));
    // All the rings that there will ever be are spare ones at first.
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
