//! Expands a field to its description, the type of its value, the expression of its value, and its conversion in the format string.

use super::{at, local};
use crate::argument::call_lifetime;
use crate::field::{Base, Field, Kind, Label, Scalar};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, Ident};

/// The primitive type named `ident`, even if another item with that name is in scope. Errors point to `ident`.
fn primitive(ident: &Ident) -> TokenStream {
    quote_spanned!(ident.span().resolved_at(Span::call_site())=> ::core::primitive::#ident)
}

/// `value`, which must have the type `ty`. Through the binding, a type error also points to where the type was declared.
fn of_type(ty: &TokenStream, value: &Expr) -> TokenStream {
    let binding = local("value");
    quote!({
        let #binding: #ty = #value;
        #binding
    })
}

/// `value` as a separate constant, so that a static description can use it even if it is the result of a function call.
fn constant(name: &str, ty: &TokenStream, value: &TokenStream) -> TokenStream {
    let name = format_ident!("__TRACEPOINT_{name}");
    quote!({
        const #name: #ty = #value;
        #name
    })
}

const U64: Scalar = Scalar::Integer { bits: 64, signed: false };
const I64: Scalar = Scalar::Integer { bits: 64, signed: true };

impl Scalar {
    /// The expression of type `FieldType`.
    fn descriptor(self, krate: &Ident, base: Base, big_endian: bool) -> TokenStream {
        match self {
            Self::Integer { .. } => {
                let integer = self.integer(krate, base, big_endian);
                quote!(#krate::__macro_support::FieldType::Integer(#integer))
            }
            Self::Bool => quote!(#krate::__macro_support::FieldType::Bool),
            Self::Float { bits } => quote!(#krate::__macro_support::FieldType::Float { bits: #bits }),
        }
    }

    /// The expression of type `IntegerType`.
    fn integer(self, krate: &Ident, base: Base, big_endian: bool) -> TokenStream {
        let (bits, signed) = match self {
            Self::Integer { bits, signed } => (bits, signed),
            Self::Bool => (8, false),
            Self::Float { bits } => (bits, true),
        };
        let base = match base {
            Base::Binary => quote!(Binary),
            Base::Octal => quote!(Octal),
            Base::Decimal => quote!(Decimal),
            Base::Hexadecimal => quote!(Hexadecimal),
        };
        let order = if big_endian { quote!(Big) } else { quote!(Little) };
        quote!(#krate::__macro_support::IntegerType {
            bits: #bits,
            signed: #signed,
            base: #krate::__macro_support::Base::#base,
            order: #krate::__macro_support::ByteOrder::#order,
        })
    }

    /// The conversion in a format string.
    fn conversion(self, base: Base) -> String {
        let (bits, signed) = match self {
            Self::Integer { bits, signed } => (bits, signed),
            Self::Bool => return "%d".to_owned(),
            Self::Float { .. } => return "%f".to_owned(),
        };
        let length = match bits {
            8 => "hh",
            16 => "h",
            32 => "",
            _ => "l",
        };
        let (flag, letter) = match base {
            Base::Hexadecimal => ("#", 'x'),
            Base::Octal => ("#", 'o'),
            Base::Binary => ("#", 'b'),
            Base::Decimal if signed => ("", 'd'),
            Base::Decimal => ("", 'u'),
        };
        format!("%{flag}{length}{letter}")
    }
}

impl Kind {
    /// The expression of type `FieldType`.
    fn descriptor(&self, krate: &Ident) -> TokenStream {
        match self {
            Self::Scalar { scalar, base, big_endian, .. } => scalar.descriptor(krate, *base, *big_endian),
            Self::Pointer => U64.descriptor(krate, Base::Hexadecimal, false),
            Self::Duration => quote!(#krate::__macro_support::FieldType::Duration),
            Self::SystemTime => I64.descriptor(krate, Base::Decimal, false),
            Self::Text | Self::Printed | Self::Formatted { .. } | Self::Character => {
                quote!(#krate::__macro_support::FieldType::Text)
            }
            Self::Path => quote!(#krate::__macro_support::FieldType::Path),
            Self::Enum { ident, scalar, labels } => {
                let container = scalar.integer(krate, Base::Decimal, false);
                let ty = primitive(ident);
                let labels = labels.iter().map(|Label { text, value }| {
                    let value = constant("LABEL", &ty, value);
                    quote!(#krate::__macro_support::EnumLabel {
                        name: #text,
                        value: #value as ::core::primitive::i128,
                    })
                });
                quote!(#krate::__macro_support::FieldType::Enum { container: #container, labels: &[#(#labels),*] })
            }
            Self::DerivedEnum(path) => {
                let krate = at(krate, path.span());
                quote_spanned!(path.span()=> <#path as #krate::TraceEnum>::TYPE)
            }
            Self::Optional(kind) => {
                let value = kind.descriptor(krate);
                quote!(#krate::__macro_support::FieldType::Optional { value: &#value })
            }
            Self::Array { scalar, base, len, .. } => {
                let element = scalar.descriptor(krate, *base, false);
                let len = constant("LEN", &quote!(::core::primitive::usize), &quote!(#len));
                quote!(#krate::__macro_support::FieldType::Array { element: &#element, len: #len })
            }
            Self::Sequence { scalar, base, .. } => {
                let element = scalar.descriptor(krate, *base, false);
                quote!(#krate::__macro_support::FieldType::Sequence { element: &#element })
            }
        }
    }

    /// The type of the value.
    fn value_type(&self, krate: &Ident) -> TokenStream {
        let lifetime = call_lifetime();
        match self {
            Self::Scalar { ident, big_endian, .. } => {
                let ty = primitive(ident);
                if *big_endian { quote!(#krate::__macro_support::Be<#ty>) } else { ty }
            }
            Self::Enum { ident, .. } => primitive(ident),
            Self::DerivedEnum(path) => {
                let krate = at(krate, path.span());
                quote_spanned!(path.span()=> <#path as #krate::TraceEnum>::Repr)
            }
            Self::Pointer | Self::Duration => quote!(::core::primitive::u64),
            Self::SystemTime => quote!(::core::primitive::i64),
            Self::Text | Self::Printed | Self::Formatted { .. } | Self::Character => {
                quote!(#krate::__macro_support::Text<#lifetime>)
            }
            Self::Path => quote!(#krate::__macro_support::PathBytes<#lifetime>),
            Self::Optional(kind) => {
                let value = kind.value_type(krate);
                quote!(::core::option::Option<#value>)
            }
            Self::Array { ident, len, .. } => {
                let ty = primitive(ident);
                quote!(#krate::__macro_support::Array<#lifetime, #ty, { #len }>)
            }
            Self::Sequence { ident, .. } => {
                let ty = primitive(ident);
                quote!(#krate::__macro_support::Sequence<#lifetime, #ty>)
            }
        }
    }

    /// The function that converts an `Option` to a value, and its further argument: a conversion, if the value is passed by reference.
    fn optional(&self, krate: &Ident) -> (TokenStream, TokenStream) {
        let value = local("value");
        let of = |ty: &TokenStream, convert: TokenStream| (quote!(optional::<#ty, _>), quote!(, #convert));
        match self {
            Self::Scalar { ident, big_endian: true, .. } => {
                of(&primitive(ident), quote!(|#value| #krate::__macro_support::Be(*#value)))
            }
            Self::Scalar { ident, .. } => of(&primitive(ident), quote!(|#value| *#value)),
            Self::DerivedEnum(path) => of(&quote!(#path), quote!(#krate::TraceEnum::repr)),
            Self::Duration => of(&quote!(::std::time::Duration), quote!(#krate::__macro_support::duration)),
            Self::SystemTime => of(&quote!(::std::time::SystemTime), quote!(#krate::__macro_support::system_time)),
            Self::Formatted { debug, bound } => {
                let format = if *debug { quote!(optional_debug) } else { quote!(optional_display) };
                (format, quote!(, &mut #krate::__macro_support::TextBuffer::<{ #bound }>::new()))
            }
            Self::Path => (quote!(optional_path), quote!()),
            _ => (quote!(optional_text), quote!()),
        }
    }

    /// The conversion in the format string of a field block.
    fn conversion(&self) -> String {
        match self {
            Self::Scalar { scalar, base, .. } => scalar.conversion(*base),
            Self::Enum { scalar, .. } => scalar.conversion(Base::Decimal),
            Self::Duration => U64.conversion(Base::Decimal),
            Self::DerivedEnum(_) | Self::SystemTime => I64.conversion(Base::Decimal),
            Self::Text | Self::Printed | Self::Formatted { .. } | Self::Path => "%s".to_owned(),
            Self::Character => "%c".to_owned(),
            Self::Pointer => "%p".to_owned(),
            Self::Optional(kind) => kind.conversion(),
            Self::Array { scalar, base, .. } | Self::Sequence { scalar, base, .. } => {
                format!("[{}]", scalar.conversion(*base))
            }
        }
    }
}

impl Field {
    /// The constant expression that determines whether the field is present.
    pub(super) fn is_there(&self) -> TokenStream {
        self.condition.as_ref().map_or_else(|| quote!(true), ToTokens::to_token_stream)
    }

    /// The expression of type `FieldDescriptor`.
    pub(super) fn descriptor(&self, krate: &Ident) -> TokenStream {
        let Self { name, doc, kind, .. } = self;
        let ty = kind.descriptor(krate);
        quote!(#krate::__macro_support::FieldDescriptor { name: #name, ty: #ty, doc: #doc })
    }

    /// The type of the value.
    pub(super) fn value_type(&self, krate: &Ident) -> TokenStream {
        self.kind.value_type(krate)
    }

    /// The expression of the value. The user's expression keeps its spans, so that errors point to it; the surrounding code has the span
    /// of the field's name.
    pub(super) fn value(&self, krate: &Ident) -> TokenStream {
        let value = &self.value;
        let krate = &at(krate, self.span);
        let place = self.span.resolved_at(Span::call_site());
        // If a bound on the complete expression is not met, rustc points to the innermost code that does not come from a macro: the value.
        let reference = quote_spanned!(value.span()=> &(#value));
        match &self.kind {
            Kind::Scalar { ident, big_endian, .. } => {
                let scalar = of_type(&primitive(ident), value);
                if *big_endian { quote!(#krate::__macro_support::Be(#scalar)) } else { scalar }
            }
            Kind::Enum { ident, .. } => of_type(&primitive(ident), value),
            Kind::Text => quote_spanned!(place=> #krate::__macro_support::text(#value)),
            Kind::Printed => quote_spanned!(place=> #krate::__macro_support::printed(#reference)),
            Kind::Character => {
                let character = of_type(&primitive(&Ident::new("char", self.span)), value);
                quote!(#krate::__macro_support::text(::core::primitive::char::encode_utf8(#character, &mut [0; 4])))
            }
            Kind::DerivedEnum(path) => {
                let of = at(krate, path.span());
                quote_spanned!(place=> <#path as #of::TraceEnum>::repr(#reference))
            }
            Kind::Duration => quote_spanned!(place=> #krate::__macro_support::duration(#reference)),
            Kind::SystemTime => quote_spanned!(place=> #krate::__macro_support::system_time(#reference)),
            Kind::Formatted { debug, bound } => {
                let format = if *debug { quote!(debug) } else { quote!(display) };
                let buffer = quote!(&mut #krate::__macro_support::TextBuffer::<{ #bound }>::new());
                quote_spanned!(place=> #krate::__macro_support::#format(#reference, #buffer))
            }
            Kind::Optional(kind) => {
                let (function, rest) = kind.optional(krate);
                quote_spanned!(place=> #krate::__macro_support::#function(#reference #rest))
            }
            Kind::Pointer => quote_spanned!(place=> #krate::__macro_support::pointer(#value)),
            Kind::Path => quote_spanned!(place=> #krate::__macro_support::path(#value)),
            Kind::Array { ident, len, .. } => {
                let ty = primitive(ident);
                quote_spanned!(place=> #krate::__macro_support::array::<#ty, { #len }>(#reference))
            }
            Kind::Sequence { ident, .. } => {
                let ty = primitive(ident);
                quote_spanned!(place=> #krate::__macro_support::sequence::<#ty>(#value))
            }
        }
    }

    /// The conversion of this field in the format string of a field block.
    pub(super) fn conversion(&self) -> String {
        self.kind.conversion()
    }
}
