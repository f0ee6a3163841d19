//! The integration tests of the facade and of the core, in one program. Tests of process-wide state begin with `own_process!()`.
#![allow(clippy::items_after_statements, reason = "a test begins with `own_process!`, before its constants")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/fixture.rs"]
mod fixture;
#[path = "../common/future.rs"]
mod future;
#[macro_use]
#[path = "../../../tests/support/own_process.rs"]
mod own_process;
#[path = "../../../tests/support/skip.rs"]
mod skip;

mod argument_types;
mod arity;
pub mod attributes;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), not(tp_portable)))]
mod call_stack;
mod channel;
mod classes;
mod clock_choice;
#[cfg(all(unix, not(tp_portable)))]
mod clock_tsc;
mod conditional_compilation;
mod conditions;
mod conversions;
mod declaration_places;
#[cfg(all(target_arch = "x86_64", target_os = "linux", target_pointer_width = "64"))]
mod disassembly;
mod evaluation;
mod event_path;
#[cfg(target_os = "linux")]
mod failpoints;
#[cfg(unix)]
mod fast_path_texts;
mod fixtures;
mod flush;
#[cfg(unix)]
mod fork;
#[cfg(target_os = "linux")]
mod fork_first;
mod formatted;
mod fullness;
mod handed_over;
mod hygiene;
mod inside_a_probe;
mod lazy;
mod linkage;
mod listing;
mod many_channels;
mod many_fields;
mod mark_places;
mod names;
mod observed;
mod off;
mod overflow;
mod panic;
mod paths;
mod probes;
mod restrict_thread;
#[cfg(unix)]
mod signal;
#[cfg(unix)]
mod signal_panic;
mod spans;
mod supply;
mod threads;
mod traced;
mod traced_functions;
mod unregister;
mod unregister_self;
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(tp_portable)))]
mod usdt;
