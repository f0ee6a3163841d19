//! Parses the types of fields: the syntax after the colon.

use super::{Base, Kind, Label, Scalar};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{Error, Expr, Ident, LitStr, Path, Result, Token, braced, bracketed, parenthesized, parse_quote};

/// The default maximum size of `display` and `debug` in bytes, and the size for addresses and ids.
const BOUND: usize = 256;
const ADDRESS_BOUND: usize = 64;

/// The words that may precede an integer type.
#[derive(Default)]
struct Modifiers {
    base: Option<(Base, Ident)>,
    big_endian: Option<Ident>,
}

impl Modifiers {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut modifiers = Self::default();
        while input.peek(Ident) {
            let word = input.fork().call(Ident::parse_any)?;
            match word.to_string().as_str() {
                "bin" => modifiers.base = Some((Base::Binary, word)),
                "oct" => modifiers.base = Some((Base::Octal, word)),
                "dec" => modifiers.base = Some((Base::Decimal, word)),
                "hex" => modifiers.base = Some((Base::Hexadecimal, word)),
                "be" => modifiers.big_endian = Some(word),
                "le" => modifiers.big_endian = None,
                _ => break,
            }
            let _ = input.call(Ident::parse_any)?;
        }
        Ok(modifiers)
    }

    fn base(&self) -> Base {
        self.base.as_ref().map_or(Base::Decimal, |(base, _)| *base)
    }

    /// A display base is allowed on integers and arrays of integers, a byte order only on single integers.
    fn check(&self, kind: &Kind) -> Result<()> {
        let (is_integer, is_single) = match kind {
            Kind::Scalar { scalar, .. } => (scalar.is_integer(), scalar.is_integer()),
            Kind::Array { scalar, .. } | Kind::Sequence { scalar, .. } => (scalar.is_integer(), false),
            _ => (false, false),
        };
        match self {
            Self { base: Some((_, word)), .. } if !is_integer => {
                Err(Error::new(word.span(), "a display base is allowed only on integers and arrays of integers"))
            }
            Self { big_endian: Some(word), .. } if !is_single => {
                Err(Error::new(word.span(), "a byte order is allowed only on single integers"))
            }
            _ => Ok(()),
        }
    }
}

impl Scalar {
    fn is_integer(self) -> bool {
        matches!(self, Self::Integer { .. })
    }
}

