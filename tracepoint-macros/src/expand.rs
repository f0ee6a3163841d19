//! From what was parsed to items. Two twins with equal signatures: `on`, and `off` where tracing is compiled out.
//!
//! The expressions and types of a user stand in the expansion among items and bindings of ours, and must not see them. Bindings
//! get their names from [`local`]; items, which have no hygiene, have `__tracepoint` in theirs.

mod arguments;
mod field;
mod off;
mod on;
mod surface;

use crate::field::Field;
use crate::input::Block;
use crate::mark::Mark;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};

/// Whether tracing is compiled out.
const OFF: bool = cfg!(feature = "off");

/// The items of a `define_trace!` block.
pub(crate) fn block(block: &Block) -> TokenStream {
    block
        .tracepoints
        .iter()
        .map(|tracepoint| {
            let surface = surface::functions(&at(&block.krate, tracepoint.name.span()), tracepoint);
            let behind = if OFF { off::tracepoint(block, tracepoint) } else { on::tracepoint(block, tracepoint) };
            quote!(#surface #behind)
        })
        .collect()
}

/// The expression of a `trace_mark!`.
pub(crate) fn mark(mark: &Mark) -> TokenStream {
    if OFF { off::mark(mark) } else { on::mark(mark) }
}

/// The name of a binding that no expression of the user can see.
fn local(name: &str) -> Ident {
    format_ident!("__tracepoint_{name}", span = Span::mixed_site())
}

/// `$crate` at another place: messages that mention what it begins point there, not to the whole macro.
fn at(krate: &Ident, place: Span) -> Ident {
    let mut krate = krate.clone();
    krate.set_span(place.resolved_at(krate.span()));
    krate
}

/// How long a list of pairs may be: the compiler follows types so deep, and asks for `recursion_limit` beyond.
const LIST: usize = 32;

/// The values of fields, `(a, (b, (c, ())))`, in halves if there are many.
fn values<'f>(krate: &Ident, fields: impl IntoIterator<Item = &'f Field>) -> TokenStream {
    let values: Vec<_> = fields.into_iter().map(|field| field.value(krate)).collect();
    nested(&values, &|front, back| quote!(#krate::private::Both(#front, #back)))
}

/// The type of what [`values`] gives.
fn value_types(krate: &Ident, fields: &[Field]) -> TokenStream {
    let types: Vec<_> = fields.iter().map(|field| field.value_type(krate)).collect();
    nested(&types, &|front, back| quote!(#krate::private::Both<#front, #back>))
}

/// `(a, (b, (c, ())))`; more than [`LIST`] parts are halved and joined, so that any number will do.
fn nested(parts: &[TokenStream], join: &dyn Fn(TokenStream, TokenStream) -> TokenStream) -> TokenStream {
    if parts.len() > LIST {
        let (front, back) = parts.split_at(parts.len() / 2);
        return join(nested(front, join), nested(back, join));
    }
    parts.iter().rev().fold(quote!(()), |rest, part| quote!((#part, #rest)))
}
