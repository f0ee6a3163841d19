//! The items of a span in addition to its tracepoints: their key, the type that `span!` uses by its path, and its implementation.

use super::surface::{allows, place};
use super::{OFF, local};
use crate::argument::{Argument, call_lifetime};
use crate::span::Span;
use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};

pub(super) fn items(krate: &Ident, span: &Span) -> TokenStream {
    let Span { attributes, visibility, name, text, arguments, poll, .. } = span;
    let (cfg, shown, docs) = (&attributes.cfg, &attributes.shown, &attributes.docs);
    let (allows, key) = (allows(), span.key());
    let (first, last) = (span.tracepoint("begin"), span.tracepoint("end"));
    let [parent, begin, end] = ["parent", "begin", "end"].map(local);
    let names: Vec<_> = arguments.iter().map(|Argument { name, .. }| name).collect();
    let types = arguments.iter().map(|Argument { ty, .. }| ty);
    let (lifetime, unused) = (call_lifetime(), types.clone());
    let type_doc = format!("The span `{text}`: the path that `span!` takes.");
    let (statics, is_on) = if OFF {
        (None, quote!(false))
    } else {
        let statics = quote! {
            #(#cfg)*
            #[doc(hidden)]
            #[allow(non_upper_case_globals)]
            static #key: #krate::__macro_support::Key = #krate::__macro_support::Key::new();
        };
        (Some(statics), quote!(#krate::__tracepoint_site!(#key)))
    };
    let (poll_type, poll) = match poll {
        None => (quote!(()), quote!()),
        Some(poll) => (
            quote!(#krate::span::Span<#poll>),
            quote! {
                if #poll::__tracepoint_is_on() && #parent != #krate::span::SpanId::NONE {
                    #poll::__tracepoint_begin(#parent)
                } else {
                    #poll::__tracepoint_off()
                }
            },
        ),
    };
    quote_spanned! {place(name)=>
        #statics

        #(#cfg)*
        #(#docs)*
        #[doc = ""]
        #[doc = #type_doc]
        #(#shown)*
        #allows
        #visibility enum #name {}

        #(#cfg)*
        #allows
        const _: () = {
            impl #name {
                #[doc(hidden)]
                #[inline(always)]
                pub fn __tracepoint_is_on() -> ::core::primitive::bool {
                    #is_on
                }

                #[doc(hidden)]
                #[cold]
                #[inline(never)]
                pub fn __tracepoint_begin(
                    #parent: #krate::span::SpanId,
                    #(#names: #types),*
                ) -> #krate::span::Span<#name> {
                    let #begin = #krate::span::Begin::new(#parent);
                    #first::__tracepoint_fire(#begin, #(#names),*);
                    #krate::span::Span::begun(#begin)
                }

                // Called by `trace!`, which does not accept spans. Inlined: it has no code, so a shared object must not export its symbol.
                #[doc(hidden)]
                #[inline]
                pub fn __tracepoint_fire<#lifetime>(#(#names: #unused),*)
                where
                    &#lifetime (): #krate::__macro_support::IsEvent<#name>,
                {
                    #krate::__macro_support::misused()
                }

                #[doc(hidden)]
                #[inline(always)]
                pub const fn __tracepoint_off() -> #krate::span::Span<#name> {
                    #krate::span::Span::off()
                }
            }

            impl #krate::span::SpanType for #name {
                type Poll = #poll_type;

                #[inline(always)]
                fn is_on() -> ::core::primitive::bool {
                    #name::__tracepoint_is_on()
                }

                #[inline(always)]
                fn fire_end(#end: #krate::span::End) {
                    #last::__tracepoint_fire(#end)
                }

                #[inline(always)]
                fn poll(#parent: #krate::span::SpanId) -> Self::Poll {
                    #poll
                }
            }
        };
    }
}