pub(super) fn parse_kind(input: ParseStream<'_>) -> Result<Kind> {
    let modifiers = Modifiers::parse(input)?;
    let start = input.span();
    let kind = if input.peek(syn::token::Bracket) {
        elements(input, &modifiers)?
    } else if input.peek(Token![enum]) {
        enumeration(input)?
    } else {
        let ident =
            last_of_path(input).map_err(|_| Error::new(start, format!("expected a field type: {FIELD_TYPES}")))?;
        match ident.to_string().as_str() {
            "str" => Kind::Text,
            "path" | "Path" | "PathBuf" => Kind::Path,
            "String" => Kind::Printed,
            "Cow" | "Arc" | "Rc" | "Box" => pointer_to_text(input, &ident)?,
            word @ ("display" | "debug") => Kind::Formatted { debug: word == "debug", bound: Box::new(bound(input)?) },
            "IpAddr" | "Ipv4Addr" | "Ipv6Addr" | "SocketAddr" | "SocketAddrV4" | "SocketAddrV6" | "Uuid" => {
                Kind::Formatted { debug: false, bound: Box::new(parse_quote!(#ADDRESS_BOUND)) }
            }
            "Duration" => Kind::Duration,
            "SystemTime" => Kind::SystemTime,
            "Option" => optional(input, &ident)?,
            _ => Kind::Scalar {
                scalar: scalar(&ident)?,
                ident,
                base: modifiers.base(),
                big_endian: modifiers.big_endian.is_some(),
            },
        }
    };
    modifiers.check(&kind)?;
    Ok(kind)
}

const FIELD_TYPES: &str = "an integer up to 64 bits, `bool`, `f32`, `f64`, `str`, `path`, `[T; N]`, `[T]`, \
                           `enum R { Label = value, … }`, `enum Type`, `display`, `debug`, `Option<T>`, `Duration`, \
                           `SystemTime`, or a type of the standard library that holds a text, a path or an address";

/// The last word of a path: types of the standard library are recognised by name.
fn last_of_path(input: ParseStream<'_>) -> Result<Ident> {
    let _: Option<Token![::]> = input.parse()?;
    let mut ident = input.call(Ident::parse_any)?;
    while input.peek(Token![::]) {
        let _: Token![::] = input.parse()?;
        ident = input.call(Ident::parse_any)?;
    }
    Ok(ident)
}

/// Parses `<str>` after `Arc`, `Box` or `Rc`, and `<'_, str>` after `Cow`.
fn pointer_to_text(input: ParseStream<'_>, pointer: &Ident) -> Result<Kind> {
    let not_text = || Error::new(pointer.span(), format!("`{pointer}` can be recorded if it holds a `str`"));
    let _: Token![<] = input.parse().map_err(|_| not_text())?;
    if input.peek(syn::Lifetime) {
        let _: syn::Lifetime = input.parse()?;
        let _: Token![,] = input.parse()?;
    }
    let text = input.call(Ident::parse_any)?;
    let _: Token![>] = input.parse().map_err(|_| not_text())?;
    if text == "str" { Ok(Kind::Printed) } else { Err(not_text()) }
}

/// Parses the optional number of bytes after `display` and `debug`.
fn bound(input: ParseStream<'_>) -> Result<Expr> {
    if !input.peek(syn::token::Paren) {
        return Ok(parse_quote!(#BOUND));
    }
    let content;
    parenthesized!(content in input);
    content.parse()
}

/// Parses `<T>` after `Option`.
fn optional(input: ParseStream<'_>, option: &Ident) -> Result<Kind> {
    let missing = |what| Error::new(option.span(), format!("expected {what}: `Option<type>`"));
    let _: Token![<] = input.parse().map_err(|_| missing("`<`"))?;
    // Accept `&str` and `&Path` in the type of an argument.
    if input.peek(Token![&]) {
        let _: Token![&] = input.parse()?;
        let _: Option<syn::Lifetime> = if input.peek(syn::Lifetime) { Some(input.parse()?) } else { None };
    }
    let place = input.span();
    let kind = match parse_kind(input)? {
        Kind::Array { .. } | Kind::Sequence { .. } | Kind::Optional(_) | Kind::Enum { .. } => {
            let reason = "an `Option` holds no array, no `Option`, and no enumeration that is written in place";
            return Err(Error::new(place, reason));
        }
        Kind::Text => Kind::Printed,
        kind => kind,
    };
    let _: Token![>] = input.parse().map_err(|_| missing("`>`"))?;
    Ok(Kind::Optional(Box::new(kind)))
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
            "integers have at most 64 bits, the limit of CTF readers: record the halves as two `u64` fields",
        )),
        "char" => Err(Error::new(ident.span(), "record a `char` as `u32`, or as `str`")),
        other => Err(Error::new(ident.span(), format!("`{other}` is not a field type: expected {FIELD_TYPES}"))),
    }
}

/// `[T]` or `[T; N]`; a base may precede the bracket or `T`.
fn elements(input: ParseStream<'_>, outside: &Modifiers) -> Result<Kind> {
    let content;
    bracketed!(content in input);
    let inside = Modifiers::parse(&content)?;
    let base = if inside.base.is_some() { inside.base() } else { outside.base() };
    let ident = content.call(Ident::parse_any).map_err(|_| content.error("expected the type of an element"))?;
    if matches!(ident.to_string().as_str(), "str" | "path") {
        return Err(Error::new(ident.span(), "the elements of an array are integers, `bool`, `f32` or `f64`"));
    }
    let scalar = scalar(&ident)?;
    let kind = if content.is_empty() {
        Kind::Sequence { ident, scalar, base }
    } else {
        let _: Token![;] = content.parse()?;
        Kind::Array { ident, scalar, base, len: Box::new(content.parse()?) }
    };
    if !content.is_empty() {
        return Err(content.error("expected `]`"));
    }
    inside.check(&kind)?;
    Ok(kind)
}

/// `enum R { Label = value, … }`, or `enum Type`. A label is a word or a string; without a value it gets the previous value plus one.
fn enumeration(input: ParseStream<'_>) -> Result<Kind> {
    let _: Token![enum] = input.parse()?;
    if !input.peek2(syn::token::Brace) {
        return Ok(Kind::DerivedEnum(input.call(Path::parse_mod_style)?));
    }
    let ident = input.call(Ident::parse_any)?;
    let scalar = scalar(&ident)?;
    if !scalar.is_integer() {
        return Err(Error::new(ident.span(), "an enumeration needs an integer type"));
    }
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
            return Err(Error::new(span, format!("the label `{text}` is declared twice")));
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
        return Err(Error::new(brace.span.join(), "an enumeration needs at least one label"));
    }
    Ok(Kind::Enum { ident, scalar, labels })
}
