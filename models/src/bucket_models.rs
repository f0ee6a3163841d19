//! Models of the token bucket shared by senders: reservations do not overlap, and none is made that would begin too late.

use crate::bucket_words::{BucketWords, ns};
use loom::sync::Arc;
use loom::thread;
use std::time::Duration;

/// The number of bytes in a slice; it takes one second at the modelled rate.
const SLICE: usize = 1000;
const RATE: u64 = 1000;
const SECOND: u64 = 1_000_000_000;
const NOW: u64 = 1000 * SECOND;

fn bucket() -> Arc<BucketWords> {
    let words = BucketWords::default();
    words.set_rate(Some(RATE));
    Arc::new(words)
}

/// Reserves a slice that may begin `latest` seconds from now.
fn reserve(words: &BucketWords, latest: u64) -> Option<u64> {
    words.reserve(SLICE, NOW, Duration::ZERO, NOW + latest * SECOND).map(|at| (at - NOW) / SECOND)
}

/// Each slice has a separate second, and the total sent by all is counted.
#[test]
fn reservations_do_not_overlap() {
    loom::model(|| {
        let words = bucket();
        let other = {
            let words = Arc::clone(&words);
            thread::spawn(move || [(); 2].map(|()| reserve(&words, 100).unwrap()))
        };
        let own = reserve(&words, 100).unwrap();
        let [first, second] = other.join().unwrap();
        assert!(first < second, "a sender's slices are in their order");
        let mut all = [own, first, second];
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2]);
        assert_eq!(words.charged(), 3 * SLICE as u64);
        assert_eq!(words.next(NOW, Duration::ZERO), NOW + 3 * SECOND);
    });
}

/// One of two slices that must both begin now is refused, and takes nothing. A sender that is killed after its reservation looks like one that
/// has sent.
#[test]
fn what_would_begin_too_late_takes_nothing() {
    loom::model(|| {
        let words = bucket();
        let other = {
            let words = Arc::clone(&words);
            thread::spawn(move || reserve(&words, 0))
        };
        let own = reserve(&words, 0);
        let reserved = [own, other.join().unwrap()];
        assert_eq!(reserved.iter().flatten().count(), 1, "{reserved:?}");
        assert_eq!((words.charged(), words.next(NOW, Duration::ZERO)), (SLICE as u64, NOW + SECOND));
    });
}

/// If the rate is changed concurrently, either the new or the previous rate applies to the slice.
#[test]
fn a_changed_rate_holds_for_the_next_slice() {
    loom::model(|| {
        let words = bucket();
        let other = {
            let words = Arc::clone(&words);
            thread::spawn(move || words.set_rate(Some(RATE * 2)))
        };
        reserve(&words, 0).unwrap();
        other.join().unwrap();
        let end = words.next(NOW, Duration::ZERO) - NOW;
        assert!([ns(SLICE, RATE), ns(SLICE, RATE * 2)].contains(&end), "{end}");
    });
}
