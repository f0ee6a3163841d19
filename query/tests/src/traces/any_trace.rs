//! Traces with events of any schema.

use super::{EventKind, Field, Random, TraceSpec};

impl TraceSpec {
    /// A small trace that uses all features.
    pub fn random(random: &mut Random) -> Self {
        let mut kinds = Vec::new();
        for number in 0..=random.below(3) {
            let mut fields: Vec<_> =
                (0..random.below(7)).map(|at| (format!("f{at}"), Field::random(random, 0))).collect();
            if random.below(3) == 0 {
                let taken = ["pid", "TS", "event", "lost_before"][random.below(4) as usize];
                fields.push((taken.to_owned(), Field::random(random, 0)));
            }
            kinds.push(EventKind { name: format!("made:e{number}"), fields });
        }
        let uuid = std::array::from_fn(|_| random.number() as u8);
        Self {
            uuid,
            host: "host-1".to_owned(),
            session: "made".to_owned(),
            begin_ns: 1_795_430_400_000_000_000 + random.below(86_400_000_000_000),
            step_ns: [1_000, 10_000_000_000, 3_600_000_000_000][random.below(3) as usize],
            kinds,
            streams: 1 + random.below(3),
            packets: 1 + random.below(5),
            packet_events: 1 + random.below(60),
            loses: random.below(2) == 0,
            contexts: random.below(2) == 0,
        }
    }
}
