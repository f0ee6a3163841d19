//! Exports of recorded traces, read by decoders that were not written here.
#![forbid(unsafe_code)]

#[path = "../../../tests/support/skip.rs"]
mod skip;

mod chrome;
mod common;
mod csv;
mod decoder;
mod folded;
mod otlp;
mod perfetto;
mod spans;
