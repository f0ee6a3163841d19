//! The form of the sites while the number of a key's users changes: 0 → 1 → N → 1 → 0.

use crate::site::{OFF, ON, assert_all, assert_all_off, sites, sites_of_key_in};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint::marker::{Aggregate, FieldView, Subscriber, Subscription};

tracepoint::define_trace! {
    provider = "site_states";
    watched(n: u64) { n: u64 = n }
    bystander(n: u64) { n: u64 = n }
}

#[inline(never)]
fn fire() {
    tracepoint::trace!(watched(1));
    trace_watched(2);
}

#[inline(never)]
fn fire_bystander() {
    tracepoint::trace!(bystander(1));
}

#[derive(Default)]
struct Count(AtomicU64);

impl Aggregate for Count {
    fn observe(&self, _: u64, _: FieldView<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Asserts that the sites of `watched` have this form, and all others are off.
#[track_caller]
fn assert_watched(form: u8) {
    let watched = sites_of_key_in(fire as *const ());
    assert!(watched.len() >= 2);
    assert_all(&watched, form);
    let others: Vec<_> = sites().into_iter().filter(|site| !watched.contains(site)).collect();
    assert_all(&others, OFF);
}

#[test]
fn sites_follow_their_key() {
    own_process!();
    let hits = Arc::new(AtomicU64::new(0));
    let register = || {
        let hits = Arc::clone(&hits);
        register_trace_watched(move |_| {
            hits.fetch_add(1, Ordering::Relaxed);
        })
        .expect("switches")
    };
    let fired = || {
        let before = hits.load(Ordering::Relaxed);
        fire();
        fire_bystander();
        hits.load(Ordering::Relaxed) - before
    };
    let marker = tracepoint::find("site_states:watched").expect("listed").marker().expect("has fields");
    let subscribe = || marker.subscribe(Subscriber::aggregate(Arc::new(Count::default()))).expect("switches");

    assert_all_off();
    assert_eq!(fired(), 0);
    for _ in 0..3 {
        // Probes alone.
        let first = register();
        assert_watched(ON);
        assert_eq!(fired(), 2);
        let more = [register(), register()];
        assert_watched(ON);
        assert_eq!(fired(), 6);
        drop(first);
        assert_watched(ON);
        drop(more);
        assert_watched(OFF);
        assert_eq!(fired(), 0);

        // Subscribers alone. The tracepoint's sites do not depend on the marker's key, so that a subscription uses both keys.
        let subscription = subscribe();
        assert_watched(ON);
        assert!(marker.is_on());
        drop(subscription);
        assert_watched(OFF);

        // Both; the last user switches the sites off.
        let probe = register();
        let subscriptions = vec![subscribe(), subscribe()];
        assert_watched(ON);
        drop(probe);
        assert_watched(ON);
        assert_eq!(fired(), 0);
        Subscription::end_all(subscriptions);
        assert_watched(OFF);
    }
    // A probe that panics is not run again; it is a user of the key until its handle is dropped.
    let probe = register_trace_watched(|_| panic!("on purpose")).expect("switches");
    assert_watched(ON);
    fire();
    let tracepoint = tracepoint::find("site_states:watched").expect("listed");
    assert_eq!((tracepoint.probe_panics(), tracepoint.probe_count()), (1, 0));
    probe.unregister();
    assert_watched(OFF);
    assert_all_off();
    let platform = tracepoint::runtime::platform();
    assert_eq!((platform.foreign_sites, platform.stuck_sites, platform.site_count), (0, 0, Some(sites().len())));
}
