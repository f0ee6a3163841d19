//! The procedural macros of [`tracepoint`](https://docs.rs/tracepoint). Use them through that crate: its `define_trace!` and
//! `trace_mark!` pass `$crate` to these macros, so that they work even if the caller has renamed the dependency.
//!
//! Each macro parses its input, checks it, and generates items:
//!
//! * `input`, `attributes`, `argument`, `field`, `tracepoint`, `span` parse and check a `define_trace!` block;
//! * `call` unpacks arguments that other macros pass to `trace!` and `span!`;
//! * `format`, `mark` parse and check a `trace_mark!`;
//! * `trace_enum` derives the trait of enumerations used as fields;
//! * `traced` parses a `#[traced]` and its function, and selects the fields;
//! * `problems` collects errors, so that one build reports all of them;
//! * `expand` generates the items, with separate files for builds with tracing and with tracing compiled out.

mod argument;
mod attributes;
mod call;
mod expand;
mod field;
mod format;
mod input;
mod mark;
mod name;
mod problems;
mod span;
mod trace_enum;
mod traced;
mod tracepoint;

use proc_macro::TokenStream;

/// See `tracepoint::define_trace!`.
#[proc_macro]
pub fn define_trace(input: TokenStream) -> TokenStream {
    let block = syn::parse_macro_input!(input as input::Block);
    expand::block(&block).into()
}

/// Expands arguments that `trace!` and `span!` do not match themselves.
#[proc_macro]
pub fn call(input: TokenStream) -> TokenStream {
    call::expand(syn::parse_macro_input!(input as call::Call)).into()
}

/// See `tracepoint::trace_mark!`.
#[proc_macro]
pub fn trace_mark(input: TokenStream) -> TokenStream {
    let mark = syn::parse_macro_input!(input as mark::Mark);
    expand::mark(&mark).into()
}

/// See `tracepoint::TraceEnum`.
#[proc_macro_derive(TraceEnum, attributes(trace_enum))]
pub fn trace_enum(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    trace_enum::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// See `tracepoint::traced`.
#[proc_macro_attribute]
pub fn traced(options: TokenStream, function: TokenStream) -> TokenStream {
    let result = syn::parse(options)
        .and_then(|options| expand::traced(&options, &syn::parse::<traced::Function>(function.clone())?));
    result
        .map_or_else(|problem| [problem.into_compile_error().into(), function].into_iter().collect(), TokenStream::from)
}
