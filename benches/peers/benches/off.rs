//! What a site costs while it is switched off.
#![allow(missing_docs, reason = "criterion_main! makes an undocumented function")]

use criterion::criterion_main;
use tracepoint_peers::variant::Mode;

mod harness;

fn off() {
    harness::run(Mode::Off);
}

criterion_main!(off);
