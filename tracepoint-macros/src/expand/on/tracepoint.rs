//! A tracepoint: its statics, its entry in the table, its trait implementations and its hidden functions.

use super::described::common_parts;
use super::marker::marker_items;
use crate::argument::{Argument, call_lifetime};
use crate::expand::arguments::Arguments;
use crate::expand::surface::{allows, no_span, place, probe_parameter};
use crate::expand::{at, local, values};
use crate::input::Block;
use crate::tracepoint::{OfSpan, Tracepoint};
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::Ident;
use syn::ext::IdentExt;
use syn::spanned::Spanned;

pub(in crate::expand) fn tracepoint(block: &Block, tracepoint: &Tracepoint) -> TokenStream {
    let krate = &at(&block.krate, tracepoint.name.span());
    let cfg = &tracepoint.attributes.cfg;
    let allows = allows();
    let arguments = Arguments::of(tracepoint);
    let statics = statics(block, tracepoint);
    let marker_items = tracepoint.prototype.fields.as_ref().map(|fields| marker_items(block, tracepoint, fields));
    let copy = copy(krate, tracepoint, &arguments);
    let type_impl = type_impl(krate, tracepoint, &arguments);
    let functions = functions(krate, tracepoint, &arguments);
    quote! {
        #(#cfg)*
        #allows
        const _: () = {
            #statics
            #marker_items
            #copy
            #type_impl
            #functions
        };
    }
}

