//! Tracing is compiled out: the same names, no statics, no entries, no strings.

use super::{nested, surface::allows};
use crate::input::{Block, Tracepoint};
use crate::mark::Mark;
use proc_macro2::TokenStream;
use quote::quote;

pub(super) fn tracepoint(block: &Block, tracepoint: &Tracepoint) -> TokenStream {
    let krate = &block.krate;
    let Tracepoint { attributes, name, prototype, .. } = tracepoint;
    let cfg = &attributes.cfg;
    let allows = allows();
    let names: Vec<_> = prototype.arguments.iter().map(|argument| &argument.name).collect();
    let types: Vec<_> = prototype.arguments.iter().map(|argument| &argument.ty).collect();
    let named: Vec<_> = prototype.arguments.iter().map(|argument| &argument.ty_named).collect();
    let lifetime = crate::argument::call_lifetime();
    let condition = prototype.condition.as_ref().map_or_else(|| quote!(true), |condition| quote!(#condition));
    let values = nested(prototype.fields.iter().flatten().map(|field| field.value(krate)));
    quote! {
        #(#cfg)*
        #allows
        const _: () = {
            // Never called, and so not in the program: what is wrong in a declaration is wrong in this build, too.
            fn check<#lifetime>(#(#names: #named),*) {
                #(#krate::private::by_value::<#named>();)*
                if #condition {
                    let _ = #values;
                }
            }

            impl #name {
                #[doc(hidden)]
                #[inline(always)]
                pub const fn __tracepoint_is_on() -> bool {
                    false
                }

                #[doc(hidden)]
                #[inline(always)]
                pub fn __tracepoint_fire(#(#names: #types),*) {}

                #[doc(hidden)]
                pub fn __tracepoint_register<F>(
                    priority: i32,
                    probe: F,
                ) -> ::core::result::Result<#krate::Probe<#name>, #krate::RegisterError>
                where
                    F: ::core::ops::Fn(#(#types),*) + ::core::marker::Send + ::core::marker::Sync + 'static,
                {
                    ::core::result::Result::Ok(#krate::private::inert())
                }
            }
        };
    }
}

pub(super) fn mark(mark: &Mark) -> TokenStream {
    let Mark { krate, fields, .. } = mark;
    let values = nested(fields.iter().map(|field| field.value(krate)));
    quote! {
        {
            if false {
                let _ = #values;
            }
        }
    }
}
