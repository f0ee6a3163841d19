//! Filters against an oracle: random expression trees are written as text, and the compiled filter must decide like a walk over the tree.

use crate::seed;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use std::cmp::Ordering;
use tracepoint::field::{Base, ByteOrder, FieldDescriptor, FieldType, IntegerType, Value};
use tracepoint::marker::FieldRange;
use tracepoint_session_spec::filter::Expression;

const fn integer(name: &'static str, signed: bool) -> FieldDescriptor {
    let ty = IntegerType { bits: 64, signed, base: Base::Decimal, order: ByteOrder::Little };
    FieldDescriptor { name, ty: FieldType::Integer(ty), doc: "" }
}

const FIELDS: [FieldDescriptor; 6] = [
    integer("i", true),
    integer("u", false),
    FieldDescriptor { name: "f", ty: FieldType::Float { bits: 64 }, doc: "" },
    FieldDescriptor { name: "b", ty: FieldType::Bool, doc: "" },
    FieldDescriptor { name: "s", ty: FieldType::Text, doc: "" },
    FieldDescriptor { name: "p", ty: FieldType::Path, doc: "" },
];

/// The fields of one event.
#[derive(Clone, Debug)]
struct Event {
    i: i64,
    u: u64,
    f: f64,
    b: bool,
    s: String,
    p: Vec<u8>,
}

impl Event {
    fn get(&self, index: usize) -> Option<Value<'_>> {
        Some(match index {
            0 => Value::Signed(self.i),
            1 => Value::Unsigned(self.u),
            2 => Value::Float(self.f),
            3 => Value::Bool(self.b),
            4 => Value::Text(&self.s),
            5 => Value::Path(&self.p),
            _ => return None,
        })
    }
}

