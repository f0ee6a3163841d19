//! Generates items from the parsed input. `on` and `off` generate the same signatures; `off` is used where tracing is compiled out.
//!
//! The user's expressions and types must not resolve to items and bindings of the surrounding expansion. Bindings get hygienic names
//! from [`local`]; items have no hygiene, so their names contain `__tracepoint`.

mod arguments;
mod field;
mod off;
mod on;
mod span;
mod surface;
mod traced;

pub(crate) use traced::traced;

use crate::field::Field;
use crate::input::Block;
use crate::mark::Mark;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};

/// True if tracing is compiled out.
const OFF: bool = cfg!(feature = "off");

/// The items of a `define_trace!` block.
pub(crate) fn block(block: &Block) -> TokenStream {
    let tracepoints = block.tracepoints.iter().map(|tracepoint| {
        let surface = surface::functions(&at(&block.krate, tracepoint.name.span()), tracepoint);
        let implementation = if OFF { off::tracepoint(block, tracepoint) } else { on::tracepoint(block, tracepoint) };
        quote!(#surface #implementation)
    });
    let spans = block.spans.iter().map(|span| span::items(&at(&block.krate, span.name.span()), span));
    tracepoints.chain(spans).collect()
}

/// The expression of a `trace_mark!`.
pub(crate) fn mark(mark: &Mark) -> TokenStream {
    if OFF { off::mark(mark) } else { on::mark(mark) }
}

/// The name of a binding that the user's expressions cannot refer to.
fn local(name: &str) -> Ident {
    format_ident!("__tracepoint_{name}", span = Span::mixed_site())
}

/// `$crate` with another span: messages about a path that begins with it then point to `place`, not to the whole macro.
fn at(krate: &Ident, place: Span) -> Ident {
    let mut krate = krate.clone();
    krate.set_span(place.resolved_at(krate.span()));
    krate
}

/// Maximum length of a list of nested pairs. For much deeper types, the compiler needs a higher `recursion_limit`.
const MAX_LIST: usize = 32;

/// The values of the fields as a nested tuple, see [`nested`].
fn values<'f>(krate: &Ident, fields: impl IntoIterator<Item = &'f Field>) -> TokenStream {
    let part = |field: &Field| match &field.condition {
        None => Part::Field(field.value(krate)),
        Some(condition) => {
            let value = field.value(krate);
            Part::List(quote!(#krate::__macro_support::Conditional::<_, { #condition }>(#value)))
        }
    };
    let values: Vec<_> = fields.into_iter().map(part).collect();
    nested(&values, &|front, back| quote!(#krate::__macro_support::Concat(#front, #back)))
}

/// The type of [`values`].
fn value_types(krate: &Ident, fields: &[Field]) -> TokenStream {
    let part = |field: &Field| match &field.condition {
        None => Part::Field(field.value_type(krate)),
        Some(condition) => {
            let ty = field.value_type(krate);
            Part::List(quote!(#krate::__macro_support::Conditional<#ty, { #condition }>))
        }
    };
    let types: Vec<_> = fields.iter().map(part).collect();
    nested(&types, &|front, back| quote!(#krate::__macro_support::Concat<#front, #back>))
}

/// A part of a list of values, or of their types.
enum Part {
    Field(TokenStream),
    /// A list of one field or none: a conditional field.
    List(TokenStream),
}

/// `(a, (b, (c, ())))`. A list of more than [`MAX_LIST`] parts is split into halves, which `join` combines, so the number of parts is unlimited.
fn nested(parts: &[Part], join: &dyn Fn(TokenStream, TokenStream) -> TokenStream) -> TokenStream {
    if parts.len() > MAX_LIST {
        let (front, back) = parts.split_at(parts.len() / 2);
        return join(nested(front, join), nested(back, join));
    }
    parts.iter().rev().fold(quote!(()), |rest, part| match part {
        Part::Field(field) => quote!((#field, #rest)),
        Part::List(list) => join(list.clone(), rest),
    })
}
