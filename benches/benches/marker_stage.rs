//! One evaluation for all subscribers: the cost of an event with 1, 2 and 4 channels subscribed. The clock alone is measured in `clock.rs`.
#![allow(missing_docs, reason = "criterion_group! makes an undocumented function")]

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use tracepoint_benches::{Recording, small, text};

/// Runs `bench` while `event` is recorded into this number of channels. Criterion skips benches excluded by its filter, and then nothing is recorded.
fn recorded(event: &str, subscribers: usize, bench: impl FnOnce(&mut u64)) {
    let mut rounds = 0;
    let recording = Recording::start(event, subscribers);
    bench(&mut rounds);
    assert!(recording.recorded() > 0 || rounds == 0, "{rounds} rounds, and no event was recorded");
}

fn marker_stage(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("marker_stage");
    // The cost of the loop: the difference to `off` is the site. If the site is off, the arguments are not evaluated.
    group.bench_function("off/baseline", |bencher| bencher.iter(|| ()));
    group.bench_function("off", |bencher| {
        bencher.iter(|| tracepoint::trace!(small(black_box(1), black_box(2), black_box(3))));
    });
    for subscribers in [1, 2, 4] {
        recorded("bench:small", subscribers, |rounds| {
            group.bench_function(BenchmarkId::new("small", subscribers), |bencher| {
                *rounds += 1;
                bencher.iter(|| tracepoint::trace!(small(black_box(1), black_box(2), black_box(3))));
            });
        });
        recorded("bench:text", subscribers, |rounds| {
            let name = "a text of thirty-two characters.";
            group.bench_function(BenchmarkId::new("text", subscribers), |bencher| {
                *rounds += 1;
                bencher.iter(|| tracepoint::trace!(text(black_box(name), black_box(3))));
            });
        });
    }
    group.finish();
}

criterion_group!(benches, marker_stage);
criterion_main!(benches);
