//! Tests of patched sites: they compare the core's reports with the code of this program.
#![allow(clippy::items_after_statements, reason = "a test begins with `own_process!`, its constants come behind")]
#![cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_os = "linux"))]
#![cfg(not(any(feature = "flag-sites", feature = "off", tp_portable, tp_helgrind)))]

#[macro_use]
#[path = "../common/thousand.rs"]
mod functions;
#[macro_use]
#[path = "../../../tests/support/own_process.rs"]
mod own_process;
#[path = "../common/site.rs"]
mod site;

mod breakpoint;
mod corrupted;
mod foreign;
mod fork;
mod hardened;
#[cfg(target_arch = "x86_64")]
mod indirect;
mod mappings;
#[cfg(target_arch = "x86_64")]
mod page_end;
mod states;
mod stress;
mod stress_keys;
mod thousand_sites;
mod unknown_object;
