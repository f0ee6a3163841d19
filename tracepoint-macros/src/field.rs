//! The fields of a marker: `name: type = expression`.

use crate::attributes;
use crate::name;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, Ident, LitStr, Result, Token, braced, bracketed};

/// A scalar type by its name in Rust.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Scalar {
    Integer { bits: u8, signed: bool },
    Bool,
    Float { bits: u8 },
}

/// How an integer is shown.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Base {
    Binary,
    Octal,
    Decimal,
    Hexadecimal,
}

/// One name of an enumeration's value.
#[derive(Clone)]
pub(crate) struct Label {
    text: String,
    value: TokenStream,
}

#[derive(Clone)]
pub(crate) enum Kind {
    /// The identifier of the Rust type, and what it is.
    Scalar {
        ident: Ident,
        scalar: Scalar,
        base: Base,
        big_endian: bool,
    },
    Enum {
        ident: Ident,
        scalar: Scalar,
        labels: Vec<Label>,
    },
    Text,
    /// Text by way of `%s`, which takes more than `&str`.
    Printed,
    /// One character, by way of `%c`.
    Character,
    /// An address, by way of `%p`.
    Pointer,
    Path,
    Array {
        ident: Ident,
        scalar: Scalar,
        base: Base,
        len: Box<Expr>,
    },
    Sequence {
        ident: Ident,
        scalar: Scalar,
        base: Base,
    },
}

#[derive(Clone)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) kind: Kind,
    pub(crate) value: Expr,
}

impl Parse for Field {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let attributes = Attribute::parse_outer(input)?;
        let doc = attributes::only_doc(&attributes, "a field")?;
        // Any word, Rust's keywords included, and those of TSDL, which the metadata keeps apart by an underscore.
        let ident = input.call(Ident::parse_any)?;
        let name = name::of_ident(&ident)?;
        let _: Token![:] = input.parse()?;
        let kind = parse_kind(input)?;
        if !input.peek(Token![=]) {
            return Err(input.error(format!("expected the field's value: `{name}: type = expression`")));
        }
        let _: Token![=] = input.parse()?;
        Ok(Self { name, doc, kind, value: input.parse()? })
    }
}

/// Two fields of one name cannot be told apart by a reader.
pub(crate) fn check_distinct(fields: &[(String, proc_macro2::Span)]) -> Result<()> {
    for (i, (name, span)) in fields.iter().enumerate() {
        if fields[..i].iter().any(|(other, _)| other == name) {
            return Err(Error::new(*span, format!("the field `{name}` stands here twice")));
        }
    }
    Ok(())
}

fn parse_kind(input: ParseStream<'_>) -> Result<Kind> {
    let mut base = None;
    let mut big_endian = false;
    let mut modifier = None;
    loop {
        if !input.peek(Ident) {
            break;
        }
        let word = input.fork().call(Ident::parse_any)?;
        match word.to_string().as_str() {
            "bin" => base = Some(Base::Binary),
            "oct" => base = Some(Base::Octal),
            "dec" => base = Some(Base::Decimal),
            "hex" => base = Some(Base::Hexadecimal),
            "be" => big_endian = true,
            "le" => big_endian = false,
            _ => break,
        }
        let _ = input.call(Ident::parse_any)?;
        modifier = Some(word);
    }
    let start = input.span();
    let kind = if input.peek(syn::token::Bracket) {
        elements(input, base.unwrap_or(Base::Decimal))?
    } else if input.peek(Token![enum]) {
        enumeration(input)?
    } else {
        let ident = input.call(Ident::parse_any).map_err(|_| Error::new(start, EXPECTED_TYPE))?;
        match ident.to_string().as_str() {
            "str" => Kind::Text,
            "path" => Kind::Path,
            _ => Kind::Scalar { scalar: scalar(&ident)?, ident, base: base.unwrap_or(Base::Decimal), big_endian },
        }
    };
    check_modifiers(&kind, base.is_some(), big_endian, modifier.as_ref())?;
    Ok(kind)
}

const EXPECTED_TYPE: &str = "expected a field type: an integer up to 64 bits, `bool`, `f32`, `f64`, `str`, `path`, \
                             `[T; N]`, `[T]` or `enum R { Label = value, … }`";

/// `hex` and the like are for integers, `be` for single ones of more than a byte.
fn check_modifiers(kind: &Kind, has_base: bool, big_endian: bool, modifier: Option<&Ident>) -> Result<()> {
    let Some(modifier) = modifier else { return Ok(()) };
    let (is_integer, is_single) = match kind {
        Kind::Scalar { scalar: Scalar::Integer { .. }, .. } => (true, true),
        Kind::Array { scalar: Scalar::Integer { .. }, .. } | Kind::Sequence { scalar: Scalar::Integer { .. }, .. } => {
            (true, false)
        }
        _ => (false, false),
    };
    if has_base && !is_integer {
        return Err(Error::new(modifier.span(), "a display base is for integers, and arrays of them"));
    }
    if big_endian && !is_single {
        return Err(Error::new(modifier.span(), "a byte order is for single integers"));
    }
    Ok(())
}

