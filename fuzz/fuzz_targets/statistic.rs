//! Any bytes as the memory of a statistic: it is refused, or its results can be read, also from copies, merged with themselves and displayed.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::convert::Infallible;
use std::sync::atomic::AtomicU64;
use tracepoint_probes::snapshot::{Distribution, Results};
use tracepoint_probes::{FormatError, Snapshot, StatisticSpec};

fuzz_target!(|bytes: &[u8]| {
    let (words, _) = bytes.as_chunks();
    let memory =
        || -> Box<[AtomicU64]> { words.iter().map(|word| AtomicU64::new(u64::from_le_bytes(*word))).collect() };
    let read = Snapshot::read(&memory());
    let Ok(shared) = Snapshot::read_shared(|| Ok::<_, Infallible>(memory()));
    let Ok(mut snapshot) = read else {
        assert_eq!(shared, Err(FormatError));
        return;
    };
    assert!(format!("{shared:?}") == format!("{:?}", Ok::<_, FormatError>(&snapshot)), "copies of what nobody changes");
    let _ = snapshot.statistic.parse::<StatisticSpec>();
    snapshot.merge(snapshot.clone()).expect("it is the same statistic");
    if let Results::Histogram(rows) | Results::Latency { durations: rows, .. } = &snapshot.results {
        for values in rows.values() {
            let percentiles = [0.0, 50.0, 99.9, 100.0].map(|percent| values.percentile(percent));
            assert!(percentiles.is_sorted() && values.max() == percentiles[3], "{percentiles:?}");
            let _ = (values.mean(), values.buckets().count(), Distribution::since(values, values).count());
        }
    }
    if let Results::Rate(rate) = &snapshot.results {
        let _ = rate.per_second(u64::MAX, 60);
    }
});
