//! The expansion with tracing compiled out: the same names and signatures, without statics, table entries and strings.

use super::arguments::Arguments;
use super::surface::{allows, no_span, place, probe_parameter};
use super::{at, values};
use crate::argument::call_lifetime;
use crate::input::Block;
use crate::mark::Mark;
use crate::tracepoint::Tracepoint;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

pub(super) fn tracepoint(block: &Block, tracepoint: &Tracepoint) -> TokenStream {
    let krate = &at(&block.krate, tracepoint.name.span());
    let Tracepoint { attributes, name, prototype, .. } = tracepoint;
    let cfg = &attributes.cfg;
    let allows = allows();
    let Arguments { names, types, tied } = Arguments::of(tracepoint);
    let lifetime = call_lifetime();
    let condition = prototype.condition.as_ref().map_or_else(|| quote!(true), |condition| quote!(#condition));
    let values = values(krate, prototype.fields.iter().flatten());
    let parameter = probe_parameter(tracepoint);
    let no_span = no_span(krate, tracepoint);
    quote_spanned! {place(&tracepoint.name)=>
        #(#cfg)*
        #allows
        const _: () = {
            // Never called, and so not in the program. It makes errors in a declaration errors of this build as well.
            fn __tracepoint_check<#lifetime>(#(#names: #tied),*) {
                #(#krate::__macro_support::by_value::<#tied>();)*
                if #condition {
                    let _ = #values;
                }
            }

            impl #name {
                #no_span

                #[doc(hidden)]
                #[inline(always)]
                pub const fn __tracepoint_is_on() -> ::core::primitive::bool {
                    false
                }

                #[doc(hidden)]
                #[inline(always)]
                pub fn __tracepoint_fire(#(#names: #types),*) {}

                #[doc(hidden)]
                pub fn __tracepoint_register<#parameter>(
                    priority: ::core::primitive::i32,
                    probe: #parameter,
                ) -> ::core::result::Result<#krate::Probe<#name>, #krate::__macro_support::RegisterError>
                where
                    #parameter: ::core::ops::Fn(#(#types),*) + ::core::marker::Send + ::core::marker::Sync + 'static,
                {
                    ::core::result::Result::Ok(#krate::__macro_support::inert())
                }
            }
        };
    }
}

pub(super) fn mark(mark: &Mark) -> TokenStream {
    let Mark { krate, fields, .. } = mark;
    let values = values(krate, fields);
    quote! {
        {
            if false {
                let _ = #values;
            }
        }
    }
}
