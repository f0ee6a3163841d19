//! The filter language: what filters accept, and the messages for invalid ones.

use tracepoint_ring::field::{
    Array, Base, ByteOrder, EnumLabel, FieldDescriptor, FieldType, FieldValue, IntegerType, PathBytes, Sequence, Text,
    Value,
};
use tracepoint_session_spec::filter::Expression;

const fn integer(bits: u8, signed: bool) -> IntegerType {
    IntegerType { bits, signed, base: Base::Decimal, order: ByteOrder::Little }
}

const fn field(name: &'static str, ty: FieldType) -> FieldDescriptor {
    FieldDescriptor { name, ty, doc: "" }
}

const BYTE: FieldType = FieldType::Integer(integer(8, false));
const SHORT: FieldType = FieldType::Integer(integer(16, false));
const LABELS: &[EnumLabel] = &[
    EnumLabel { name: "Idle", value: 0 },
    EnumLabel { name: "Run", value: 1 },
    EnumLabel { name: "Running", value: 2 },
];

const FIELDS: &[FieldDescriptor] = &[
    field("prev_pid", FieldType::Integer(integer(32, true))),
    field("size", FieldType::Integer(integer(64, false))),
    field("prev_comm", FieldType::Text),
    field("file", FieldType::Path),
    field("load", FieldType::Float { bits: 64 }),
    field("idle", FieldType::Bool),
    field("mode", FieldType::Enum { container: integer(8, false), labels: LABELS }),
    field("data", FieldType::Sequence { element: &BYTE }),
    field("digest", FieldType::Array { element: &BYTE, len: 3 }),
    field("ports", FieldType::Sequence { element: &SHORT }),
    field("nothing", FieldType::Float { bits: 64 }),
    field("comm", FieldType::Text),
    field("took", FieldType::Duration),
];

/// Returns the fields of one event.
fn value(index: usize) -> Option<Value<'static>> {
    const DATA: Sequence<'static, u8> = Sequence(b"GET /index");
    const DIGEST: Array<'static, u8, 3> = Array(b"abc");
    const FILE: PathBytes<'static> = PathBytes(b"/tmp/\xff.log");
    const COMM: Text<'static> = Text("postgres: \"writer\"");
    Some(match index {
        0 => Value::Signed(-5),
        1 => Value::Unsigned(u64::MAX),
        2 => COMM.value(),
        3 => FILE.value(),
        4 => Value::Float(2.5),
        5 => Value::Bool(true),
        6 => Value::Unsigned(1),
        7 => DATA.value(),
        8 => DIGEST.value(),
        10 => Value::Float(f64::NAN),
        11 => Value::Text("postgres"),
        12 => Value::Unsigned(30_500_000),
        _ => return None,
    })
}

fn accepts(filter: &str) -> bool {
    let program = Expression::parse(filter).and_then(|filter| filter.compile(FIELDS));
    program.unwrap_or_else(|error| panic!("{error}")).accepts(value)
}

#[test]
fn these_filters_accept_the_event() {
    for filter in [
        "true",
        "prev_pid == -5",
        "prev_pid < 0 && size > 0",
        "size == 18446744073709551615 && size == 0xffff_ffff_ffff_ffff",
        "prev_pid != size",
        "size > 9223372036854775807",
        "prev_pid & 0xff == 0xfb",
        "prev_pid >> 60 == 15",
        "~prev_pid == 4",
        "-prev_pid == 5 && --prev_pid == -5",
        "1 << 3 | 1 == 9 && 6 ^ 3 == 5",
        "!(size & 0xff) == false",
        "size & 0xff",
        "load > 2 && load < 3 && load == 2.5 && -load <= -25e-1",
        "load >= prev_pid",
        "nothing != nothing && !(nothing == nothing) && !(nothing < 1) && !(nothing >= 1) && nothing != 0",
        "idle && idle == true && idle == 1 && idle != false",
        "mode == 1 && mode == \"Run\" && \"Run*\" == mode && mode != \"Idle\" && mode < 2",
        "prev_comm == \"postgres*\" && prev_comm != \"postgres\" && prev_comm == \"*writer?\"",
        r#"prev_comm == "postgres:\x20\"writer\"""#,
        r#"file == "/tmp/\xff.log" && file == "/tmp/?.log" && file != "/tmp/*.lo""#,
        r#"data == "GET *" && digest == "abc" && digest != "ab" && digest != data"#,
        r#"prev_comm == "[op]ostgres[!a-z]*" && digest == "[a-c][a-c]c" && data == "GET [/]*" && prev_comm != "[!p]*""#,
        "prev_comm != comm && comm == comm && comm != \"*\\**\"",
        "size > 30ms && size >= 1.5s && size != 2min && size > 3\u{b5}s && prev_pid == -5ns && load < 1us",
        "took > 30ms && took < 31_000us && took == 30.5ms && took == 30500000 && !(took > 0.001h)",
        "false || prev_pid == -5 && (true || false)",
        "5 > prev_pid && -6 < prev_pid && 0 != prev_pid",
        "prev_pid > 100 && prev_comm == \"postgres*\" || !(size & 0x100 == 0)",
    ] {
        assert!(accepts(filter), "{filter}");
        assert!(!accepts(&format!("!({filter})")), "not: {filter}");
    }
}

