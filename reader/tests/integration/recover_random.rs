//! Random programs, killed anywhere: every event that was committed and still exists is recovered once, and the account balances.

use crate::ring_file::{Consumer, Lost, Moment, Remains, Shape, Tracer, babeltrace, numbers};
use crate::seed;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use tracepoint_reader::{recover, verify};

/// An action of a traced process.
#[derive(Clone, Debug)]
enum Act {
    Fire(usize),
    /// A record, interrupted by handlers with records of their own.
    Interrupted(usize, Moment, Vec<usize>),
    Filtered,
    Lost,
    Drain(Consumer),
    Flush,
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![3 => Just(0), 6 => 1..120usize, 1 => 300..700usize]
}

fn moment() -> impl Strategy<Value = Moment> {
    prop_oneof![Just(Moment::Fired), Just(Moment::Writing), Just(Moment::Committed)]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        12 => size().prop_map(Act::Fire),
        3 => (size(), moment(), prop::collection::vec(size(), 1..4))
            .prop_map(|(outer, moment, inner)| Act::Interrupted(outer, moment, inner)),
        1 => Just(Act::Filtered),
        1 => Just(Act::Lost),
        3 => prop_oneof![4 => Just(Consumer::Keeps), 1 => Just(Consumer::Forgets)].prop_map(Act::Drain),
        1 => Just(Act::Flush),
    ]
}

fn shape() -> impl Strategy<Value = Shape> {
    (any::<bool>(), 64..90usize, 2..6usize).prop_map(|(overwrite, place, places)| Shape {
        overwrite,
        place: place * 8,
        places,
        ..Shape::default()
    })
}

fn run(shape: Shape, acts: &[Act], fuse: u64) -> Tracer {
    let mut tracer = Tracer::new(shape);
    tracer.fuse = fuse;
    for act in acts {
        match act {
            Act::Fire(extra) => tracer.fire(*extra),
            Act::Interrupted(extra, moment, inner) => tracer.fire_interrupted(*extra, *moment, inner),
            Act::Filtered => tracer.filtered(0),
            Act::Lost => tracer.lost(1, Lost::Nested),
            // Flight recorders are drained only at their end.
            Act::Drain(_) | Act::Flush if shape.overwrite => {}
            Act::Drain(consumer) => tracer.drain(*consumer),
            Act::Flush => tracer.flush(),
        }
        if !tracer.is_alive() {
            break;
        }
    }
    tracer
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, rng_seed: RngSeed::Fixed(seed::seed()), ..ProptestConfig::default() })]

    #[test]
    fn committed_records_are_recovered(
        shape in shape(),
        acts in prop::collection::vec(act(), 1..80),
        kill in any::<prop::sample::Index>(),
    ) {
        let stores = run(shape, &acts, u64::MAX).stores;
        let tracer = run(shape, &acts, kill.index(stores as usize + 1) as u64);
        let remains = Remains::of(&tracer);
        let recovered = recover(&remains.session(), &remains.out()).unwrap();
        prop_assert!(recovered.is_complete(), "{recovered:#?}");
        let report = verify(&remains.out()).unwrap();
        let failures: Vec<_> = report.failures().collect();
        prop_assert!(failures.is_empty(), "{failures:#?}\n{recovered:#?}");
        let text = babeltrace(&remains.out());
        prop_assert_eq!(numbers(&text), tracer.expected(), "{:#?}", recovered);
        prop_assert_eq!(crate::hand::ours(&remains.out()), text);
        let process = &recovered.processes[0];
        let gone = |reason| process.lost.get(reason).copied().unwrap_or(0);
        prop_assert_eq!(process.records + gone("sink") + gone("overwritten"), tracer.committed());
    }

    /// A ring with changed bytes is recovered or refused, and the result is consistent.
    #[test]
    fn changed_bytes_are_handled(
        shape in shape(),
        acts in prop::collection::vec(act(), 1..40),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut tracer = run(shape, &acts, u64::MAX);
        for (at, byte) in changes {
            let length = tracer.bytes.len();
            tracer.bytes[at.index(length)] = byte;
        }
        let remains = Remains::of(&tracer);
        if let Ok(recovered) = recover(&remains.session(), &remains.out()) {
            let report = verify(&remains.out()).unwrap();
            prop_assert!(!recovered.is_complete() || report.passed(), "{report:#?}\n{recovered:#?}");
            let wrong: String = report.failures().map(|check| check.rule).collect();
            prop_assert!(!wrong.contains(['B', 'I', 'J', 'K', 'L', 'M', 'N', 'P', 'Q']), "{wrong}: {recovered:#?}");
        }
    }
}

/// An invalid counter of one stream: the events of the other stream are recovered anyway.
#[test]
fn a_damaged_counter_affects_its_own_stream_only() {
    /// The highest byte of the closed packets of the nested stream.
    const CLOSED: usize = 399;
    let shape = Shape { overwrite: false, place: 512, places: 2, ..Shape::default() };
    let mut tracer = run(shape, &[Act::Fire(0)], u64::MAX);
    tracer.bytes[CLOSED] = 0x80;
    let remains = Remains::of(&tracer);
    let recovered = recover(&remains.session(), &remains.out()).unwrap();
    let process = &recovered.processes[0];
    assert_eq!((process.records, process.complete), (1, false), "{process:#?}");
    assert!(process.notes.iter().any(|note| note.contains("this stream of it is left out")), "{process:#?}");
    let report = verify(&remains.out()).unwrap();
    assert_eq!(report.failures().map(|check| check.rule).collect::<Vec<_>>(), ['A'], "{report:#?}");
}
