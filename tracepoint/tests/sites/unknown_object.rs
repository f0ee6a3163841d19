//! An object that the dynamic linker does not know: its sites are not written, and `platform` reports the object.

use crate::site::{OFF, ON, assert_all, assert_all_off, sites, sites_of_key_in};
use tracepoint::__macro_support::{register_object, unregister_object};

tracepoint::define_trace! {
    provider = "site_unknown_object";
    fired();
}

#[inline(never)]
fn fire() {
    tracepoint::trace!(fired());
}

#[test]
fn sites_of_an_unlisted_object() {
    own_process!();
    let sites_before = tracepoint::runtime::platform().site_count;
    // A description that names no tables, in memory that belongs to no object.
    let description: &'static mut [u64; 64] = Box::leak(Box::new([0; 64]));
    let object = description.as_mut_ptr().cast();
    assert!(!tracepoint::runtime::platform().to_string().contains("whose code was not found"));
    // SAFETY: the memory is large enough, aligned, and alive until the process ends; a description of zeros has no tables.
    unsafe { register_object(object) };
    let platform = tracepoint::runtime::platform();
    assert_eq!((platform.unknown_objects, platform.site_count), (1, sites_before));
    assert!(platform.to_string().contains(", 1 object whose code was not found"), "{platform}");
    let probe = register_trace_fired(|| ()).expect("switches");
    assert_all(&sites_of_key_in(fire as *const ()), ON);
    drop(probe);
    assert_all(&sites(), OFF);
    // SAFETY: registered above.
    unsafe { unregister_object(object) };
    assert_eq!(tracepoint::runtime::platform().unknown_objects, 0);
    assert_all_off();
}
