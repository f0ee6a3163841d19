//! A breakpoint between two sites of a page: the sites around it are switched, and the breakpoint stays.

use crate::site::{
    BREAKPOINT, LENGTH, OFF, ON, Site, assert_all, assert_all_off, byte, page_size, poke, site_in, sites_of_key_in,
};
use std::arch::asm;
use std::sync::atomic::{AtomicU64, Ordering};

tracepoint::define_trace! {
    provider = "site_breakpoint";
    fired(n: u64);
}

/// One instruction, so that there is a byte between the sites before and after it.
macro_rules! room {
    () => {
        // SAFETY: an instruction that does nothing.
        unsafe { asm!("nop", options(nomem, nostack, preserves_flags)) }
    };
}

/// Sites close to each other: wherever the linker places this function, at least two neighbours share a page.
#[inline(never)]
fn row() {
    tracepoint::trace!(fired(1));
    room!();
    tracepoint::trace!(fired(1));
    room!();
    tracepoint::trace!(fired(1));
}

#[inline(never)]
fn elsewhere() {
    tracepoint::trace!(fired(100));
}

static SUM: AtomicU64 = AtomicU64::new(0);

/// Returns the sum of the probe while `function` runs.
fn sum(function: fn()) -> u64 {
    function();
    SUM.swap(0, Ordering::Relaxed)
}

#[test]
fn a_breakpoint_between_sites_stays() {
    own_process!();
    let sites = sites_of_key_in(row as *const ());
    let first = site_in(row as *const ());
    let in_row: Vec<Site> = sites.iter().copied().filter(|site| site.address >= first.address).take(3).collect();
    let (left, right) = in_row
        .iter()
        .zip(&in_row[1..])
        .find(|(left, right)| left.address / page_size() == right.address / page_size())
        .expect("at most one pair of the two is parted by a page's end");
    let between = left.address + LENGTH;
    assert!(between < right.address, "there is room between the sites");

    // No thread runs `row` while the breakpoint is set.
    let saved = byte(between);
    for _ in 0..3 {
        poke(between, BREAKPOINT);
        let probe = register_trace_fired(|n| {
            SUM.fetch_add(n, Ordering::Relaxed);
        })
        .expect("switches");
        assert_all(&sites, ON);
        assert_eq!(byte(between), BREAKPOINT);
        assert_eq!(sum(elsewhere), 100);
        poke(between, saved);
        assert_eq!(sum(row), 3);
        poke(between, BREAKPOINT);
        drop(probe);
        assert_all(&sites, OFF);
        assert_eq!(byte(between), BREAKPOINT);
        poke(between, saved);
        assert_eq!(sum(row) + sum(elsewhere), 0);
    }
    let platform = tracepoint::runtime::platform();
    assert_eq!((platform.foreign_sites, platform.stuck_sites), (0, 0), "the breakpoint stood in no site's way");
    assert_all_off();
}
