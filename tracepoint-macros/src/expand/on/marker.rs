//! The markers of field blocks and of `trace_mark!`.

use super::described::{common_parts, parts_of};
use super::note::with_note;
use crate::argument::call_lifetime;
use crate::expand::surface::allows;
use crate::expand::{value_types, values};
use crate::field::Field;
use crate::input::Block;
use crate::mark::Mark;
use crate::tracepoint::Tracepoint;
use proc_macro2::TokenStream;
use quote::quote;
use syn::Ident;
use syn::ext::IdentExt;

/// The static of a field block's marker, its entry, and the trait implementations. The type of the marker is that of the tracepoint.
pub(super) fn marker_items(block: &Block, tracepoint: &Tracepoint, fields: &[Field]) -> TokenStream {
    let (name, doc) = (&tracepoint.name, &tracepoint.attributes.doc);
    let common = common_parts(block, tracepoint);
    let format: Vec<_> = fields.iter().map(|field| format!("{} {}", field.name, field.conversion())).collect();
    let format = format.join(" ");
    let parts = quote!(#common doc: #doc, format: #format,);
    let krate = &block.krate;
    let values = value_types(krate, fields);
    let values = if tracepoint.of_span.is_some() { quote!(#krate::private::At<#values>) } else { values };
    let note = with_note(krate, block.provider.as_ref(), &tracepoint.text, fields);
    let statics = Statics { parts, probes: quote!(Some(&__TRACEPOINT_PROBES)), note };
    items(krate, &quote!(#name), (fields, values), &statics, None)
}

/// What is in the static of a marker beside its fields.
struct Statics {
    parts: TokenStream,
    probes: TokenStream,
    /// The call that adds the note.
    note: Option<TokenStream>,
}

/// The static of a marker, its entry, and the trait implementations of its type.
fn items(
    krate: &Ident,
    ty: &TokenStream,
    (fields, values): (&[Field], TokenStream),
    Statics { parts, probes, note }: &Statics,
    allows: Option<&TokenStream>,
) -> TokenStream {
    let lifetime = call_lifetime();
    let descriptors = fields.iter().map(|field| field.descriptor(krate));
    quote! {
        static __TRACEPOINT_MARKER_KEY: #krate::private::Key = #krate::private::Key::new();

        static __TRACEPOINT_MARKER: #krate::private::Marker = #krate::private::Marker::new::<#ty>(
            #krate::private::MarkerParts {
                #parts
                fields: &[#(#descriptors),*],
            },
            &__TRACEPOINT_MARKER_KEY,
            ::core::option::Option::#probes,
        )#note;

        #krate::__tracepoint_list!(MARKERS: Marker, __TRACEPOINT_MARKER);

        #allows
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
    let Mark { krate, provider, name, format, fields } = mark;
    let text = name.unraw().to_string();
    let common = parts_of(krate, &text, name.span(), provider.as_ref(), None);
    let parts = quote!(#common doc: "", format: #format,);
    let types = (&fields[..], value_types(krate, fields));
    let note = with_note(krate, provider.as_ref(), &text, fields);
    let statics = Statics { parts, probes: quote!(None), note };
    let items = items(krate, &quote!(__TracepointMark), types, &statics, Some(&allows()));
    let values = values(krate, fields);
    quote! {
        {
            enum __TracepointMark {}

            #items

            if #krate::__tracepoint_site!(__TRACEPOINT_MARKER_KEY) {
                #krate::private::mark::<__TracepointMark>(&#values)
            }
        }
    }
}
