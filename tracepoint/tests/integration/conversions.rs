//! `trace_mark!`: every conversion, with the type that it accepts and the field that it creates.

use crate::common::{Recorded, marker};
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

macro_rules! conversion {
    ($name:ident, $format:literal, $value:expr => $ty:literal, $text:expr) => {{
        let name = stringify!($name);
        let recorded = Recorded::of_marker(name);
        tracepoint::trace_mark!($name, $format, $value);
        assert_eq!(recorded.last(), [$text.to_string()], "{name}");
        let marker = marker(name);
        assert_eq!(marker.fields()[0].ty.to_string(), $ty, "{name}");
        assert_eq!(marker.fields()[0].name, "n", "{name}");
        assert_eq!(marker.format(), $format, "{name}");
    }};
}

#[test]
fn integers() {
    conversion!(d, "n %d", -1_i32 => "i32", -1);
    conversion!(i, "n %i", i32::MIN => "i32", i32::MIN);
    conversion!(u, "n %u", u32::MAX => "u32", u32::MAX);
    conversion!(ld, "n %ld", i64::MIN => "i64", i64::MIN);
    conversion!(lu, "n %lu", u64::MAX => "u64", u64::MAX);
    conversion!(lld, "n %lld", -2_i64 => "i64", -2);
    conversion!(llu, "n %llu", 2_u64 => "u64", 2);
    conversion!(x, "n %x", 255_u32 => "hex u32", 255);
    conversion!(capital_x, "n %X", 255_u32 => "hex u32", 255);
    conversion!(lx, "n %lx", 255_u64 => "hex u64", 255);
    conversion!(o, "n %o", 8_u32 => "oct u32", 8);
    conversion!(zu, "n %zu", usize::MAX => "u64", usize::MAX);
    conversion!(zd, "n %zd", isize::MIN => "i64", isize::MIN);
    conversion!(td, "n %td", -1_isize => "i64", -1);
    conversion!(jd, "n %jd", -1_i64 => "i64", -1);
    conversion!(hhd, "n %hhd", i8::MIN => "i8", i8::MIN);
    conversion!(hhu, "n %hhu", u8::MAX => "u8", u8::MAX);
    conversion!(hhx, "n %hhx", 16_u8 => "hex u8", 16);
    conversion!(hd, "n %hd", i16::MIN => "i16", i16::MIN);
    conversion!(hu, "n %hu", u16::MAX => "u16", u16::MAX);
}

#[test]
fn flags_width_and_precision_are_for_the_eye() {
    conversion!(width, "n %5d", 1_i32 => "i32", 1);
    conversion!(left, "n %-5d", 1_i32 => "i32", 1);
    conversion!(plus, "n %+d", 1_i32 => "i32", 1);
    conversion!(space, "n % d", 1_i32 => "i32", 1);
    conversion!(hash, "n %#x", 1_u32 => "hex u32", 1);
    conversion!(zeroes, "n %08lx", 1_u64 => "hex u64", 1);
    conversion!(precision, "n %.3f", 0.5_f64 => "f64", 0.5);
    conversion!(both, "n %10.3f", 0.5_f64 => "f64", 0.5);
    conversion!(text_width, "n %-10s", "text" => "str", "text");
    conversion!(text_precision, "n %.2s", "text" => "str", "text");
}

#[test]
fn floats() {
    conversion!(f, "n %f", 1.5_f64 => "f64", 1.5);
    conversion!(e, "n %e", 1.5_f64 => "f64", 1.5);
    conversion!(g, "n %g", f64::MIN_POSITIVE => "f64", f64::MIN_POSITIVE);
    conversion!(lf, "n %lf", f64::from(0.5_f32) => "f64", 0.5);
}

#[test]
fn text() {
    conversion!(literal, "n %s", "text" => "str", "text");
    conversion!(string, "n %s", String::from("text") => "str", "text");
    conversion!(by_reference, "n %s", &String::from("text") => "str", "text");
    conversion!(cow, "n %s", Cow::from("text") => "str", "text");
    conversion!(boxed, "n %s", Box::<str>::from("text") => "str", "text");
    conversion!(counted, "n %s", Rc::<str>::from("text") => "str", "text");
    conversion!(shared, "n %s", Arc::new(String::from("text")) => "str", "text");
    conversion!(deep, "n %s", &&&"text" => "str", "text");
    conversion!(formatted, "n %s", format!("{}", 1) => "str", 1);
    conversion!(sum, "n %s", String::from("te") + "xt" => "str", "text");
    conversion!(chosen, "n %s", if true { "yes" } else { "no" } => "str", "yes");
}

#[test]
fn characters() {
    conversion!(c, "n %c", 'c' => "str", "c");
    conversion!(wide_c, "n %c", '→' => "str", "→");
    conversion!(from_a_byte, "n %c", char::from(b'b') => "str", "b");
}

#[test]
fn pointers() {
    let number = 1_u8;
    let address = (&raw const number).addr();
    let slice = [1, 2];
    conversion!(p, "n %p", &number => "hex u64", address);
    conversion!(raw, "n %p", &raw const number => "hex u64", address);
    conversion!(wide, "n %p", std::ptr::from_ref(&slice[..]) => "hex u64", slice.as_ptr().addr());
    conversion!(null, "n %p", std::ptr::null_mut::<u64>() => "hex u64", 0);
    let text = String::from("x");
    conversion!(of_text, "n %p", text.as_str() => "hex u64", text.as_ptr().addr());
}

#[test]
fn names_of_fields() {
    tracepoint::trace_mark!(
        names,
        "%d, first_1=%d; (second: %d) [%d] 3rd %d %% %d per%%cent %d\n",
        1,
        2,
        3,
        4,
        5,
        6,
        7
    );
    let names: Vec<&str> = marker("names").fields().iter().map(|field| field.name).collect();
    assert_eq!(names, ["arg1", "first_1", "second", "arg4", "arg5", "arg6", "cent"]);
    tracepoint::trace_mark!(none, "100%% nothing");
    assert_eq!(marker("none").fields(), []);
}
