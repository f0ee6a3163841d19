//! The cost of a site that is on, in the cheapest way.
#![allow(missing_docs, reason = "criterion_main! makes an undocumented function")]

use criterion::criterion_main;
use tracepoint_peers::variant::Mode;

mod harness;

fn on() {
    harness::run(Mode::On);
}

criterion_main!(on);
