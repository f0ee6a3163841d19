//! The cost of recording an event.
#![allow(missing_docs, reason = "criterion_main! makes an undocumented function")]

use criterion::criterion_main;
use tracepoint_peers::variant::Mode;

mod harness;

fn recorded() {
    harness::run(Mode::Recorded);
}

criterion_main!(recorded);