/// A program rejects events whose fields differ from those that it was compiled for.
#[test]
fn events_with_other_fields_are_refused() {
    for filter in ["size == 1", "!(size == 1)", "prev_comm == \"*\"", "prev_comm != comm", "mode != \"Run\"", "!idle"] {
        let program = Expression::parse(filter).and_then(|filter| filter.compile(FIELDS)).expect(filter);
        assert!(!program.accepts(|_| None), "{filter} without fields");
        let other = |index| match index {
            2 | 11 => Some(Value::Unsigned(0)),
            _ => Some(Value::Text("")),
        };
        assert!(!program.accepts(other), "{filter} with others");
    }
}

#[test]
fn messages_show_the_place() {
    let mut shown = String::new();
    for filter in [
        "",
        "  ",
        "prev_pid >",
        "prev_pid == 5 prev_pid",
        "(prev_pid == 5",
        "prev_pid == 5)",
        "prev_pid = 5",
        "prev_comm == 'x'",
        "prev_comm == \"x",
        "prev_comm == \"\\q\"",
        "prev_comm == \"\\xg0\"",
        "idle && prev_comm == \"ab[c\"",
        "prev_comm == \"x[z-a]\"",
        "size + 1 == 2",
        "1 < size < 3",
        "size == 0xfg",
        "size == 99999999999999999999",
        "load == 1e999",
        "size > 1.5ns",
        "size > 5days",
        "prev_comm == 30ms",
        "&& size",
        "size == €",
        "pid == 5",
        "xyzzy_none == 5",
        "prev_comm",
        "!load",
        "idle && prev_comm",
        "prev_comm < \"x\"",
        "size == \"x\"",
        "5 == prev_comm",
        "prev_comm == mode",
        "\"a\" == \"a\"",
        "mode == \"Runing\"",
        "ports == 5",
        "load & 1",
        "-prev_comm == 5",
        "prev_comm == (size == 5)",
    ] {
        let error = Expression::parse(filter).and_then(|filter| filter.compile(FIELDS)).map(drop).expect_err(filter);
        assert!(filter.get(error.place()).is_some(), "{filter}: {:?}", error.place());
        shown.extend(error.to_string().lines().map(|line| line.trim_end().to_owned() + "\n"));
        shown.push('\n');
    }
    let expected = include_str!("filter_language/errors.txt");
    assert_eq!(shown, expected, "the messages are:\n{shown}");
}

#[test]
fn filters_over_the_bounds_are_refused() {
    let nested = |n: usize| format!("{}size{}", "(".repeat(n), ")".repeat(n));
    assert!(accepts(&nested(64)));
    for filter in [
        nested(65),
        nested(2000),
        "(".repeat(4096),
        format!("{}size", "!".repeat(4000)),
        format!("{}size", "-".repeat(4000)),
        format!("size{}", " ".repeat(4096)),
    ] {
        assert!(Expression::parse(&filter).is_err(), "{filter}");
    }
    // Each parenthesis leaves one operand on the stack.
    let waiting = |n: usize| format!("{}1{}", "1 | (".repeat(n), ")".repeat(n));
    assert!(accepts(&waiting(31)));
    let error = Expression::parse(&waiting(32)).and_then(|filter| filter.compile(FIELDS)).expect_err("too deep");
    assert!(error.reason().contains("more than 32 operands"), "{error}");
    // Long, but not deep.
    assert!(accepts(&format!("size{}", " && size".repeat(500))));
    assert!(accepts(&format!("size{}", " | size".repeat(500))));
    assert!(!accepts(&format!("!size{}", " && size".repeat(500))));
}

#[test]
fn the_text_is_kept_unchanged() {
    let text = "  prev_pid>100 ";
    let filter: Expression = text.parse().expect("a filter");
    assert_eq!((filter.text(), filter.to_string().as_str()), (text, text));
    assert_eq!(Expression::parse(filter.text()), Ok(filter));
}
