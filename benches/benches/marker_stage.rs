//! One evaluation for all subscribers: what an event costs with 1, 2 and 4 channels subscribed. The clock alone is in `clock.rs`.
#![allow(missing_docs, reason = "criterion_group! makes an undocumented function")]

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use tracepoint_benches::{Recording, small, text};

fn marker_stage(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("marker_stage");
    group.bench_function("off", |bencher| {
        bencher.iter(|| tracepoint::trace!(small(black_box(1), black_box(2), black_box(3))));
    });
    for subscribers in [1, 2, 4] {
        let recording = Recording::start("bench:small", subscribers);
        group.bench_function(BenchmarkId::new("small", subscribers), |bencher| {
            bencher.iter(|| tracepoint::trace!(small(black_box(1), black_box(2), black_box(3))));
        });
        assert!(recording.recorded() > 0, "events were recorded");
        drop(recording);
        let recording = Recording::start("bench:text", subscribers);
        let name = "a text of thirty-two characters.";
        group.bench_function(BenchmarkId::new("text", subscribers), |bencher| {
            bencher.iter(|| tracepoint::trace!(text(black_box(name), black_box(3))));
        });
        drop(recording);
    }
    group.finish();
}

criterion_group!(benches, marker_stage);
criterion_main!(benches);
