//! What a tracepoint costs next to its peers, switched off and cheaply switched on.
//!
//! A *variant* is a library's event in a certain state ([`variant`]), a *kernel* a loop with that event in it ([`kernel`]). Each
//! library brings its event ([`site`], [`peer`]); both harnesses, criterion's in `benches/` and the paired one in
//! `src/bin/paired.rs`, measure the same list. What enabled events deliver is counted ([`tally`]), so that no variant can be
//! fast because it does nothing. `README.md` says how to run it and how to read it.

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("the fence, the uprobes and the pinning are written for x86-64 Linux");

pub mod contender;
pub mod cpu;
pub mod interval;
pub mod kernel;
pub mod machine;
pub mod peer;
pub mod report;
pub mod site;
pub mod tally;
pub mod variant;
