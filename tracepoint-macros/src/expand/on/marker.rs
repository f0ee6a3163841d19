//! The markers of field blocks and of `trace_mark!`.

use super::described::{common_parts, default_provider, location};
use crate::argument::call_lifetime;
use crate::expand::surface::allows;
use crate::expand::{value_types, values};
use crate::field::Field;
use crate::input::{Block, Tracepoint};
use crate::mark::Mark;
use proc_macro2::TokenStream;
use quote::quote;
use syn::Ident;
use syn::ext::IdentExt;

/// The static of a field block's marker, its entry, and the trait implementations. The type of the marker is that of the tracepoint.
pub(super) fn marker_items(block: &Block, tracepoint: &Tracepoint, fields: &[Field]) -> TokenStream {
    let krate = &block.krate;
    let name = &tracepoint.name;
    let doc = &tracepoint.attributes.doc;
    let parts = common_parts(block, tracepoint);
    let format =
        fields.iter().map(|field| format!("{} {}", field.name, field.conversion())).collect::<Vec<_>>().join(" ");
    let marker_type = marker_type(krate, fields, &quote!(#name));
    let descriptors = fields.iter().map(|field| field.descriptor(krate));
    quote! {
        static __TRACEPOINT_MARKER_KEY: #krate::private::Key = #krate::private::Key::new();

        static __TRACEPOINT_MARKER: #krate::private::Marker = #krate::private::Marker::new::<#name>(
            #krate::private::MarkerParts {
                #parts
                doc: #doc,
                fields: &[#(#descriptors),*],
                format: #format,
            },
            &__TRACEPOINT_MARKER_KEY,
            ::core::option::Option::Some(&__TRACEPOINT_PROBES),
        );

        #krate::__tracepoint_list!(MARKERS: Marker, __TRACEPOINT_MARKER);

        #marker_type
    }
}

/// Connects the type of a marker with its values and with its static, which the caller generates.
fn marker_type(krate: &Ident, fields: &[Field], ty: &TokenStream) -> TokenStream {
    let lifetime = call_lifetime();
    let values = value_types(krate, fields);
    quote! {
        impl #krate::private::ValuesType for #ty {
            type Values<#lifetime> = #values;
        }

        impl #krate::private::MarkerType for #ty {
            #[inline(always)]
            fn marker() -> &'static #krate::private::Marker {
                &__TRACEPOINT_MARKER
            }
        }
    }
}

pub(in crate::expand) fn mark(mark: &Mark) -> TokenStream {
    let Mark { krate, name, format, fields } = mark;
    let allows = allows();
    let text = name.unraw().to_string();
    let provider = default_provider(krate);
    let location = location(krate, name.span());
    let marker_type = marker_type(krate, fields, &quote!(__TracepointMark));
    let descriptors = fields.iter().map(|field| field.descriptor(krate));
    let values = values(krate, fields);
    quote! {
        {
            static __TRACEPOINT_MARKER_KEY: #krate::private::Key = #krate::private::Key::new();

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
                &__TRACEPOINT_MARKER_KEY,
                ::core::option::Option::None,
            );

            #krate::__tracepoint_list!(MARKERS: Marker, __TRACEPOINT_MARKER);

            enum __TracepointMark {}

            #allows
            #marker_type

            if #krate::__tracepoint_site!(__TRACEPOINT_MARKER_KEY) {
                #krate::private::mark::<__TracepointMark>(&#values)
            }
        }
    }
}
