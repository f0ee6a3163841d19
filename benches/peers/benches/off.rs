//! The cost of a site that is off.
#![allow(missing_docs, reason = "criterion_main! makes an undocumented function")]

use criterion::criterion_main;
use tracepoint_peers::variant::Mode;

mod harness;

fn off() {
    harness::run(Mode::Off);
}

criterion_main!(off);
