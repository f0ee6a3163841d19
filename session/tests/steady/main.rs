//! Checks that an event has no costs in the steady state that it must not have. The allocator of this program counts.

#[macro_use]
#[path = "../../../tests/support/own_process.rs"]
mod own_process;

mod allocations;
#[cfg(target_os = "linux")]
mod page_faults;
mod states;
#[cfg(target_os = "linux")]
mod system_calls;
