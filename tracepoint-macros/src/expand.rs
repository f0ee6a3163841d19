//! From what was parsed to items. Two twins with equal signatures: `on`, and `off` where tracing is compiled out.

#[cfg(not(feature = "off"))]
mod on;
#[cfg(not(feature = "off"))]
use on as twin;

#[cfg(feature = "off")]
mod off;
#[cfg(feature = "off")]
use off as twin;

mod surface;

use crate::input::Block;
use crate::mark::Mark;
use proc_macro2::TokenStream;

/// The items of a `define_trace!` block.
pub(crate) fn block(block: &Block) -> TokenStream {
    block
        .tracepoints
        .iter()
        .map(|tracepoint| {
            let surface = surface::functions(&block.krate, tracepoint);
            let behind = twin::tracepoint(block, tracepoint);
            quote::quote!(#surface #behind)
        })
        .collect()
}

/// The expression of a `trace_mark!`.
pub(crate) fn mark(mark: &Mark) -> TokenStream {
    twin::mark(mark)
}

/// `(a, (b, (c, ())))`.
fn nested(parts: impl DoubleEndedIterator<Item = TokenStream>) -> TokenStream {
    parts.rev().fold(quote::quote!(()), |rest, part| quote::quote!((#part, #rest)))
}
