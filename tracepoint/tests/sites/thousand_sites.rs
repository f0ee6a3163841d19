//! A thousand sites of one tracepoint, switched together.

use crate::site::{
    OFF, ON, assert_all, assert_all_off, assert_code_is_not_writable, page_size, site_in, sites_of_key_in,
};
use std::array;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

tracepoint::define_trace! {
    provider = "site_many";
    many(n: usize);
}

/// A site in a separate function for each `N`.
#[inline(never)]
fn one<const N: usize>() {
    tracepoint::trace!(many(N));
}

static FUNCTIONS: [[fn(); 10]; 100] = thousand!(one);

fn functions() -> impl Iterator<Item = fn()> {
    FUNCTIONS.iter().flatten().copied()
}

#[test]
fn a_thousand_sites_are_switched_together() {
    own_process!();
    let hits: Arc<[AtomicU32; 1000]> = Arc::new(array::from_fn(|_| AtomicU32::new(0)));
    let fire_all = |times: u32| {
        for _ in 0..times {
            functions().for_each(|function| function());
        }
        let counts: Vec<u32> = hits.iter().map(|hits| hits.swap(0, Ordering::Relaxed)).collect();
        counts
    };
    let sites = sites_of_key_in(one::<0> as *const ());
    let in_functions: BTreeSet<usize> = functions().map(|function| site_in(function as *const ()).address).collect();
    assert_eq!(in_functions.len(), 1000, "each function has a site of its own");
    assert!(in_functions.iter().all(|address| sites.iter().any(|site| site.address == *address)));
    let pages: BTreeSet<usize> = sites.iter().map(|site| site.address / page_size()).collect();
    assert!(pages.len() > 1, "several pages are written");

    assert_all_off();
    assert_eq!(fire_all(1), [0; 1000]);
    for times in 1..=3 {
        let seen = Arc::clone(&hits);
        let probe = register_trace_many(move |n| {
            seen[n].fetch_add(1, Ordering::Relaxed);
        })
        .expect("switches");
        assert_all(&sites, ON);
        assert_code_is_not_writable();
        assert_eq!(fire_all(times), [times; 1000], "each site was hit as often as it was run");
        probe.unregister();
        assert_all(&sites, OFF);
        assert_code_is_not_writable();
        assert_eq!(fire_all(1), [0; 1000]);
    }
    assert_all_off();
}
