//! Any bytes as a filter and as the fields of an event: the filter is parsed or refused, compiled or refused, and evaluated; its text parses to
//! an equal filter, and errors can be displayed.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tracepoint_ring::field::{
    Array, Base, ByteOrder, EnumLabel, FieldDescriptor, FieldType, FieldValue, IntegerType, PathBytes, Sequence, Value,
};
use tracepoint_session_spec::filter::{Expression, FilterError};

const fn integer(bits: u8, signed: bool) -> IntegerType {
    IntegerType { bits, signed, base: Base::Decimal, order: ByteOrder::Little }
}

const fn field(name: &'static str, ty: FieldType) -> FieldDescriptor {
    FieldDescriptor { name, ty, doc: "" }
}

const BYTE: FieldType = FieldType::Integer(integer(8, false));
const LABELS: &[EnumLabel] = &[EnumLabel { name: "Idle", value: 0 }, EnumLabel { name: "Run", value: 1 }];

const WORD: FieldType = FieldType::Integer(integer(64, false));

const FIELDS: [FieldDescriptor; 10] = [
    field("i", FieldType::Integer(integer(64, true))),
    field("u", FieldType::Integer(integer(64, false))),
    field("f", FieldType::Float { bits: 64 }),
    field("b", FieldType::Bool),
    field("e", FieldType::Enum { container: integer(8, false), labels: LABELS }),
    field("s", FieldType::Text),
    field("p", FieldType::Path),
    field("d", FieldType::Sequence { element: &BYTE }),
    field("o", FieldType::Optional { value: &WORD }),
    field("a", FieldType::Any),
];

fuzz_target!(|bytes: &[u8]| {
    let Some((head, rest)) = bytes.split_first_chunk::<16>() else { return };
    let [u, f] = [&head[..8], &head[8..]].map(|half| u64::from_le_bytes(half.try_into().unwrap_or_default()));
    let (text, filter) = rest.split_at(rest.len().min(usize::from(head[0]) % 32));
    let (Ok(text), Ok(filter)) = (std::str::from_utf8(text), std::str::from_utf8(filter)) else { return };
    let shown = |error: FilterError| {
        assert!(filter.get(error.place()).is_some());
        assert!(error.to_string().lines().count() <= 3);
    };
    let expression = match Expression::parse(filter) {
        Ok(expression) => expression,
        Err(error) => return shown(error),
    };
    let program = match expression.compile(&FIELDS) {
        Ok(program) => program,
        Err(error) => return shown(error),
    };
    let (path, data, digest) = (PathBytes(text.as_bytes()), Sequence(text.as_bytes()), Array(head));
    let value = |index| match index {
        0 => Some(Value::Signed(u.cast_signed())),
        1 => Some(Value::Unsigned(u)),
        2 => Some(Value::Float(f64::from_bits(f))),
        3 => Some(Value::Bool(f & 1 == 1)),
        4 => Some(Value::Unsigned(u % 3)),
        5 => Some(Value::Text(text)),
        6 => Some(path.value()),
        7 => Some(data.value()),
        8 => Some(if u % 3 == 0 { Value::Absent } else { Value::Unsigned(u) }),
        9 => Some(
            [
                Value::Signed(u.cast_signed()),
                Value::Float(f64::from_bits(f)),
                Value::Text(text),
                Value::Bool(f & 1 == 1),
            ][(u % 4) as usize],
        ),
        _ => None,
    };
    let decided = program.accepts(value);
    let again = Expression::parse(expression.text()).unwrap().compile(&FIELDS).unwrap();
    assert_eq!(again.accepts(value), decided);
    // Fields of other types than declared: the filter must return in any case.
    program.accepts(|index| value(index + 3));
    program.accepts(|index| value(9 - index));
    program.accepts(|_| Some(digest.value()));
});
