//! The user's expressions and types resolve to the user's items, not to those of the surrounding expansion.
#![allow(non_camel_case_types, non_upper_case_globals, dead_code)]

use crate::common::Recorded;

/// Names that shadow those of the language and of the standard library.
mod shadowed {
    pub(crate) struct Some;
    pub(crate) struct None;
    pub(crate) struct Ok;
    pub(crate) struct Err;
    pub(crate) struct Option;
    pub(crate) struct Result;
    pub(crate) struct Fn;
    pub(crate) struct Send;
    pub(crate) struct Sync;
    pub(crate) struct Copy;
    pub(crate) struct String;
    pub(crate) struct Box;
    pub(crate) struct u8;
    pub(crate) struct i32;
    pub(crate) struct u64;
    pub(crate) struct bool;
    pub(crate) struct char;
    pub(crate) struct str;
    pub(crate) mod core {}
    pub(crate) mod std {}
    pub(crate) mod alloc {}
    pub(crate) mod tracepoint {}
    pub(crate) mod linkme {}
    #[allow(unused_macros)]
    macro_rules! line {
        () => {
            compile_error!("the user's own macro")
        };
    }
    #[allow(unused_macros)]
    macro_rules! file {
        () => {
            compile_error!("the user's own macro")
        };
    }

    ::tracepoint::define_trace! {
        provider = "shadowed";
        pub all(a: ::core::primitive::i32, text: &::core::primitive::str) if a > 0 {
            a: i32 = a,
            byte: u8 = 1,
            flag: bool = true,
            text: str = text,
            wide: be u64 = 1,
            some: [u8; 2] = [1, 2],
            state: enum u8 { Idle = 0 } = 0,
        }
    }

    pub(crate) fn fire() {
        ::tracepoint::trace!(all(1, "x"));
        ::tracepoint::trace_mark!(shadowed_mark, "d %d c %c p %p s %s", 1, 'c', &1, "s");
    }
}

/// A module without the prelude.
mod bare {
    #![no_implicit_prelude]

    ::tracepoint::define_trace! {
        provider = "bare";
        event(n: u32, text: &str) if n > 0 { n: u32 = n, text: str = text, bytes: [u8; 2] = [1, 2], data: [u8] = &[3] }
    }

    pub(crate) fn fire() {
        ::tracepoint::trace!(event(1, "x"));
        ::tracepoint::trace_mark!(bare_mark, "n %d c %c text %s", 1, 'c', "x");
    }
}

// Names that an expansion could give to its own items.
const MARKER: u64 = 1;
const TRACEPOINT: u64 = 2;
const VALUE: u64 = 3;
const TRACEPOINT_ENTRY: u64 = 4;
static ENTRY: u64 = 5;
struct F(u64);
struct F1(u64);
struct Fields;

impl Fields {
    const COUNT: u64 = 6;
}

fn by_value() -> u64 {
    7
}

fn check() -> u64 {
    8
}

tracepoint::define_trace! {
    provider = "hygiene";

    items(f: &F, g: &F1) if by_value() == 7 {
        marker: u64 = MARKER,
        tracepoint: u64 = TRACEPOINT,
        value: enum u64 { A = VALUE, B } = VALUE,
        entry: u64 = TRACEPOINT_ENTRY + ENTRY,
        fields: u64 = Fields::COUNT,
        by_value: u64 = by_value(),
        check: u64 = check(),
        f: u64 = f.0 + g.0,
    }

    arguments(
        args: u8, slot: u8, stage: u8, values: u8, value: u8, probe: u8, priority: u8, list: u8, marker: u8, name: u8,
        tracepoint: u8, arguments: u8
    ) if args + slot == 3 {
        args: u8 = args, slot: u8 = slot, stage: u8 = stage, values: u8 = values, value: u8 = value, probe: u8 = probe,
        priority: u8 = priority, list: u8 = list, marker: u8 = marker, name: u8 = name, tracepoint: u8 = tracepoint,
        arguments: u8 = arguments,
    }
}

#[test]
fn the_language_may_be_shadowed() {
    let recorded = Recorded::of("shadowed:all");
    let marked = Recorded::of_marker("shadowed_mark");
    shadowed::fire();
    assert_eq!(recorded.last().len(), 7);
    assert_eq!(marked.last()[..2], ["1".to_owned(), "c".to_owned()]);
}

#[test]
fn the_prelude_may_be_absent() {
    let recorded = Recorded::of("bare:event");
    let marked = Recorded::of_marker("bare_mark");
    bare::fire();
    assert_eq!(recorded.last(), ["1", "x", "[1, 2]", "[3]"]);
    assert_eq!(marked.last(), ["1", "c", "x"]);
}

#[test]
fn expansions_see_items_of_the_user() {
    let recorded = Recorded::of("hygiene:items");
    tracepoint::trace!(items(&F(4), &F1(5)));
    assert_eq!(recorded.last(), ["1", "2", "3", "9", "6", "7", "8", "9"]);
    let marked = Recorded::of_marker("user_items");
    tracepoint::trace_mark!(user_items, "marker %lu value %lu fields %lu", MARKER, VALUE, Fields::COUNT);
    assert_eq!(marked.last(), ["1", "3", "6"]);
}

#[test]
fn arguments_may_have_any_name() {
    let recorded = Recorded::of("hygiene:arguments");
    let probe = register_trace_arguments(|a, b, c, d, e, f, g, h, i, j, k, l| {
        assert_eq!([a, b, c, d, e, f, g, h, i, j, k, l], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    })
    .unwrap();
    trace_arguments(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
    unregister_trace_arguments(probe);
    let expected: Vec<String> = (1..=12).map(|n: u8| n.to_string()).collect();
    assert_eq!(recorded.last(), expected);
    let (args, values, slot) = (1, 2, 3);
    let marked = Recorded::of_marker("user_locals");
    tracepoint::trace_mark!(user_locals, "args %d values %d slot %d", args, values, slot);
    assert_eq!(marked.last(), ["1", "2", "3"]);
}
