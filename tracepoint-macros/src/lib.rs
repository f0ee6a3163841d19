//! The macros of [`tracepoint`](https://docs.rs/tracepoint). Use them through that crate: its `define_trace!` and
//! `trace_mark!` pass the path by which the caller knows it, which makes them work under a renamed dependency.
//!
//! Each macro parses once, checks, and generates from what it parsed:
//!
//! * `input`, `attributes`, `argument`, `field`: the parts of a `define_trace!` block, and what is wrong with them;
//! * `format`, `mark`: the same for `trace_mark!`;
//! * `problems`: what is wrong, gathered, so that one build tells it all;
//! * `expand`: the items, in twin files for builds with tracing and for builds with it compiled out.

mod argument;
mod attributes;
mod expand;
mod field;
mod format;
mod input;
mod mark;
mod name;
mod problems;

use proc_macro::TokenStream;

/// See `tracepoint::define_trace!`.
#[proc_macro]
pub fn define_trace(input: TokenStream) -> TokenStream {
    let block = syn::parse_macro_input!(input as input::Block);
    expand::block(&block).into()
}

/// See `tracepoint::trace_mark!`.
#[proc_macro]
pub fn trace_mark(input: TokenStream) -> TokenStream {
    let mark = syn::parse_macro_input!(input as mark::Mark);
    expand::mark(&mark).into()
}
