//! The cost of a tracepoint next to its peers: off, and on in the cheapest way.
//!
//! A *variant* is a library's event in a certain state ([`variant`]); a *kernel* is a loop with that event in it ([`kernel`]). Each
//! library has its event ([`site`], [`peer`]). Both harnesses, criterion's in `benches/` and the paired one in
//! `src/bin/paired`, measure the same list. Enabled events are counted ([`tally`]), so that no variant can be
//! fast because it does nothing. `README.md` describes how to run the harnesses and how to read their results.

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("the fence, the uprobes and the pinning are written for x86-64 Linux");

pub mod contender;
pub mod cpu;
pub mod interval;
pub mod kernel;
pub mod lines;
pub mod machine;
pub mod peer;
pub mod report;
pub mod site;
pub mod systems;
pub mod tally;
pub mod variant;
