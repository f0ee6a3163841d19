//! The common parts of the descriptions of tracepoints and markers.

use crate::input::Block;
use crate::tracepoint::Tracepoint;
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Ident, LitStr};

/// The parts that the descriptions of a tracepoint and of its marker share.
pub(super) fn common_parts(block: &Block, tracepoint: &Tracepoint) -> TokenStream {
    let Tracepoint { text, name, attributes, .. } = tracepoint;
    parts_of(&block.krate, text, name.span(), block.provider.as_ref(), attributes.level.as_ref())
}

/// The same for any item with a name. The default provider is the name of the crate, the default level is `DebugLine`.
pub(super) fn parts_of(
    krate: &Ident,
    text: &str,
    span: Span,
    provider: Option<&LitStr>,
    level: Option<&Ident>,
) -> TokenStream {
    let crate_name = quote!(#krate::__macro_support::crate_name(::core::module_path!()));
    let provider = provider.map_or(crate_name, |provider| quote!(#provider));
    let level = level.map_or_else(|| quote!(DebugLine), |level| quote!(#level));
    let location = location(krate, span);
    quote! {
        provider: #provider,
        name: #text,
        level: #krate::__macro_support::Level::#level,
        location: #location,
    }
}

/// The source location of `span`. `file!()` and `line!()` get this span, because with the span of the call site all locations would be the
/// line on which the block begins.
fn location(krate: &Ident, span: Span) -> TokenStream {
    let file = quote_spanned!(span=> ::core::file!());
    let line = quote_spanned!(span=> ::core::line!());
    quote! {
        #krate::__macro_support::Location {
            package: match ::core::option_env!("CARGO_PKG_NAME") {
                ::core::option::Option::Some(package) => package,
                ::core::option::Option::None => #krate::__macro_support::crate_name(::core::module_path!()),
            },
            version: match ::core::option_env!("CARGO_PKG_VERSION") {
                ::core::option::Option::Some(version) => version,
                ::core::option::Option::None => "",
            },
            module: ::core::module_path!(),
            file: #file,
            line: #line,
        }
    }
}
