//! What stands behind the surface: the statics, their entries in the tables, and the types that tie arguments to bytes.

use super::{nested, surface::allows};
use crate::argument::{Argument, call_lifetime};
use crate::field::Field;
use crate::input::{Block, Tracepoint};
use crate::mark::Mark;
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

pub(super) fn tracepoint(block: &Block, tracepoint: &Tracepoint) -> TokenStream {
    let krate = &block.krate;
    let Tracepoint { attributes, name, prototype, .. } = tracepoint;
    let cfg = &attributes.cfg;
    let doc = &attributes.doc;
    let allows = allows();
    let lifetime = call_lifetime();
    let arguments = &prototype.arguments;
    let names: Vec<_> = arguments.iter().map(|argument| &argument.name).collect();
    let types: Vec<_> = arguments.iter().map(|argument| &argument.ty).collect();
    let named: Vec<_> = arguments.iter().map(|argument| &argument.ty_named).collect();
    let parts = common_parts(block, tracepoint);
    let listed = arguments.iter().map(|Argument { name, ty_text, .. }| {
        let name = name.to_string();
        quote!(#krate::private::Argument { name: #name, ty: #ty_text })
    });
    let by_value = arguments.iter().map(|argument| {
        let ty = &argument.ty_named;
        quote_spanned!(argument.ty.span()=> #krate::private::by_value::<#ty>();)
    });
    let condition_text =
        prototype.condition.as_ref().map_or_else(String::new, |condition| quote!(#condition).to_string());
    let holds = prototype.condition.as_ref().map_or_else(|| quote!(true), |condition| quote!(#condition));
    let marker_items = prototype.fields.as_ref().map(|fields| marker_items(block, tracepoint, fields));
    let marker = prototype.fields.as_ref().map_or_else(|| quote!(None), |_| quote!(Some(&MARKER)));
    let mark = prototype.fields.as_ref().map(|fields| {
        let values = nested(fields.iter().map(|field| field.value(krate)));
        quote! {
            #[inline(always)]
            fn mark(slot: &'static #krate::private::ThreadSlot, args: &Self::Args<'_>) {
                let (#(#names,)*) = *args;
                #krate::private::derived::<Fields>(slot, |stage| match #values { values => stage.emit(&values) })
            }
        }
    });
    quote! {
        #(#cfg)*
        #allows
        const _: () = {
            static TRACEPOINT: #krate::private::Tracepoint =
                #krate::private::Tracepoint::new::<#name>(#krate::private::TracepointParts {
                    #parts
                    doc: #doc,
                    arguments: &[#(#listed),*],
                    condition: #condition_text,
                    marker: ::core::option::Option::#marker,
                });

            #[#krate::private::linkme::distributed_slice(#krate::private::TRACEPOINTS)]
            #[linkme(crate = #krate::private::linkme)]
            static TRACEPOINT_ENTRY: &#krate::private::Tracepoint = &TRACEPOINT;

            #marker_items

            fn by_value<#lifetime>() {
                #(#by_value)*
            }

            impl #krate::private::TracepointType for #name {
                type Args<#lifetime> = (#(#named,)*);
                type Signature = fn(#(#types),*);

                #[inline(always)]
                fn tracepoint() -> &'static #krate::private::Tracepoint {
                    &TRACEPOINT
                }

                #[inline(always)]
                fn holds(args: &Self::Args<'_>) -> bool {
                    let (#(#names,)*) = *args;
                    #holds
                }

                #mark

                #[inline(always)]
                fn call(probe: Self::Signature, args: &Self::Args<'_>) {
                    let (#(#names,)*) = *args;
                    probe(#(#names),*)
                }
            }

            impl #name {
                #[doc(hidden)]
                #[inline(always)]
                pub fn __tracepoint_is_on() -> bool {
                    TRACEPOINT.is_on()
                }

                #[doc(hidden)]
                #[cold]
                #[inline(never)]
                pub fn __tracepoint_fire(#(#names: #types),*) {
                    #krate::private::fire::<#name>(&(#(#names,)*))
                }

                #[doc(hidden)]
                pub fn __tracepoint_register<F>(
                    priority: i32,
                    probe: F,
                ) -> ::core::result::Result<#krate::Probe<#name>, #krate::RegisterError>
                where
                    F: ::core::ops::Fn(#(#types),*) + ::core::marker::Send + ::core::marker::Sync + 'static,
                {
                    ::core::result::Result::Ok(#krate::private::register::<#name, _>(
                        priority,
                        move |args: &<#name as #krate::private::TracepointType>::Args<'_>| {
                            let (#(#names,)*) = *args;
                            probe(#(#names),*)
                        },
                    ))
                }
            }
        };
    }
}

/// The parts that the descriptions of a tracepoint and of its marker share.
fn common_parts(block: &Block, tracepoint: &Tracepoint) -> TokenStream {
    let krate = &block.krate;
    let text = &tracepoint.text;
    let provider = block.provider.as_ref().map_or_else(|| default_provider(krate), |provider| quote!(#provider));
    let level = tracepoint.attributes.level.as_ref().map_or_else(|| quote!(DebugLine), |level| quote!(#level));
    let location = location(krate, tracepoint.name.span());
    quote! {
        provider: #provider,
        name: #text,
        level: #krate::private::Level::#level,
        location: #location,
    }
}

fn default_provider(krate: &TokenStream) -> TokenStream {
    quote!(#krate::private::crate_name(::core::module_path!()))
}

/// Where `span` is. The macros that say so stand at `span` themselves: at the call site they would all name the line on which
/// the block begins.
fn location(krate: &TokenStream, span: Span) -> TokenStream {
    let file = quote_spanned!(span=> ::core::file!());
    let line = quote_spanned!(span=> ::core::line!());
    quote! {
        #krate::private::Location {
            package: match ::core::option_env!("CARGO_PKG_NAME") {
                ::core::option::Option::Some(package) => package,
                ::core::option::Option::None => #krate::private::crate_name(::core::module_path!()),
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

fn marker_items(block: &Block, tracepoint: &Tracepoint, fields: &[Field]) -> TokenStream {
    let krate = &block.krate;
    let doc = &tracepoint.attributes.doc;
    let parts = common_parts(block, tracepoint);
    let format =
        fields.iter().map(|field| format!("{} {}", field.name, field.conversion())).collect::<Vec<_>>().join(" ");
    let marker_type = marker_type(krate, fields, &quote!(Fields), &quote!(MARKER));
    let descriptors = fields.iter().map(|field| field.descriptor(krate));
    quote! {
        static MARKER: #krate::private::Marker = #krate::private::Marker::new::<Fields>(
            #krate::private::MarkerParts {
                #parts
                doc: #doc,
                fields: &[#(#descriptors),*],
                format: #format,
            },
            ::core::option::Option::Some(&TRACEPOINT),
        );

        #[#krate::private::linkme::distributed_slice(#krate::private::MARKERS)]
        #[linkme(crate = #krate::private::linkme)]
        static MARKER_ENTRY: &#krate::private::Marker = &MARKER;

        #marker_type
    }
}

fn marker_type(krate: &TokenStream, fields: &[Field], ty: &TokenStream, marker: &TokenStream) -> TokenStream {
    let lifetime = call_lifetime();
    let values = nested(fields.iter().map(|field| field.value_type(krate)));
    quote! {
        enum #ty {}

        impl #krate::private::MarkerType for #ty {
            type Values<#lifetime> = #values;

            #[inline(always)]
            fn marker() -> &'static #krate::private::Marker {
                &#marker
            }
        }
    }
}

pub(super) fn mark(mark: &Mark) -> TokenStream {
    let Mark { krate, name, format, fields } = mark;
    let allows = allows();
    let text = name.to_string();
    let text = text.trim_start_matches("r#");
    let provider = default_provider(krate);
    let location = location(krate, name.span());
    let marker_type = marker_type(krate, fields, &quote!(__TracepointMark), &quote!(__TRACEPOINT_MARKER));
    let descriptors = fields.iter().map(|field| field.descriptor(krate));
    let values = nested(fields.iter().map(|field| field.value(krate)));
    // The items of the block are seen by the argument expressions: hence their long names.
    quote! {
        {
            static __TRACEPOINT_MARKER: #krate::private::Marker = #krate::private::Marker::new::<__TracepointMark>(
                #krate::private::MarkerParts {
                    provider: #provider,
                    name: #text,
                    level: #krate::private::Level::DebugLine,
                    location: #location,
                    doc: "",
                    fields: &[#(#descriptors),*],
                    format: #format,
                },
                ::core::option::Option::None,
            );

            #[#krate::private::linkme::distributed_slice(#krate::private::MARKERS)]
            #[linkme(crate = #krate::private::linkme)]
            static __TRACEPOINT_MARKER_ENTRY: &#krate::private::Marker = &__TRACEPOINT_MARKER;

            #allows
            #marker_type

            if __TRACEPOINT_MARKER.is_on() {
                match #values {
                    values => #krate::private::mark::<__TracepointMark>(&values),
                }
            }
        }
    }
}
