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
use quote::{ToTokens, quote};
use syn::Ident;
use syn::ext::IdentExt;

/// The static of a field block's marker, its entry, and the trait implementations. The marker's type is the tracepoint's type.
pub(super) fn marker_items(block: &Block, tracepoint: &Tracepoint, fields: &[Field]) -> TokenStream {
    let (name, doc) = (&tracepoint.name, &tracepoint.attributes.doc);
    let common = common_parts(block, tracepoint);
    let format = format(&block.krate, fields);
    let parts = quote!(#common doc: #doc, format: #format,);
    let krate = &block.krate;
    let values = value_types(krate, fields);
    let values = if tracepoint.of_span.is_some() { quote!(#krate::__macro_support::At<#values>) } else { values };
    let note = with_note(krate, block.provider.as_ref(), &tracepoint.text, fields);
    let statics = Statics { parts, probes: quote!(Some(&__TRACEPOINT_PROBES)), note };
    items(krate, &quote!(#name), (fields, values), &statics, None)
}

/// The format string of a field block.
fn format(krate: &Ident, fields: &[Field]) -> TokenStream {
    let conversion = |field: &Field| format!("{} {}", field.name, field.conversion());
    if !fields.iter().any(|field| field.condition.is_some()) {
        let format: Vec<_> = fields.iter().map(conversion).collect();
        return format.join(" ").to_token_stream();
    }
    let parts = fields.iter().enumerate().map(|(i, field)| {
        let (is_there, space) = (field.is_there(), if i == 0 { "" } else { " " });
        let part = format!("{space}{}", conversion(field));
        quote!((#is_there, #part))
    });
    quote!({
        const __TRACEPOINT_PARTS: &[(::core::primitive::bool, &::core::primitive::str)] = &[#(#parts),*];
        const __TRACEPOINT_FORMAT: &[::core::primitive::u8] =
            &#krate::__macro_support::joined::<{
                #krate::__macro_support::joined_length(__TRACEPOINT_PARTS)
            }>(__TRACEPOINT_PARTS);
        #krate::__macro_support::text_of(__TRACEPOINT_FORMAT)
    })
}

/// The descriptions of the fields.
fn descriptors(krate: &Ident, fields: &[Field]) -> TokenStream {
    let descriptors = fields.iter().map(|field| field.descriptor(krate));
    if !fields.iter().any(|field| field.condition.is_some()) {
        return quote!(&[#(#descriptors),*]);
    }
    let are_there = fields.iter().map(Field::is_there);
    quote!({
        const __TRACEPOINT_FIELDS: &[(::core::primitive::bool, #krate::__macro_support::FieldDescriptor)] =
            &[#((#are_there, #descriptors)),*];
        const __TRACEPOINT_PRESENT: &[#krate::__macro_support::FieldDescriptor] =
            &#krate::__macro_support::present::<{
                #krate::__macro_support::count(__TRACEPOINT_FIELDS)
            }>(__TRACEPOINT_FIELDS);
        __TRACEPOINT_PRESENT
    })
}

/// The contents of a marker's static, except its fields.
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
    let descriptors = descriptors(krate, fields);
    quote! {
        static __TRACEPOINT_MARKER_KEY: #krate::__macro_support::Key = #krate::__macro_support::Key::new();

        static __TRACEPOINT_MARKER: #krate::__macro_support::Marker = #krate::__macro_support::Marker::new::<#ty>(
            #krate::__macro_support::MarkerParts {
                #parts
                fields: #descriptors,
            },
            &__TRACEPOINT_MARKER_KEY,
            ::core::option::Option::#probes,
        )#note;

        #krate::__tracepoint_list!(MARKERS: Marker, __TRACEPOINT_MARKER);

        #allows
        impl #krate::__macro_support::ValuesType for #ty {
            type Values<#lifetime> = #values;
        }

        impl #krate::__macro_support::MarkerType for #ty {
            #[inline(always)]
            fn marker() -> &'static #krate::__macro_support::Marker {
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
                #krate::__macro_support::mark::<__TracepointMark>(&#values)
            }
        }
    }
}
