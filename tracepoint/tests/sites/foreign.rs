//! A site with a foreign byte, such as a debugger's breakpoint, is not switched, but counted; the other sites of its key are switched.

use crate::site::{BREAKPOINT, OFF, ON, Site, assert_all, assert_all_off, byte, poke, site_in, sites_of_key_in};
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint::Probe;

tracepoint::define_trace! {
    provider = "site_foreign";
    fired(n: u64);
    another();
}

#[inline(never)]
fn victim() {
    tracepoint::trace!(fired(1));
}

#[inline(never)]
fn neighbour() {
    tracepoint::trace!(fired(100));
}

static SUM: AtomicU64 = AtomicU64::new(0);

fn register() -> Probe<fired> {
    register_trace_fired(|n| {
        SUM.fetch_add(n, Ordering::Relaxed);
    })
    .expect("switches")
}

/// Returns the sum of the probes while `functions` run.
fn sum(functions: &[fn()]) -> u64 {
    for function in functions {
        function();
    }
    SUM.swap(0, Ordering::Relaxed)
}

fn foreign() -> u64 {
    tracepoint::runtime::platform().foreign_sites
}

/// A debugger's breakpoint at this byte of the victim's site: the first one, or the opcode.
fn left_alone(site: Site, address: usize) {
    let [off, on] = [OFF, ON].map(|form| site.bytes_at(site.address, form)[address - site.address]);
    let others: Vec<Site> = sites_of_key_in(victim as *const ()).into_iter().filter(|other| *other != site).collect();
    let before = foreign();
    assert_all_off();

    // A breakpoint is set while the site is off, and stays while it is switched.
    poke(address, BREAKPOINT);
    let probe = register();
    assert_eq!(byte(address), BREAKPOINT);
    assert_eq!(foreign(), before + 1);
    assert_all(&others, ON);
    assert_eq!(sum(&[neighbour]), 100);
    drop(probe);
    assert_eq!(byte(address), BREAKPOINT);
    assert_eq!(foreign(), before + 2, "counted each time that it was in the way");
    assert_all(&others, OFF);
    assert_eq!(sum(&[neighbour]), 0);

    // The debugger restores the byte: the site works again.
    poke(address, off);
    let probe = register();
    assert_all(&sites_of_key_in(victim as *const ()), ON);
    assert_eq!(sum(&[victim, neighbour]), 101);

    // Set while the site is on, and removed when it should be off: the site enters the cold path, which finds no probe.
    poke(address, BREAKPOINT);
    drop(probe);
    assert_eq!((byte(address), foreign()), (BREAKPOINT, before + 3));
    poke(address, on);
    assert_eq!(site.byte(), ON);
    assert_eq!(sum(&[victim, neighbour]), 0);
    // The next switch retries the site.
    let probe = register();
    assert_eq!(sum(&[victim, neighbour]), 101);
    drop(probe);
    assert_eq!(sum(&[victim, neighbour]), 0);
    assert_all_off();
}

/// A breakpoint prevents a site from being switched on; after its removal, the next switch of another key also switches the site.
fn taken_along_later(site: Site) {
    let before = foreign();
    for restored_while_on in [true, false] {
        poke(site.address, BREAKPOINT);
        let probe = register();
        assert_eq!(sum(&[neighbour]), 100);
        if restored_while_on {
            poke(site.address, site.bytes_at(site.address, OFF)[0]);
            drop(register_trace_another(|| ()).expect("switches"));
            assert_eq!(sum(&[victim, neighbour]), 101);
            poke(site.address, BREAKPOINT);
        }
        drop(probe);
        let form = if restored_while_on { ON } else { OFF };
        poke(site.address, site.bytes_at(site.address, form)[0]);
        drop(register_trace_another(|| ()).expect("switches"));
        assert_all_off();
    }
    assert_eq!(foreign(), before + 4, "counted when it is first skipped, not at each retry");
}

#[test]
fn an_unexpected_instruction_is_not_patched() {
    own_process!();
    let site = site_in(victim as *const ());
    left_alone(site, site.opcode());
    left_alone(site, site.address);
    taken_along_later(site);

    let platform = tracepoint::runtime::platform();
    assert_eq!((platform.foreign_sites, platform.stuck_sites), (10, 0));
    assert!(platform.to_string().contains("10 times a site held a foreign byte"), "{platform}");
}
