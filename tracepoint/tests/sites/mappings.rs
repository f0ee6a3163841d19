//! Patched pages have separate mappings: a `fork` copies the page table of a mapping with private pages, but not of other code.

use crate::site::sites_of_key_in;
use std::fs;

tracepoint::define_trace! {
    provider = "site_mappings";
    fired();
}

#[inline(never)]
fn fire() {
    tracepoint::trace!(fired());
}

/// A mapping of code: its size and the size of its private pages, in KiB, and whether it contains the address.
struct Mapping {
    size: usize,
    private: usize,
    has_site: bool,
}

fn mappings_of_code(site: usize) -> Vec<Mapping> {
    let mut mappings = Vec::new();
    let mut is_code = false;
    for line in fs::read_to_string("/proc/self/smaps").expect("readable").lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.get(1).is_some_and(|flags| flags.len() == 4 && flags.ends_with('p')) {
            let (start, end) = words[0].split_once('-').expect("a range of addresses");
            let address = |text| usize::from_str_radix(text, 16).expect("a hexadecimal number");
            let (start, end) = (address(start), address(end));
            is_code = words[1] == "r-xp" && words.len() == 6;
            if is_code {
                let kib = (end - start) >> 10;
                mappings.push(Mapping { size: kib, private: 0, has_site: (start..end).contains(&site) });
            }
        } else if is_code && words[0] == "Anonymous:" {
            mappings.last_mut().expect("one that has begun").private = words[1].parse().expect("a number");
        }
    }
    mappings
}

#[test]
fn patched_pages_have_mappings_of_their_own() {
    own_process!();
    let site = sites_of_key_in(fire as *const ())[0].address;
    let is_whole = |mapping: &Mapping| mapping.has_site && mapping.size > 1024 && mapping.private == 0;
    assert!(mappings_of_code(site).iter().any(is_whole), "the code of this program is one large mapping");
    for _ in 0..3 {
        let probe = register_trace_fired(|| ()).expect("switches");
        let mappings = mappings_of_code(site);
        let of_site = mappings.iter().find(|mapping| mapping.has_site).expect("mapped");
        assert!((4..=8).contains(&of_site.size) && of_site.private >= 4, "{} KiB", of_site.size);
        assert!(mappings.iter().all(|mapping| mapping.has_site || mapping.private == 0));
        drop(probe);
    }
}