/// An expression whose value is an integer.
#[derive(Clone, Debug)]
enum Number {
    Signed,
    Unsigned,
    Truth(Box<Condition>),
    Constant(u64),
    Minus(Box<Number>),
    Complement(Box<Number>),
    Bits(&'static str, Box<Number>, Box<Number>),
}

#[derive(Clone, Debug)]
enum Condition {
    Bool,
    Constant(bool),
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
    Integers(&'static str, Number, Number),
    FloatField(&'static str, Number),
    FloatConstant(&'static str, f64),
    Text(bool, Vec<char>),
    Path(bool, Vec<char>),
    Fields(bool),
    NotZero(Number),
}

/// The exact value of a number.
fn wide(value: &Number, event: &Event) -> i128 {
    match value {
        Number::Signed => event.i.into(),
        Number::Unsigned => event.u.into(),
        Number::Truth(condition) => holds(condition, event).into(),
        Number::Constant(constant) => (*constant).into(),
        Number::Minus(operand) => -wide(operand, event),
        Number::Complement(operand) => (!bits(wide(operand, event))).into(),
        Number::Bits(operator, left, right) => {
            let (left, right) = (bits(wide(left, event)), bits(wide(right, event)));
            let result = match *operator {
                "&" => left & right,
                "|" => left | right,
                "^" => left ^ right,
                "<<" => {
                    if right < 64 {
                        left << right
                    } else {
                        0
                    }
                }
                ">>" => {
                    if right < 64 {
                        left >> right
                    } else {
                        0
                    }
                }
                other => panic!("{other}"),
            };
            result.into()
        }
    }
}

fn bits(value: i128) -> u64 {
    u64::from_le_bytes(value.to_le_bytes()[..8].try_into().expect("eight bytes"))
}

/// Compares an integer with a float exactly, by mantissa and exponent.
fn compare(integer: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    if float.abs() >= 1e30 {
        return Some(if float > 0.0 { Ordering::Less } else { Ordering::Greater });
    }
    let raw = float.to_bits();
    let exponent = ((raw >> 52) & 0x7ff) as i32;
    let mantissa = i128::from(raw & ((1 << 52) - 1)) | if exponent == 0 { 0 } else { 1 << 52 };
    let mantissa = if float.is_sign_negative() { -mantissa } else { mantissa };
    // mantissa * 2^power
    let power = exponent.max(1) - 1075;
    let order = if power >= 0 {
        integer.cmp(&(mantissa << power))
    } else if power > -54 {
        // The integer has 65 bits, so the shift does not overflow.
        (integer << -power).cmp(&mantissa)
    } else {
        // The float is smaller than one.
        integer.cmp(&0).then(0.cmp(&mantissa))
    };
    Some(order)
}

fn is(operator: &str, order: Option<Ordering>) -> bool {
    match operator {
        "==" => order == Some(Ordering::Equal),
        "!=" => order != Some(Ordering::Equal),
        "<" => order == Some(Ordering::Less),
        ">" => order == Some(Ordering::Greater),
        "<=" => order.is_some_and(Ordering::is_le),
        ">=" => order.is_some_and(Ordering::is_ge),
        other => panic!("{other}"),
    }
}

fn holds(condition: &Condition, event: &Event) -> bool {
    match condition {
        Condition::Bool => event.b,
        Condition::Constant(constant) => *constant,
        Condition::Not(operand) => !holds(operand, event),
        Condition::And(left, right) => holds(left, event) && holds(right, event),
        Condition::Or(left, right) => holds(left, event) || holds(right, event),
        Condition::Integers(operator, left, right) => is(operator, Some(wide(left, event).cmp(&wide(right, event)))),
        Condition::FloatField(operator, right) => {
            is(operator, compare(wide(right, event), event.f).map(Ordering::reverse))
        }
        Condition::FloatConstant(operator, constant) => is(operator, event.f.partial_cmp(constant)),
        Condition::Text(wanted, pattern) => glob(pattern, &event.s.chars().collect::<Vec<_>>()) == *wanted,
        Condition::Path(wanted, pattern) => {
            let text = String::from_utf8(event.p.clone()).expect("text");
            glob(pattern, &text.chars().collect::<Vec<_>>()) == *wanted
        }
        Condition::Fields(wanted) => (event.s.as_bytes() == event.p) == *wanted,
        Condition::NotZero(number) => wide(number, event) != 0,
    }
}

fn glob(pattern: &[char], text: &[char]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some(('*', rest)) => (0..=text.len()).any(|n| glob(rest, &text[n..])),
        Some(('?', rest)) => !text.is_empty() && glob(rest, &text[1..]),
        Some((c, rest)) => text.first() == Some(c) && glob(rest, &text[1..]),
    }
}

/// Writes every operand that is not a single word in parentheses.
fn write_number(number: &Number) -> String {
    match number {
        Number::Signed => "i".to_owned(),
        Number::Unsigned => "u".to_owned(),
        Number::Truth(condition) => format!("!!({})", write(condition)),
        Number::Constant(constant) => constant.to_string(),
        Number::Minus(operand) => format!("-({})", write_number(operand)),
        Number::Complement(operand) => format!("~({})", write_number(operand)),
        Number::Bits(operator, left, right) => {
            format!("(({}) {operator} ({}))", write_number(left), write_number(right))
        }
    }
}

fn write(condition: &Condition) -> String {
    let equality = |wanted: bool| if wanted { "==" } else { "!=" };
    let text = |pattern: &[char]| format!("\"{}\"", pattern.iter().collect::<String>());
    match condition {
        Condition::Bool => "b".to_owned(),
        Condition::Constant(constant) => constant.to_string(),
        Condition::Not(operand) => format!("!({})", write(operand)),
        // Without the parentheses that the grammar does not require.
        Condition::And(left, right) => format!("({}) && {}", write(left), write_side(right)),
        Condition::Or(left, right) => format!("{} || {}", write(left), write_side(right)),
        Condition::Integers(operator, left, right) => {
            format!("{} {operator} {}", write_number(left), write_number(right))
        }
        Condition::FloatField(operator, right) => format!("f {operator} {}", write_number(right)),
        Condition::FloatConstant(operator, constant) => {
            let sign = if constant.is_sign_negative() { "-" } else { "" };
            format!("f {operator} {sign}{:e}", constant.abs())
        }
        Condition::Text(wanted, pattern) => format!("s {} {}", equality(*wanted), text(pattern)),
        Condition::Path(wanted, pattern) => format!("{} {} p", text(pattern), equality(*wanted)),
        Condition::Fields(wanted) => format!("s {} p", equality(*wanted)),
        Condition::NotZero(number) => format!("({})", write_number(number)),
    }
}

fn write_side(condition: &Condition) -> String {
    match condition {
        Condition::And(..) | Condition::Or(..) => format!("({})", write(condition)),
        other => write(other),
    }
}

fn interesting() -> impl Strategy<Value = u64> {
    prop_oneof![0..4u64, 60..66u64, any::<u64>(), Just(1 << 53), Just((1 << 53) + 1), Just(1 << 63), Just(u64::MAX)]
}

fn float() -> impl Strategy<Value = f64> {
    #[allow(clippy::cast_precision_loss, reason = "the nearest float is as useful")]
    let whole = || interesting().prop_map(|value| value as f64);
    prop_oneof![whole(), whole().prop_map(|value| -value), -4.0..4.0, any::<f64>(), Just(f64::NAN)]
}

fn event() -> impl Strategy<Value = Event> {
    let fields = (interesting(), interesting(), float(), any::<bool>(), "[abé]{0,4}", "[abé]{0,4}");
    fields.prop_map(|(i, u, f, b, s, p)| Event { i: i.cast_signed(), u, f, b, s, p: p.into_bytes() })
}

fn condition() -> impl Strategy<Value = Condition> {
    let comparison = || prop::sample::select(vec!["==", "!=", "<", "<=", ">", ">="]);
    let pattern = || prop::collection::vec(prop::sample::select(vec!['a', 'b', 'é', '?', '*']), 0..5);
    let leaf = prop_oneof![
        Just(Condition::Bool),
        any::<bool>().prop_map(Condition::Constant),
        (any::<bool>(), pattern()).prop_map(|(wanted, pattern)| Condition::Text(wanted, pattern)),
        (any::<bool>(), pattern()).prop_map(|(wanted, pattern)| Condition::Path(wanted, pattern)),
        any::<bool>().prop_map(Condition::Fields),
        (comparison(), float().prop_filter("a literal", |f| f.is_finite()))
            .prop_map(|(operator, constant)| Condition::FloatConstant(operator, constant)),
    ];
    leaf.prop_recursive(4, 24, 2, move |inner| {
        let operator = prop::sample::select(vec!["&", "|", "^", "<<", ">>"]);
        let truth = inner.clone().prop_map(|condition| Number::Truth(Box::new(condition)));
        let number = prop_oneof![
            3 => Just(Number::Signed),
            3 => Just(Number::Unsigned),
            3 => interesting().prop_map(Number::Constant),
            1 => truth,
        ];
        let number = number.prop_recursive(2, 6, 2, move |inner| {
            let boxed = inner.prop_map(Box::new);
            prop_oneof![
                boxed.clone().prop_map(Number::Minus),
                boxed.clone().prop_map(Number::Complement),
                (operator.clone(), boxed.clone(), boxed).prop_map(|(o, left, right)| Number::Bits(o, left, right)),
            ]
        });
        let boxed = inner.prop_map(Box::new);
        prop_oneof![
            boxed.clone().prop_map(Condition::Not),
            (boxed.clone(), boxed.clone()).prop_map(|(left, right)| Condition::And(left, right)),
            (boxed.clone(), boxed).prop_map(|(left, right)| Condition::Or(left, right)),
            (comparison(), number.clone(), number.clone())
                .prop_map(|(o, left, right)| Condition::Integers(o, left, right)),
            (comparison(), number.clone()).prop_map(|(operator, right)| Condition::FloatField(operator, right)),
            number.prop_map(Condition::NotZero),
        ]
    })
}

/// Returns the number of cases: `FILTER_CASES`, or 500.
fn config() -> Config {
    let cases = std::env::var("FILTER_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(500);
    Config { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(seed::or(1)), ..Config::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn compiled_filters_agree_with_a_tree_evaluator(condition in condition(), events in prop::collection::vec(event(), 8)) {
        let text = write(&condition);
        let program = Expression::parse(&text).and_then(|filter| filter.compile(&FIELDS)).map_err(|e| TestCaseError::fail(e.to_string()))?;
        for event in events {
            let accepts = program.accepts(|index| event.get(index));
            prop_assert_eq!(accepts, holds(&condition, &event), "{} on {:?}", text, event);
            let in_range = |range: FieldRange| event.get(range.index()).is_some_and(|value| range.contains(value));
            prop_assert!(!accepts || program.first_range().is_none_or(in_range), "{} on {:?}", text, event);
        }
    }

    /// Any text is parsed or rejected, and the error's place is within the text.
    #[test]
    fn any_text_is_parsed_or_refused(text in "([ius]|[0-9x.e]{1,4}|[&|!=<>~^()-]{1,2}|\"[*?a\\\\]{0,3}\"| ){0,12}", event in event()) {
        match Expression::parse(&text).and_then(|filter| filter.compile(&FIELDS)) {
            Ok(program) => { program.accepts(|index| event.get(index)); }
            Err(error) => prop_assert!(text.get(error.place()).is_some() && !error.to_string().is_empty()),
        }
    }
}
