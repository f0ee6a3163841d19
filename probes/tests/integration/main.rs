//! Statistics compared with known numbers.
#![forbid(unsafe_code)]
#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    reason = "exact percentiles"
)]

mod count;
mod histogram;
mod kept;
mod latency;
mod memory;
mod order;
#[path = "../../../tests/support/seed.rs"]
mod seed;

use std::sync::Barrier;

/// The upper halves of the numbers of a linear congruential generator (Knuth's MMIX).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 32
    }
}

/// Runs `act` on several threads at the same time.
fn in_threads(threads: u64, act: impl Fn(u64) + Sync) {
    let barrier = Barrier::new(threads as usize);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (barrier, act) = (&barrier, &act);
            scope.spawn(move || {
                barrier.wait();
                act(thread);
            });
        }
    });
}
