//! A process has up to 32 channels at once, and any number one after another.

use std::sync::Arc;
use tracepoint::marker::{Subscriber, Subscription};
use tracepoint_ring::channel::{AnonymousMemory, Channel, ConfigError, OpenChannel};

tracepoint::define_trace! {
    provider = "many";
    seen(n: u64) { n: u64 = n }
}

const MAX: u32 = 32;

fn open(class: u32) -> Result<Arc<OpenChannel>, ConfigError> {
    OpenChannel::open(Channel::discard(8 << 10).spares(1), [1; 16], class, 1, Box::new(AnonymousMemory))
}

fn record(channel: &Arc<OpenChannel>) -> Subscription {
    let marker = tracepoint::find("many:seen").expect("listed").marker().expect("has fields");
    let id = channel.add_event().expect("an id");
    marker.subscribe(Subscriber::record(Arc::clone(channel), id)).expect("switches")
}

#[test]
fn the_33rd_channel_is_refused_until_another_is_closed() {
    own_process!();
    let mut channels: Vec<_> = (0..MAX).map(|class| open(class).expect("room")).collect();
    let refused = open(MAX).expect_err("there are 32").to_string();
    assert_eq!(refused, "32 channels are open in this process, which is the limit: close one first");
    let subscriptions: Vec<_> = channels.iter().map(record).collect();
    trace_seen(1);
    drop(subscriptions);
    for channel in &channels {
        assert_eq!(channel.account().events[0].recorded, 1, "{channel:?}");
    }
    // Slots are reused.
    for class in MAX..4 * MAX {
        channels.remove(0).close();
        let channel = open(class).expect("one was closed");
        let subscription = record(&channel);
        trace_seen(2);
        drop(subscription);
        assert_eq!(channel.account().events[0].recorded, 1, "{channel:?}");
        channels.push(channel);
    }
    for channel in channels {
        channel.close();
    }
}
