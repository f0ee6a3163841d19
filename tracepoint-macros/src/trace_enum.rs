//! `#[derive(TraceEnum)]`: an enumeration without data as the type of a field.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Error, Fields, Ident, Path, Result, parse_quote};

/// The integer types allowed in `repr`, each with its width and signedness.
const INTEGERS: [(&str, u8, bool); 10] = [
    ("u8", 8, false),
    ("u16", 16, false),
    ("u32", 32, false),
    ("u64", 64, false),
    ("usize", 64, false),
    ("i8", 8, true),
    ("i16", 16, true),
    ("i32", 32, true),
    ("i64", 64, true),
    ("isize", 64, true),
];

/// The implementation of the trait.
pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Enum(data) = &input.data else {
        return Err(Error::new(input.ident.span(), "`TraceEnum` is for enumerations"));
    };
    if data.variants.is_empty() {
        return Err(Error::new(input.ident.span(), "an enumeration needs at least one variant"));
    }
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(Error::new(
                variant.ident.span(),
                "a variant with data has no number: record the data in fields of its own",
            ));
        }
    }
    let is_plain = data.variants.iter().all(|variant| variant.discriminant.is_none());
    let by_default = if is_plain && data.variants.len() <= 256 { "u8" } else { "i64" };
    let (word, bits, signed) = repr(input)?.unwrap_or_else(|| of_name(by_default).unwrap_or(INTEGERS[0]));
    let krate = krate(input)?;
    let (name, ty) = (&input.ident, Ident::new(word, Span::call_site()));
    let variants: Vec<_> = data.variants.iter().map(|variant| &variant.ident).collect();
    let labels: Vec<_> = variants.iter().map(|variant| variant.unraw().to_string()).collect();
    let (implementing, parameters, bounds) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #implementing #krate::TraceEnum for #name #parameters #bounds {
            type Repr = ::core::primitive::#ty;

            const TYPE: #krate::field::FieldType = #krate::field::FieldType::Enum {
                container: #krate::field::IntegerType {
                    bits: #bits,
                    signed: #signed,
                    base: #krate::field::Base::Decimal,
                    order: #krate::field::ByteOrder::Little,
                },
                labels: &[#(#krate::field::EnumLabel {
                    name: #labels,
                    value: Self::#variants as ::core::primitive::#ty as ::core::primitive::i128,
                }),*],
            };

            #[inline]
            fn repr(&self) -> ::core::primitive::#ty {
                match *self {
                    #(Self::#variants => Self::#variants as ::core::primitive::#ty,)*
                }
            }
        }
    })
}

fn of_name(name: &str) -> Option<(&'static str, u8, bool)> {
    INTEGERS.iter().copied().find(|(word, ..)| *word == name)
}

/// The integer that `#[repr(…)]` names.
fn repr(input: &DeriveInput) -> Result<Option<(&'static str, u8, bool)>> {
    let mut found = None;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            found = meta.path.get_ident().and_then(|word| of_name(&word.to_string())).or(found);
            Ok(())
        })?;
    }
    Ok(found)
}

/// The path to the library: `::tracepoint`, or the path in `#[trace_enum(crate = path)]`.
fn krate(input: &DeriveInput) -> Result<Path> {
    let mut path: Path = parse_quote!(::tracepoint);
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("trace_enum")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(meta.error("expected `crate = path`"));
            }
            path = meta.value()?.call(Path::parse_mod_style)?;
            Ok(())
        })?;
    }
    Ok(path)
}
