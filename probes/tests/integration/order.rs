//! The order of keys of all types.

use crate::{Random, seed};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use tracepoint::field::Value;
use tracepoint_probes::snapshot::{Results, Rows};
use tracepoint_probes::{FieldKind, GroupKey, Measure, Moment, Role, Statistic, StatisticSpec};

/// Integers at the boundaries of types.
const INTEGERS: [i128; 11] = [
    0,
    1,
    -1,
    1 << 53,
    (1 << 53) + 1,
    i64::MAX as i128,
    i64::MIN as i128,
    1 << 63,
    u64::MAX as i128,
    0x3FF0_0000_0000_0000,
    -(1 << 53) - 1,
];
const FLOATS: [f64; 14] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    9_007_199_254_740_992.0,
    18_446_744_073_709_551_616.0,
    -9_223_372_036_854_775_808.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    -f64::NAN,
    f64::MIN_POSITIVE,
];

fn bytes(random: &mut Random) -> Vec<u8> {
    (0..random.next() % 3).map(|_| [b'1', b'a', 0xC3, 0xA9, 0xFF][random.next() as usize % 5]).collect()
}

/// A random key. Equal keys are frequent.
fn key(random: &mut Random) -> GroupKey {
    let integer = INTEGERS[random.next() as usize % INTEGERS.len()] + i128::from(random.next() % 3) - 1;
    let bits = random.next() << 32 | random.next();
    match random.next() % 8 {
        0 => GroupKey::Unsigned(u64::try_from(integer).unwrap_or(bits)),
        1 => GroupKey::Signed(i64::try_from(integer).unwrap_or(bits.cast_signed())),
        2 => GroupKey::Float(FLOATS[random.next() as usize % FLOATS.len()]),
        3 => GroupKey::Float(f64::from_bits(bits)),
        4 => GroupKey::Float(integer as f64),
        5 => GroupKey::Bool(bits & 1 == 1),
        6 => GroupKey::Text { text: String::from_utf8_lossy(&bytes(random)).into_owned(), whole: bits & 1 == 1 },
        _ => GroupKey::Path { bytes: bytes(random), whole: bits & 1 == 1 },
    }
}

#[test]
fn keys_of_all_types_have_a_total_order() {
    let seed = seed::or(5);
    println!("seed {seed}");
    let mut random = Random(seed);
    let hasher = RandomState::new();
    for _ in 0..20 {
        let keys: Vec<_> = (0..40).map(|_| key(&mut random)).collect();
        for a in &keys {
            assert_eq!(a.cmp(a), Ordering::Equal, "{a:?}");
            for b in &keys {
                let order = a.cmp(b);
                assert_eq!(order.reverse(), b.cmp(a), "{a:?} and {b:?}");
                assert_eq!((order.is_eq(), Some(order)), (a == b, a.partial_cmp(b)), "{a:?} and {b:?}");
                assert!(order.is_ne() || hasher.hash_one(a) == hasher.hash_one(b), "{a:?} and {b:?}");
                for c in &keys {
                    if order.is_le() && b.cmp(c).is_le() {
                        assert!(a.cmp(c).is_le(), "{a:?}, {b:?}, {c:?}");
                        assert!(a.cmp(c).is_lt() || order.is_eq() && b == c, "{a:?}, {b:?}, {c:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn numbers_are_ordered_by_value_whatever_their_type() {
    let text = |text: &str, whole| GroupKey::Text { text: text.to_owned(), whole };
    let path = |bytes: &[u8], whole| GroupKey::Path { bytes: bytes.to_owned(), whole };
    let (unsigned, signed, float) = (GroupKey::Unsigned, GroupKey::Signed, GroupKey::Float);
    let ascending = [
        float(-f64::NAN),
        float(f64::NEG_INFINITY),
        signed(i64::MIN),
        float(-0.5),
        unsigned(0),
        float(-0.0),
        float(0.0),
        float(f64::MIN_POSITIVE),
        signed(1),
        float(1.0),
        float(9_007_199_254_740_992.0),
        unsigned((1 << 53) + 1),
        unsigned(u64::MAX),
        float(18_446_744_073_709_551_616.0),
        float(f64::INFINITY),
        float(f64::NAN),
        GroupKey::Bool(false),
        GroupKey::Bool(true),
        text("", true),
        text("a", true),
        text("a", false),
        path(b"a", true),
        path(b"a\xff", true),
    ];
    assert!(ascending.is_sorted_by(|a, b| a < b), "{ascending:?}");
    assert_eq!((signed(7), unsigned(7).cmp(&signed(7))), (unsigned(7), Ordering::Equal));
    assert_ne!(signed(-1), unsigned(u64::MAX));
}

/// Events grouped by a value, each counted once.
fn counted(values: &[Value<'_>]) -> Rows<u64> {
    let spec = StatisticSpec::new(Measure::Count).by(["v"]).max_groups(values.len());
    let columns = spec.columns(Role::Observed, "a:b", &[("v", FieldKind::Other)]).unwrap();
    let statistic = Statistic::new(spec, false).unwrap();
    for value in values {
        statistic.record(&columns, Moment::recorded(0, 0), |_| Some(*value));
    }
    let Results::Count(rows) = statistic.snapshot().results else { panic!("a count") };
    rows
}

#[test]
fn groups_of_several_types_are_apart_and_sorted() {
    let names: Vec<String> = (0..45).map(|n| format!("/data/{n:02}")).collect();
    let latin: Vec<Vec<u8>> = (0..45).map(|n| format!("/data/{n:02}").bytes().chain([0xE9]).collect()).collect();
    let mut values: Vec<_> = names.iter().map(|name| Value::Text(name)).collect();
    values.extend(latin.iter().map(|name| Value::Path(name)));
    values.extend([
        Value::Unsigned(u64::MAX),
        Value::Signed(-1),
        Value::Unsigned(1),
        Value::Bool(true),
        Value::Text("1"),
    ]);
    values.extend([Value::Float(1.0), Value::Unsigned(1.0_f64.to_bits()), Value::Float(-0.0), Value::Float(f64::NAN)]);
    let mut rows = counted(&values);
    rows.sort_by_rank(|count| *count);
    assert_eq!((rows.groups.len(), rows.overflow), (values.len(), None), "each is a group of its own");
    assert!(rows.groups.is_sorted_by(|a, b| a.keys < b.keys));
    let shown: Vec<_> = rows.groups.iter().map(|row| row.keys[0].to_string()).collect();
    assert_eq!(shown[..8], ["-1", "-0", "1", "1", "4607182418800017408", "18446744073709551615", "NaN", "true"]);
    assert_eq!(shown[8..12], ["/data/00", "/data/00\\xe9", "/data/01", "/data/01\\xe9"]);
    assert_eq!(rows.ranked(|count| *count).len(), rows.groups.len());
    // Equal integers of different types are one group.
    let rows = counted(&[Value::Unsigned(7), Value::Signed(7), Value::Signed(-7)]);
    let counts: HashMap<_, _> = rows.groups.iter().map(|row| (row.keys[0].clone(), row.value)).collect();
    assert_eq!(counts, HashMap::from([(GroupKey::Unsigned(7), 2), (GroupKey::Signed(-7), 1)]));
}
