//! The cost of reading the clock at a site, compared with its parts and with the system call that it replaces.
#![allow(missing_docs, reason = "criterion_group! makes an undocumented function")]

use criterion::{Criterion, criterion_group, criterion_main};
use std::time::{Duration, Instant};
use tracepoint_ring::clock::{self, Clock};

fn clocks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("clock");
    #[cfg(target_arch = "x86_64")]
    group.bench_function("rdtsc", |bencher| {
        // SAFETY: a program that was started as usual may read the counter.
        bencher.iter(|| unsafe { std::arch::x86_64::_rdtsc() });
    });
    if let Err(refused) = clock::calibrate(Duration::from_millis(10)) {
        eprintln!("clock/monotonic is clock_gettime: {refused}");
    }
    let clocks =
        [("monotonic", Clock::Monotonic), ("system", Clock::System), ("coarse", Clock::Coarse), ("none", Clock::None)];
    for (name, clock) in clocks {
        clock::select(clock).expect("no channel is open");
        group.bench_function(name, |bencher| bencher.iter(clock::now));
    }
    group.bench_function("Instant::now", |bencher| bencher.iter(Instant::now));
    group.finish();
}

criterion_group!(benches, clocks);
criterion_main!(benches);