/// The scalar type called `ident`.
fn scalar(ident: &Ident) -> Result<Scalar> {
    let integer = |bits, signed| Ok(Scalar::Integer { bits, signed });
    match ident.to_string().as_str() {
        "u8" => integer(8, false),
        "u16" => integer(16, false),
        "u32" => integer(32, false),
        "u64" | "usize" => integer(64, false),
        "i8" => integer(8, true),
        "i16" => integer(16, true),
        "i32" => integer(32, true),
        "i64" | "isize" => integer(64, true),
        "bool" => Ok(Scalar::Bool),
        "f32" => Ok(Scalar::Float { bits: 32 }),
        "f64" => Ok(Scalar::Float { bits: 64 }),
        "u128" | "i128" => Err(Error::new(
            ident.span(),
            "integers end at 64 bits, because CTF readers do: record the halves as two `u64` fields",
        )),
        "char" => Err(Error::new(ident.span(), "record a `char` as `u32`, or as `str`")),
        "String" => Err(Error::new(ident.span(), "text is recorded as `str`")),
        other => Err(Error::new(ident.span(), format!("`{other}` is no field type: {EXPECTED_TYPE}"))),
    }
}

/// `[T]` or `[T; N]`.
fn elements(input: ParseStream<'_>, base: Base) -> Result<Kind> {
    let content;
    bracketed!(content in input);
    let ident = content.call(Ident::parse_any).map_err(|_| content.error("expected the type of an element"))?;
    if matches!(ident.to_string().as_str(), "str" | "path") {
        return Err(Error::new(ident.span(), "the elements of an array are integers, `bool`, `f32` or `f64`"));
    }
    let scalar = scalar(&ident)?;
    if content.is_empty() {
        return Ok(Kind::Sequence { ident, scalar, base });
    }
    let _: Token![;] = content.parse()?;
    let len = Box::new(content.parse()?);
    if !content.is_empty() {
        return Err(content.error("expected `]`"));
    }
    Ok(Kind::Array { ident, scalar, base, len })
}

