//! The places of a block: several in a file, in a function, in another macro.

use crate::common::Recorded;

tracepoint::define_trace! {
    provider = "places";
    first(n: u32) { n: u32 = n }
}

tracepoint::define_trace! {
    provider = "places";
    second(n: u32) { n: u32 = n }
}

tracepoint::define_trace! {}

macro_rules! with_given_names {
    ($visibility:vis $name:ident, $provider:literal, $argument:ident: $ty:ty => $field:ident: $kind:ident = $value:expr) => {
        tracepoint::define_trace! {
            provider = $provider;
            $visibility $name($argument: $ty) { $field: $kind = $value }
        }
    };
}

macro_rules! with_fixed_names {
    ($value:expr) => {
        tracepoint::define_trace! {
            provider = "places";
            fixed(n: u32, text: &str) if n > 0 { n: u32 = n, text: str = text, sum: u64 = $value }
        }
    };
}

macro_rules! with_a_whole_block {
    ($($block:tt)*) => {
        tracepoint::define_trace! { provider = "places"; $($block)* }
    };
}

macro_rules! fire {
    ($($name:ident)::+, $($argument:expr),*) => {
        tracepoint::trace!($($name)::+($($argument),*))
    };
}

with_given_names!(pub(crate) given, "places", n: &u64 => number: u64 = *n + 1);
with_fixed_names!(40 + 2);
with_a_whole_block! {
    /// Documented.
    #[level(Info)]
    whole(n: u32) { n: u32 = n }
}

fn in_a_function(n: u32) -> u32 {
    tracepoint::define_trace! {
        provider = "places";
        in_function(n: u32) { n: u32 = n }
    }
    tracepoint::trace!(in_function(n));
    trace_in_function(n + 1);
    n
}

fn in_a_generic_function<T: Copy + Into<u64>>(value: T) {
    tracepoint::define_trace! {
        provider = "places";
        in_generic_function(n: u64) { n: u64 = n }
    }
    tracepoint::trace!(in_generic_function(value.into()));
    tracepoint::trace_mark!(in_generic, "n %lu", value.into());
}

#[test]
fn several_in_a_file() {
    let recorded = [Recorded::of("places:first"), Recorded::of("places:second")];
    tracepoint::trace!(first(1));
    tracepoint::trace!(second(2));
    assert_eq!(recorded.map(|recorded| recorded.last()), [["1"], ["2"]]);
}

#[test]
fn in_functions() {
    let recorded = Recorded::of("places:in_function");
    assert_eq!(in_a_function(1), 1);
    assert_eq!(recorded.all(), [["1"], ["2"]]);
}

#[test]
fn in_generic_functions() {
    let recorded = Recorded::of("places:in_generic_function");
    let marked = Recorded::of_marker("in_generic");
    in_a_generic_function(1_u8);
    in_a_generic_function(2_u32);
    // There is one tracepoint and one marker, however many types the function is instantiated for.
    assert_eq!(recorded.all(), [["1"], ["2"]]);
    assert_eq!(marked.all(), [["1"], ["2"]]);
}

#[test]
fn in_macros() {
    let recorded = ["given", "fixed", "whole"].map(|name| Recorded::of(&format!("places:{name}")));
    fire!(given, &1);
    fire!(self::fixed, 1, "t");
    fire!(crate::declaration_places::whole, 3);
    assert_eq!(recorded.map(|recorded| recorded.last().join(" ")), ["2", "1 t 42", "3"]);
    let whole = tracepoint::find("places:whole").unwrap();
    assert_eq!((whole.doc(), whole.level()), ("Documented.", tracepoint::Level::Info));
}
