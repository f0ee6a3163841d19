//! `restrict_this_thread`: only one channel gets the events of the thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint::marker::{Aggregate, Decision, FieldView, Filter, Subscriber, Subscription};
use tracepoint_ring::channel::{AnonymousMemory, Channel, OpenChannel};

tracepoint::define_trace! {
    provider = "kept";
    exported(n: u64) { n: u64 = n }
    inside(n: u64);
}

/// Counts its calls, as a filter or as an aggregate.
#[derive(Default)]
struct Counting(AtomicU64);

impl Filter for Counting {
    fn accept(&self, _: FieldView<'_>) -> bool {
        true
    }

    fn decide(&self, _: u64, _: FieldView<'_>) -> Decision {
        self.0.fetch_add(1, Ordering::Relaxed);
        Decision::Accept
    }
}

impl Aggregate for Counting {
    fn observe(&self, _: u64, _: FieldView<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn open(class: u32) -> Arc<OpenChannel> {
    let channel = Channel::discard(8 << 10).spares(8);
    OpenChannel::open(channel, [1; 16], class, 1, Box::new(AnonymousMemory)).expect("opens")
}

fn subscribe(subscriber: Subscriber) -> Subscription {
    tracepoint::find("kept:exported")
        .expect("listed")
        .marker()
        .expect("has fields")
        .subscribe(subscriber)
        .expect("switches")
}

fn record(channel: &Arc<OpenChannel>, filter: Option<&Arc<Counting>>) -> Subscription {
    let subscriber = Subscriber::record(Arc::clone(channel), channel.add_event().expect("an id"));
    subscribe(match filter {
        Some(filter) => subscriber.filter(Arc::clone(filter) as _),
        None => subscriber,
    })
}

/// Returns the numbers of fired and recorded events.
fn counts(channel: &OpenChannel) -> (u64, u64) {
    let account = channel.account();
    (account.events[0].fired, account.events[0].recorded)
}

#[test]
fn other_channels_neither_record_nor_count_its_events() {
    own_process!();
    let (own, other, filtering) = (open(0), open(1), open(2));
    let (filtered, shown) = (Arc::<Counting>::default(), Arc::<Counting>::default());
    let mut subscriptions = vec![record(&own, None), record(&other, None), record(&filtering, Some(&filtered))];
    subscriptions.push(subscribe(Subscriber::aggregate(Arc::clone(&shown) as _)));
    let of = |channel: &Arc<OpenChannel>| Arc::clone(channel);
    let (to, also) = (of(&own), of(&other));
    let thread = std::thread::spawn(move || {
        // First gives the thread a ring in each channel.
        trace_exported(1);
        assert!(to.restrict_this_thread());
        trace_exported(2);
        trace_exported(3);
        let kept = Arc::clone(&to);
        let probe = register_trace_inside(move |_| assert!(!kept.restrict_this_thread(), "not inside a probe"));
        trace_inside(0);
        drop(probe);
        // A later call replaces the channel.
        assert!(also.restrict_this_thread());
        trace_exported(4);
    });
    thread.join().expect("well");
    // The next thread gets the same slot in the thread table, and its events go to all channels.
    std::thread::spawn(|| trace_exported(5)).join().expect("well");
    assert_eq!(counts(&own), (4, 4));
    assert_eq!(counts(&other), (3, 3));
    assert_eq!(counts(&filtering), (2, 2));
    assert_eq!((filtered.0.load(Ordering::Relaxed), shown.0.load(Ordering::Relaxed)), (2, 5));
    drop(subscriptions);
    for channel in [own, other, filtering] {
        channel.close();
    }
}

/// Channels that were opened in addition to the chosen one also get the thread's events, but no others do.
#[test]
fn channels_that_were_opened_beside_it_get_them_too() {
    own_process!();
    let own = open(0);
    let beside =
        own.open_beside(Channel::overwrite(8 << 10).name("beside"), 1, Box::new(AnonymousMemory)).expect("opens");
    let other = open(2);
    let record = |channel: &Arc<OpenChannel>| {
        let subscriber = Subscriber::record(Arc::clone(channel), channel.add_event().expect("an id"));
        beside::marker().subscribe(subscriber).expect("switches")
    };
    let subscriptions = [&own, &beside, &other].map(record);
    for kept in [Arc::clone(&own), Arc::clone(&beside)] {
        let fire = move || {
            assert!(kept.restrict_this_thread());
            beside::fire(1);
        };
        std::thread::spawn(fire).join().expect("well");
    }
    assert_eq!([&own, &beside, &other].map(|channel| counts(channel)), [(2, 2), (2, 2), (0, 0)]);
    assert_eq!((beside.class(), beside.name()), (1, "beside"));
    drop(subscriptions);
    for channel in [own, beside, other] {
        channel.close();
    }
}

/// The same on the fast path: the marker has one subscriber.
#[test]
fn a_thread_restricted_to_another_channel_records_nothing() {
    own_process!();
    let (own, other) = (open(0), open(1));
    let id = other.add_event().expect("an id");
    let marker = alone::marker();
    let subscription = marker.subscribe(Subscriber::record(Arc::clone(&other), id)).expect("switches");
    let to = Arc::clone(&own);
    std::thread::spawn(move || {
        assert!(to.restrict_this_thread());
        alone::fire(1);
    })
    .join()
    .expect("well");
    alone::fire(2);
    assert_eq!(counts(&other), (1, 1));
    drop(subscription);
    own.close();
    other.close();
}

mod alone {
    use tracepoint::Marker;

    tracepoint::define_trace! {
        provider = "keptalone";
        pub fired(n: u64) { n: u64 = n }
    }

    pub(super) fn marker() -> &'static Marker {
        tracepoint::find("keptalone:fired").expect("listed").marker().expect("has fields")
    }

    pub(super) fn fire(n: u64) {
        trace_fired(n);
    }
}

mod beside {
    use tracepoint::Marker;

    tracepoint::define_trace! {
        provider = "keptbeside";
        pub fired(n: u64) { n: u64 = n }
    }

    pub(super) fn marker() -> &'static Marker {
        tracepoint::find("keptbeside:fired").expect("listed").marker().expect("has fields")
    }

    pub(super) fn fire(n: u64) {
        trace_fired(n);
    }
}
