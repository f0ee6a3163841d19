//! Expands arguments that `trace!` and `span!` do not match themselves: fragments of another macro that contain a path, or a complete call.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Result, Token};

/// `$crate, name_of_the_macro, arguments`.
pub(crate) struct Call {
    krate: Ident,
    name: Ident,
    arguments: TokenStream,
}

impl Parse for Call {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let krate = input.call(Ident::parse_any)?;
        let _: Token![,] = input.parse()?;
        let name = input.parse()?;
        let _: Token![,] = input.parse()?;
        Ok(Self { krate, name, arguments: input.parse()? })
    }
}

/// Repeats the call of the macro with the contents of the fragments. An error if there are no fragments.
pub(crate) fn expand(Call { krate, name, arguments }: Call) -> TokenStream {
    if arguments.clone().into_iter().any(|tree| is_fragment(&tree)) {
        let flat = flat(arguments);
        return quote!(#krate::#name! { #flat });
    }
    let is_parent =
        name == "span" && arguments.clone().into_iter().next().is_some_and(|tree| tree.to_string() == "parent");
    let message = match name.to_string().as_str() {
        "trace" => "`trace!` takes a call of a tracepoint: `trace!(path::to::name(argument, …))`",
        _ if is_parent => {
            "`span!` takes a parent and a call of a span: `span!(parent: &outer, path::to::name(argument, …))`"
        }
        _ => "`span!` takes a call of a span: `span!(path::to::name(argument, …))`",
    };
    quote_spanned!(proc_macro2::Span::call_site()=> ::core::compile_error!(#message))
}

fn is_fragment(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Group(group) if group.delimiter() == Delimiter::None)
}

/// The tokens, with each fragment replaced by its contents.
fn flat(tokens: TokenStream) -> TokenStream {
    let inside = |tree| match tree {
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => flat(group.stream()),
        tree => tree.into(),
    };
    tokens.into_iter().map(inside).collect()
}
