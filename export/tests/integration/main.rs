//! Exports of recorded traces, read by independent decoders.
#![forbid(unsafe_code)]

#[path = "../../../reader/tests/hand/mod.rs"]
mod hand;
#[path = "../../../tests/support/skip.rs"]
mod skip;

mod calls;
mod chrome;
mod common;
mod csv;
mod decoder;
mod fields;
mod folded;
mod no_process;
mod off_cpu;
mod otlp;
mod parents;
mod perfetto;
mod samples;
mod spans;
mod states;
mod threads;
