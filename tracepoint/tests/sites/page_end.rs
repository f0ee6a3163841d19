//! A site that crosses a page boundary: its prefix is the last byte of one page, and its opcode the first byte of the next.

use crate::site::{OFF, ON, Site, assert_all, assert_all_off, assert_code_is_not_writable, page_size, sites_of_key_in};
use std::arch::asm;
use std::sync::atomic::{AtomicU64, Ordering};

tracepoint::define_trace! {
    provider = "site_page_end";
    fired();
}

/// A site some bytes before the end of a page; the distance depends on the code that the compiler puts in front of it.
macro_rules! before_the_end {
    ($($name:ident $bytes:literal)*) => {
        $(#[inline(never)]
        fn $name() {
            // SAFETY: runs no instruction but the jump, which skips the padding.
            unsafe {
                asm!(
                    "jmp 881f",
                    ".p2align 12, 0x90",
                    concat!(".skip 4096 - ", $bytes, ", 0x90"),
                    "881:",
                    options(nomem, nostack, preserves_flags)
                );
            }
            tracepoint::trace!(fired());
        })*
        const FUNCTIONS: &[fn()] = &[$($name),*];
    };
}

before_the_end!(one 1 two 2 three 3 four 4 five 5 six 6 seven 7 eight 8);

static HITS: AtomicU64 = AtomicU64::new(0);

#[test]
fn a_site_across_two_pages() {
    own_process!();
    let sites = sites_of_key_in(FUNCTIONS[0] as *const ());
    let across: Vec<&Site> = sites.iter().filter(|site| site.opcode() % page_size() == 0).collect();
    assert!(!across.is_empty(), "a prefix is the last byte of its page: {sites:x?}");
    for _ in 0..3 {
        let probe = register_trace_fired(|| {
            HITS.fetch_add(1, Ordering::Relaxed);
        })
        .expect("switches");
        assert_all(&sites, ON);
        for function in FUNCTIONS {
            function();
        }
        assert_eq!(HITS.swap(0, Ordering::Relaxed), FUNCTIONS.len() as u64);
        drop(probe);
        assert_all(&sites, OFF);
        for function in FUNCTIONS {
            function();
        }
        assert_eq!(HITS.load(Ordering::Relaxed), 0);
    }
    let platform = tracepoint::runtime::platform();
    assert_eq!((platform.foreign_sites, platform.stuck_sites), (0, 0));
    assert_code_is_not_writable();
    assert_all_off();
}