/// `enum R { Label = value, … }`; a label is a word or a string, its value the one before plus one unless it is given.
fn enumeration(input: ParseStream<'_>) -> Result<Kind> {
    let _: Token![enum] = input.parse()?;
    let ident = input.call(Ident::parse_any)?;
    let scalar = match scalar(&ident)? {
        integer @ Scalar::Integer { .. } => integer,
        _ => return Err(Error::new(ident.span(), "an enumeration is over an integer type")),
    };
    let content;
    let brace = braced!(content in input);
    let mut labels: Vec<Label> = Vec::new();
    let mut seen = Vec::new();
    while !content.is_empty() {
        let (text, span) = if content.peek(LitStr) {
            let text: LitStr = content.parse()?;
            (text.value(), text.span())
        } else {
            let word =
                content.call(Ident::parse_any).map_err(|_| content.error("expected a label: a word or a string"))?;
            (word.unraw().to_string(), word.span())
        };
        if text.contains('\0') {
            return Err(Error::new(span, "a label cannot hold a NUL"));
        }
        if seen.contains(&text) {
            return Err(Error::new(span, format!("the label `{text}` stands here twice")));
        }
        let value = if content.peek(Token![=]) {
            let _: Token![=] = content.parse()?;
            let value: Expr = content.parse()?;
            quote_spanned!(value.span()=> #value)
        } else {
            labels.last().map_or_else(|| quote!(0), |Label { value, .. }| quote!((#value) + 1))
        };
        seen.push(text.clone());
        labels.push(Label { text, value });
        if !content.is_empty() {
            let _: Token![,] = content.parse()?;
        }
    }
    if labels.is_empty() {
        return Err(Error::new(brace.span.join(), "an enumeration has at least one label"));
    }
    Ok(Kind::Enum { ident, scalar, labels })
}

// -- generation ---------------------------------------------------------------------------------------------------------

impl Scalar {
    /// The expression of type `FieldType`.
    fn descriptor(self, krate: &TokenStream, base: Base, big_endian: bool) -> TokenStream {
        match self {
            Self::Integer { .. } => {
                let integer = self.integer(krate, base, big_endian);
                quote!(#krate::private::FieldType::Integer(#integer))
            }
            Self::Bool => quote!(#krate::private::FieldType::Bool),
            Self::Float { bits } => quote!(#krate::private::FieldType::Float { bits: #bits }),
        }
    }

    /// The expression of type `IntegerType`.
    fn integer(self, krate: &TokenStream, base: Base, big_endian: bool) -> TokenStream {
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
        quote!(#krate::private::IntegerType {
            bits: #bits,
            signed: #signed,
            base: #krate::private::Base::#base,
            order: #krate::private::ByteOrder::#order,
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

impl Field {
    /// The expression of type `FieldDescriptor`.
    pub(crate) fn descriptor(&self, krate: &TokenStream) -> TokenStream {
        let Self { name, doc, kind, .. } = self;
        let ty = match kind {
            Kind::Scalar { scalar, base, big_endian, .. } => scalar.descriptor(krate, *base, *big_endian),
            Kind::Pointer => Scalar::Integer { bits: 64, signed: false }.descriptor(krate, Base::Hexadecimal, false),
            Kind::Text | Kind::Printed | Kind::Character => quote!(#krate::private::FieldType::Text),
            Kind::Path => quote!(#krate::private::FieldType::Path),
            Kind::Enum { ident, scalar, labels } => {
                let container = scalar.integer(krate, Base::Decimal, false);
                let labels = labels.iter().map(|Label { text, value }| {
                    quote!(#krate::private::EnumLabel {
                        name: #text,
                        value: { const VALUE: #ident = #value; VALUE as i128 },
                    })
                });
                quote!(#krate::private::FieldType::Enum { container: #container, labels: &[#(#labels),*] })
            }
            Kind::Array { scalar, base, len, .. } => {
                let element = scalar.descriptor(krate, *base, false);
                quote!(#krate::private::FieldType::Array { element: &#element, len: #len })
            }
            Kind::Sequence { scalar, base, .. } => {
                let element = scalar.descriptor(krate, *base, false);
                quote!(#krate::private::FieldType::Sequence { element: &#element })
            }
        };
        quote!(#krate::private::FieldDescriptor { name: #name, ty: #ty, doc: #doc })
    }

    /// The type of the value.
    pub(crate) fn value_type(&self, krate: &TokenStream) -> TokenStream {
        let lifetime = crate::argument::call_lifetime();
        match &self.kind {
            Kind::Scalar { ident, big_endian: true, .. } => quote!(#krate::private::Be<#ident>),
            Kind::Scalar { ident, .. } | Kind::Enum { ident, .. } => quote!(#ident),
            Kind::Pointer => quote!(u64),
            Kind::Text | Kind::Printed | Kind::Character => quote!(#krate::private::Text<#lifetime>),
            Kind::Path => quote!(#krate::private::PathBytes<#lifetime>),
            Kind::Array { ident, len, .. } => quote!(#krate::private::Array<#lifetime, #ident, { #len }>),
            Kind::Sequence { ident, .. } => quote!(#krate::private::Sequence<#lifetime, #ident>),
        }
    }

    /// The expression of the value. The user's expression stands in it as it was written, so that errors point there.
    pub(crate) fn value(&self, krate: &TokenStream) -> TokenStream {
        let value = &self.value;
        match &self.kind {
            Kind::Scalar { ident, big_endian: true, .. } => {
                quote!(#krate::private::Be(#krate::private::scalar::<#ident>(#value)))
            }
            Kind::Scalar { ident, .. } | Kind::Enum { ident, .. } => quote!(#krate::private::scalar::<#ident>(#value)),
            Kind::Text => quote!(#krate::private::text(#value)),
            Kind::Printed => quote!(#krate::private::printed(&#value)),
            Kind::Character => quote!(#krate::private::text(char::encode_utf8(#value, &mut [0; 4]))),
            Kind::Pointer => quote!(#krate::private::pointer(#value)),
            Kind::Path => quote!(#krate::private::path(#value)),
            Kind::Array { ident, len, .. } => quote!(#krate::private::array::<#ident, { #len }>(&#value)),
            Kind::Sequence { ident, .. } => quote!(#krate::private::sequence::<#ident>(#value)),
        }
    }

    /// The conversion that the format string of a field block has for this field.
    pub(crate) fn conversion(&self) -> String {
        match &self.kind {
            Kind::Scalar { scalar, base, .. } => scalar.conversion(*base),
            Kind::Enum { scalar, .. } => scalar.conversion(Base::Decimal),
            Kind::Text | Kind::Printed | Kind::Path => "%s".to_owned(),
            Kind::Character => "%c".to_owned(),
            Kind::Pointer => "%p".to_owned(),
            Kind::Array { scalar, base, .. } | Kind::Sequence { scalar, base, .. } => {
                format!("[{}]", scalar.conversion(*base))
            }
        }
    }
}
