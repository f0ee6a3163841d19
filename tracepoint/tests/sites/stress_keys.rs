//! Several threads that switch several keys at once, while others run the sites of all keys.

use crate::site::{OFF, ON, assert_all, assert_all_off, sites_of_key_in};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use tracepoint::marker::{Aggregate, FieldView, Subscriber, Subscription};

tracepoint::define_trace! {
    provider = "site_stress_keys";
    a(who: usize) { who: u64 = who as u64 }
    b(who: usize) { who: u64 = who as u64 }
    c(who: usize) { who: u64 = who as u64 }
}

/// The identity of threads that only fire.
const READER: usize = usize::MAX;

#[inline(never)]
fn fire_a(who: usize) {
    tracepoint::trace!(a(who));
}

#[inline(never)]
fn fire_b(who: usize) {
    tracepoint::trace!(b(who));
}

#[inline(never)]
fn fire_c(who: usize) {
    tracepoint::trace!(c(who));
}

const FIRE: [fn(usize); 3] = [fire_a, fire_b, fire_c];
const NAMES: [&str; 3] = ["site_stress_keys:a", "site_stress_keys:b", "site_stress_keys:c"];

struct Ignore;

impl Aggregate for Ignore {
    fn observe(&self, _: u64, _: FieldView<'_>) {}
}

/// Number of times that each thread switches its keys; a long run uses more.
fn rounds() -> usize {
    match std::env::var("TRACEPOINT_ROUNDS") {
        Ok(rounds) => rounds.parse::<usize>().expect("a number") / 2,
        Err(_) => 10_000,
    }
}

/// Registers a probe that counts only the events of `who`, checks it, and unregisters it.
fn turn_one(which: usize, who: usize, hits: &Arc<AtomicU64>) {
    let tracepoint = tracepoint::find(NAMES[which]).expect("listed");
    let before = hits.load(Ordering::Relaxed);
    let register = |count: Arc<AtomicU64>| {
        let probe = move |from| {
            if from == who {
                count.fetch_add(1, Ordering::Relaxed);
            }
        };
        match which {
            0 => register_trace_a(probe).map(|probe| Box::new(probe) as Box<dyn std::any::Any>),
            1 => register_trace_b(probe).map(|probe| Box::new(probe) as Box<dyn std::any::Any>),
            _ => register_trace_c(probe).map(|probe| Box::new(probe) as Box<dyn std::any::Any>),
        }
    };
    let probe = register(Arc::clone(hits)).expect("switches");
    assert!(tracepoint.is_on());
    FIRE[which](who);
    assert_eq!(hits.load(Ordering::Relaxed), before + 1, "hit once after on");
    drop(probe);
    FIRE[which](who);
    assert_eq!(hits.load(Ordering::Relaxed), before + 1, "not hit after off");
}

/// Subscribes to all three markers in one batch, and unsubscribes in one batch.
fn turn_all() {
    let subscriptions = Subscription::start_all(NAMES.map(|name| {
        let marker = tracepoint::find(name).expect("listed").marker().expect("has fields");
        (marker, Subscriber::aggregate(Arc::new(Ignore)))
    }))
    .expect("switches");
    for fire in FIRE {
        assert_all(&sites_of_key_in(fire as *const ()), ON);
    }
    Subscription::end_all(subscriptions);
}

#[test]
fn keys_are_switched_by_several_threads() {
    own_process!();
    let stop = AtomicBool::new(false);
    let rounds = rounds();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for fire in FIRE {
                    fire(READER);
                }
            }
        });
        let switchers: Vec<_> = (0..3)
            .map(|who| {
                scope.spawn(move || {
                    let hits = Arc::new(AtomicU64::new(0));
                    for round in 0..rounds {
                        turn_one((round + who) % 3, who, &hits);
                        if round % 8 == who {
                            turn_all();
                        }
                    }
                    assert_eq!(Arc::strong_count(&hits), 1, "every probe was dropped");
                })
            })
            .collect();
        let ended: Vec<_> = switchers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        stop.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
    });
    for fire in FIRE {
        assert_all(&sites_of_key_in(fire as *const ()), OFF);
    }
    let platform = tracepoint::runtime::platform();
    assert_eq!((platform.foreign_sites, platform.stuck_sites, platform.never_freed), (0, 0, 0));
    assert_all_off();
}
