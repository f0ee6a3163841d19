//! The arguments of a function with `#[traced]`, and the fields that they can become.

use super::{FunctionArgument, SpanField, Value};
use crate::field::plain;
use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{Attribute, FnArg, GenericArgument, Generics, Ident, Pat, PatIdent, PathArguments, Type};

/// An argument with a name.
pub(super) struct Argument<'f> {
    pub(super) name: &'f Ident,
    /// The type, without the references.
    ty: &'f Type,
    /// The number of references between the name and a value of this type.
    references: usize,
    attributes: &'f [Attribute],
}

impl<'f> Argument<'f> {
    pub(super) fn of(argument: &'f FnArg) -> Option<Self> {
        let FnArg::Typed(typed) = argument else { return None };
        let Pat::Ident(PatIdent { ident, by_ref, .. }) = &*typed.pat else { return None };
        let (mut ty, mut references) = (plain(&typed.ty), usize::from(by_ref.is_some()));
        while let Type::Reference(reference) = ty {
            ty = plain(&reference.elem);
            references += 1;
        }
        Some(Self { name: ident, ty, references, attributes: &typed.attrs })
    }

    /// The field for this argument, if its type is the one that the type's name suggests; `None` if no field type has this name.
    pub(super) fn field(&self, generics: &Generics, is_named: bool) -> Option<SpanField> {
        let Self { name, ty, references, attributes } = self;
        let (kind, argument) = of_type(ty, generics)?;
        let stars = (0..*references).map(|_| quote!(*));
        let cfg = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
        let cfg = cfg.filter_map(|attribute| attribute.meta.require_list().ok().map(|list| list.tokens.clone()));
        let given = FunctionArgument { ty: quote!(#ty), place: quote!(&#(#stars)*#name), cfg: cfg.collect(), is_named };
        let ty = syn::parse2(argument).ok()?;
        Some(SpanField { name: (*name).clone(), kind, ty, value: Value::Argument(given) })
    }
}

/// The type of the field for an argument of this type, and the type of the span's argument, determined by the type's name.
fn of_type(ty: &Type, generics: &Generics) -> Option<(TokenStream, TokenStream)> {
    let scalars = |element: &Type| scalar(element).map(|scalar| quote!([#scalar]));
    let path = match ty {
        Type::Slice(slice) => {
            let elements = scalars(&slice.elem)?;
            return Some((elements.clone(), primitive_elements(&slice.elem, &elements)));
        }
        Type::Path(path) if path.qself.is_none() => &path.path,
        _ => return None,
    };
    let (first, last) = (path.segments.first()?, path.segments.last()?);
    let is_parameter = generics.type_params().any(|parameter| parameter.ident == first.ident);
    // An associated type: an item inside the function cannot name it.
    let is_associated = path.segments.len() > 1 && first.ident.unraw().to_string().starts_with(char::is_uppercase);
    if is_parameter || is_associated {
        return None;
    }
    let element = match &last.arguments {
        PathArguments::None => None,
        PathArguments::AngleBracketed(generics) => match (generics.args.first(), generics.args.len()) {
            (Some(GenericArgument::Type(element)), 1) => Some(plain(element)),
            _ => return None,
        },
        PathArguments::Parenthesized(_) => return None,
    };
    let text = last.ident.to_string();
    Some(match (text.as_str(), element) {
        ("Vec", Some(element)) => {
            let elements = scalars(element)?;
            (elements.clone(), primitive_elements(element, &elements))
        }
        ("Option", Some(element)) => {
            let scalar = scalar(element)?;
            (quote!(Option<#scalar>), quote!(::core::option::Option<::core::primitive::#scalar>))
        }
        ("str" | "String", None) => (quote!(str), quote!(&::core::primitive::str)),
        ("Path" | "PathBuf", None) => (quote!(path), quote!(&::std::path::Path)),
        ("Duration", None) => (quote!(Duration), quote!(::std::time::Duration)),
        ("SystemTime", None) => (quote!(SystemTime), quote!(::std::time::SystemTime)),
        (text, None) if DISPLAYED.contains(&text) => (quote!(display(64)), quote!(&dyn ::core::fmt::Display)),
        (text, None) if SCALARS.contains(&text) => {
            let scalar = &last.ident;
            (quote!(#scalar), quote!(::core::primitive::#scalar))
        }
        _ => return None,
    })
}

/// A reference to elements of a primitive type.
fn primitive_elements(element: &Type, elements: &TokenStream) -> TokenStream {
    scalar(element).map_or_else(|| elements.clone(), |scalar| quote!(&[::core::primitive::#scalar]))
}

/// Types that are recorded as text.
const DISPLAYED: [&str; 7] = ["IpAddr", "Ipv4Addr", "Ipv6Addr", "SocketAddr", "SocketAddrV4", "SocketAddrV6", "Uuid"];

const SCALARS: [&str; 13] =
    ["u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize", "bool", "f32", "f64"];

/// The name of a type, if it is written as a scalar type that a field can have.
fn scalar(ty: &Type) -> Option<&Ident> {
    let Type::Path(path) = plain(ty) else { return None };
    path.path.get_ident().filter(|name| SCALARS.iter().any(|scalar| *name == scalar))
}