/// The key, the tracepoint, its probes, and its entry in the table.
fn statics(block: &Block, tracepoint: &Tracepoint) -> TokenStream {
    let krate = &block.krate;
    let Tracepoint { attributes, name, prototype, of_span, .. } = tracepoint;
    let doc = &attributes.doc;
    let parts = common_parts(block, tracepoint);
    let listed = prototype.arguments.iter().map(|Argument { name, ty_text, .. }| {
        let name = name.unraw().to_string();
        quote!(#krate::__macro_support::Argument { name: #name, ty: #ty_text })
    });
    let condition = prototype.condition.as_ref().map_or_else(String::new, |condition| quote!(#condition).to_string());
    let key = key(tracepoint);
    let own_key = of_span
        .is_none()
        .then(|| quote!(static #key: #krate::__macro_support::Key = #krate::__macro_support::Key::new();));
    let marker = prototype.fields.as_ref().map_or_else(|| quote!(None), |_| quote!(Some(&__TRACEPOINT_MARKER)));
    quote! {
        #own_key

        static __TRACEPOINT: #krate::__macro_support::Tracepoint =
            #krate::__macro_support::Tracepoint::new::<#name>(#krate::__macro_support::TracepointParts {
                #parts
                doc: #doc,
                arguments: &[#(#listed),*],
                condition: #condition,
                marker: ::core::option::Option::#marker,
            }, &__TRACEPOINT_PROBES);

        static __TRACEPOINT_PROBES: #krate::__macro_support::ProbeSet =
            #krate::__macro_support::ProbeSet::new(&#key, #krate::__macro_support::probes_changed::<#name>);

        #krate::__tracepoint_list!(TRACEPOINTS: Tracepoint, __TRACEPOINT);
    }
}

/// The static of the tracepoint's key.
fn key(tracepoint: &Tracepoint) -> Ident {
    tracepoint.of_span.as_ref().map_or_else(|| format_ident!("__TRACEPOINT_KEY"), |of_span| of_span.key.clone())
}

/// The only function that copies arguments, so that an argument that is not `Copy` causes a single compile error.
fn copy(krate: &Ident, tracepoint: &Tracepoint, Arguments { names, .. }: &Arguments<'_>) -> TokenStream {
    let name = &tracepoint.name;
    let lifetime = call_lifetime();
    let args = local("args");
    let checks = tracepoint.prototype.arguments.iter().map(
        |Argument { ty, ty_tied, .. }| quote_spanned!(ty.span()=> #krate::__macro_support::by_value::<#ty_tied>();),
    );
    quote! {
        #[inline(always)]
        fn __tracepoint_copy<#lifetime>(
            #args: &<#name as #krate::__macro_support::ArgumentsType>::Args<#lifetime>,
        ) -> <#name as #krate::__macro_support::ArgumentsType>::Args<#lifetime> {
            #(#checks)*
            let (#(#names,)*) = *#args;
            (#(#names,)*)
        }
    }
}

/// The implementations of the core's traits for a tracepoint's type.
fn type_impl(krate: &Ident, tracepoint: &Tracepoint, arguments: &Arguments<'_>) -> TokenStream {
    let Tracepoint { name, prototype, of_span, .. } = tracepoint;
    let Arguments { names, types, tied } = arguments;
    let lifetime = call_lifetime();
    let [args, slot, stage, probe] = ["args", "slot", "stage", "probe"].map(local);
    let is_unconditional = prototype.condition.is_none();
    let holds = prototype.condition.as_ref().map_or_else(|| quote!(true), |condition| quote!(#condition));
    let mark = prototype.fields.as_ref().map(|fields| {
        let values = values(krate, fields);
        let values = match of_span {
            Some(OfSpan { timed, .. }) => quote!(#krate::__macro_support::At { time: #timed.time(), values: #values }),
            None => values,
        };
        quote! {
            #[inline(always)]
            fn mark<const FAST: ::core::primitive::bool>(
                #slot: &'static #krate::__macro_support::ThreadSlot,
                #args: &<Self as #krate::__macro_support::ArgumentsType>::Args<'_>,
            ) -> #krate::__macro_support::Dispatch {
                let (#(#names,)*) = __tracepoint_copy(#args);
                #krate::__macro_support::derived::<#name, FAST>(#slot, |#stage| #stage.emit(&#values))
            }
        }
    });
    quote_spanned! {place(&tracepoint.name)=>
        impl #krate::__macro_support::ArgumentsType for #name {
            type Args<#lifetime> = (#(#tied,)*);
        }

        impl #krate::__macro_support::TracepointType for #name {
            type Signature = fn(#(#types),*);
            const IS_UNCONDITIONAL: ::core::primitive::bool = #is_unconditional;

            #[inline(always)]
            fn tracepoint() -> &'static #krate::__macro_support::Tracepoint {
                &__TRACEPOINT
            }

            #[inline(always)]
            fn holds(#args: &<Self as #krate::__macro_support::ArgumentsType>::Args<'_>) -> ::core::primitive::bool {
                let (#(#names,)*) = __tracepoint_copy(#args);
                #holds
            }

            #mark

            #[inline(always)]
            fn call(#probe: Self::Signature, #args: &<Self as #krate::__macro_support::ArgumentsType>::Args<'_>) {
                let (#(#names,)*) = __tracepoint_copy(#args);
                #probe(#(#names),*)
            }
        }
    }
}

/// The hidden functions that the public functions and `trace!` call. They have the span of the tracepoint's name, because messages about
/// arguments mention them.
fn functions(krate: &Ident, tracepoint: &Tracepoint, arguments: &Arguments<'_>) -> TokenStream {
    let name = &tracepoint.name;
    let Arguments { names, types, .. } = arguments;
    let [args, entered, probe, priority] = ["args", "entered", "probe", "priority"].map(local);
    let parameter = probe_parameter(tracepoint);
    let key = key(tracepoint);
    let no_span = no_span(krate, tracepoint);
    quote_spanned! {place(&tracepoint.name)=>
        impl #name {
            #no_span

            #[doc(hidden)]
            #[inline(always)]
            pub fn __tracepoint_is_on() -> ::core::primitive::bool {
                #krate::__tracepoint_site!(#key)
            }

            #[doc(hidden)]
            #[cold]
            #[inline(never)]
            pub fn __tracepoint_fire(#(#names: #types),*) {
                let #args = (#(#names,)*);
                if let ::core::result::Result::Err(#entered) = #krate::__macro_support::fire_fast::<#name>(&#args) {
                    // By value: a reference would force the arguments into memory on the fast path as well.
                    let (#(#names,)*) = __tracepoint_copy(&#args);
                    Self::__tracepoint_fire_full(#(#names,)* #entered)
                }
            }

            #[inline(never)]
            fn __tracepoint_fire_full(#(#names: #types,)* #entered: #krate::__macro_support::EventOrigin) {
                #krate::__macro_support::fire_full::<#name>(&(#(#names,)*), #entered)
            }

            #[doc(hidden)]
            pub fn __tracepoint_register<#parameter>(
                #priority: ::core::primitive::i32,
                #probe: #parameter,
            ) -> ::core::result::Result<#krate::Probe<#name>, #krate::__macro_support::RegisterError>
            where
                #parameter: ::core::ops::Fn(#(#types),*) + ::core::marker::Send + ::core::marker::Sync + 'static,
            {
                #krate::__macro_support::register::<#name, _>(
                    #priority,
                    move |#args: &<#name as #krate::__macro_support::ArgumentsType>::Args<'_>| {
                        let (#(#names,)*) = __tracepoint_copy(#args);
                        #probe(#(#names),*)
                    },
                )
            }
        }
    }
}
