//! A table entry that does not describe a site: the core does not write to the address in it.

use crate::site::{
    BREAKPOINT, Entry, LENGTH, OFF, ON, Site, assert_all, assert_all_off, byte, site_in, sites_of_key_in,
};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

tracepoint::define_trace! {
    provider = "site_corrupted";
    fired(n: u64);
}

#[inline(never)]
fn victim() {
    tracepoint::trace!(fired(1));
}

#[inline(never)]
fn neighbour() {
    tracepoint::trace!(fired(100));
}

/// Serialises the tests, which change the same site.
static ALONE: Mutex<()> = Mutex::new(());

static SUM: AtomicU64 = AtomicU64::new(0);

/// Switches the key on and off; returns the sum of the probe in between.
fn cycle() -> u64 {
    let probe = register_trace_fired(|n| {
        SUM.fetch_add(n, Ordering::Relaxed);
    })
    .expect("switches");
    victim();
    neighbour();
    drop(probe);
    victim();
    neighbour();
    SUM.swap(0, Ordering::Relaxed)
}

/// Replaces the entry of `site` while `body` runs.
fn with_entry(site: Site, corrupt: impl FnOnce(&mut Entry), body: impl FnOnce()) {
    // SAFETY: an entry of this program's table, which is writable; no other thread uses it.
    let entry = unsafe { site.entry().read_volatile() };
    let mut corrupted = entry;
    corrupt(&mut corrupted);
    // SAFETY: as above.
    unsafe { site.entry().write_volatile(corrupted) };
    body();
    // SAFETY: as above.
    unsafe { site.entry().write_volatile(entry) };
}

/// Returns the code from a little before the site to a little after it.
fn code_around(site: Site) -> Vec<u8> {
    (site.address - 8..site.address + LENGTH + 8).map(byte).collect()
}

/// Data that the test fills to look like a site: the instruction, with the distance from here to the victim's cold path.
static DATA: [AtomicU8; LENGTH] = [const { AtomicU8::new(BREAKPOINT) }; LENGTH];

#[test]
fn an_address_outside_code_is_not_patched() {
    own_process!();
    let _alone = ALONE.lock();
    let site = site_in(victim as *const ());
    let address = (&raw const DATA).addr();
    let instruction = site.bytes_at(address, OFF);
    for (place, byte) in DATA.iter().zip(instruction) {
        place.store(byte, Ordering::Relaxed);
    }
    let before = tracepoint::runtime::platform().foreign_sites;
    let away = i32::try_from(address.wrapping_sub(site.entry().addr()).cast_signed()).expect("near enough");
    with_entry(
        site,
        |entry| entry.site = away,
        || {
            let probe = register_trace_fired(|_| ()).expect("switches");
            assert_eq!(DATA.each_ref().map(|byte| byte.load(Ordering::Relaxed)), instruction);
            drop(probe);
            assert_eq!(DATA.each_ref().map(|byte| byte.load(Ordering::Relaxed)), instruction);
            assert_eq!(
                tracepoint::runtime::platform().foreign_sites,
                before + 2,
                "once on the way on, once on the way off"
            );
        },
    );
    assert_eq!(cycle(), 101, "whole again");
    assert_all_off();
}

#[test]
fn a_corrupted_entry_is_not_patched() {
    own_process!();
    let _alone = ALONE.lock();
    let site = site_in(victim as *const ());
    let others: Vec<Site> = sites_of_key_in(victim as *const ()).into_iter().filter(|other| *other != site).collect();
    let before = code_around(site);
    let mut expected = tracepoint::runtime::platform().foreign_sites;
    assert_all_off();
    assert_eq!(cycle(), 101);

    let corruptions: [fn(&mut Entry); 7] = [
        |entry| entry.cold += 1,                                     // another cold path
        |entry| entry.cold = i32::MIN,                               // one far away
        |entry| entry.site += 1,                                     // into the middle of the site
        |entry| (entry.site, entry.cold) = (entry.cold, entry.site), // the two exchanged
        |entry| entry.site = i32::MIN,                               // far away, where nothing is mapped
        |entry| entry.site = i32::MAX,                               // the same on the other side
        |entry| entry.site = 0,                                      // the entry itself, which is no code
    ];
    for corrupt in corruptions {
        with_entry(site, corrupt, || {
            assert_eq!(cycle(), 100, "the neighbour works, and the victim is off throughout");
            expected += 2;
            assert_eq!(
                tracepoint::runtime::platform().foreign_sites,
                expected,
                "once on the way on, once on the way off"
            );
            assert_eq!(code_around(site), before);
            assert_all(&others, OFF);
        });
        let probe = register_trace_fired(|_| ()).expect("switches");
        assert_all(&sites_of_key_in(victim as *const ()), ON);
        drop(probe);
        assert_eq!(cycle(), 101, "whole again");
    }
    assert_eq!(tracepoint::runtime::platform().stuck_sites, 0);
    assert_all_off();
}
