//! The fields of a marker: `name: type = expression`, or `name` alone for an argument of that name and its type.

use crate::argument::Argument;
use crate::attributes;
use crate::name;
use crate::problems::expect;
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, Ident, LitStr, Result, Token, Type, braced, bracketed, parse_quote_spanned};

/// A scalar type.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Scalar {
    Integer { bits: u8, signed: bool },
    Bool,
    Float { bits: u8 },
}

/// The display base of an integer.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Base {
    Binary,
    Octal,
    Decimal,
    Hexadecimal,
}

/// One label of an enumeration.
#[derive(Clone)]
pub(crate) struct Label {
    pub(crate) text: String,
    pub(crate) value: TokenStream,
}

#[derive(Clone)]
pub(crate) enum Kind {
    Scalar {
        /// The identifier of the Rust type.
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
    /// The text of a `%s`, which accepts more types than `&str`.
    Printed,
    /// The character of a `%c`.
    Character,
    /// The address of a `%p`.
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
    /// The span of the name.
    pub(crate) span: Span,
    pub(crate) doc: String,
    pub(crate) kind: Kind,
    pub(crate) value: Expr,
}

/// A field as written: without a type and a value it is an argument.
pub(crate) struct WrittenField {
    ident: Ident,
    name: String,
    doc: String,
    rest: Option<(Kind, Expr)>,
}

impl Parse for WrittenField {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let attributes = Attribute::parse_outer(input)?;
        let doc = attributes::only_doc(&attributes, "a field")?;
        // Any word, including keywords of Rust, and of TSDL, which the metadata prefixes with an underscore.
        let ident = input
            .call(Ident::parse_any)
            .map_err(|error| Error::new(error.span(), "expected a field: `name: type = expression`"))?;
        let name = name::of_ident(&ident)?;
        let missing = |what| format!("expected the field's {what}: `{name}: type = expression`");
        let rest = if input.is_empty() || input.peek(Token![,]) {
            None
        } else {
            let _: Token![:] = expect(input, ident.span(), missing("type"))?;
            let kind = parse_kind(input)?;
            let _: Token![=] = expect(input, ident.span(), missing("value"))?;
            Some((kind, input.parse()?))
        };
        Ok(Self { ident, name, doc, rest })
    }
}

impl WrittenField {
    /// The field, of an event with these arguments.
    pub(crate) fn resolve(self, arguments: &[Argument]) -> Result<Field> {
        let Self { ident, name, doc, rest } = self;
        let (kind, value) = match rest {
            Some(rest) => rest,
            None => of_argument(&ident, arguments)?,
        };
        Ok(Field { name, span: ident.span(), doc, kind, value })
    }
}

/// The type and value of a field that is the argument `ident`.
fn of_argument(ident: &Ident, arguments: &[Argument]) -> Result<(Kind, Expr)> {
    let hint = format!("write `{ident}: type = expression`");
    let Some(Argument { ty, .. }) = arguments.iter().find(|argument| argument.name == *ident) else {
        return Err(Error::new(ident.span(), format!("`{ident}` is no argument of this event: {hint}")));
    };
    let (ty, is_reference) = match ty {
        Type::Reference(reference) => (&*reference.elem, true),
        ty => (ty, false),
    };
    let kind = match ty {
        Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Path") => Kind::Path,
        ty => syn::parse::Parser::parse2(parse_kind, quote!(#ty))
            .map_err(|error| Error::new(ident.span(), format!("{error}; {hint}")))?,
    };
    let value = if is_reference && matches!(kind, Kind::Scalar { .. }) {
        parse_quote_spanned!(ident.span()=> *#ident)
    } else {
        parse_quote_spanned!(ident.span()=> #ident)
    };
    Ok((kind, value))
}

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

fn parse_kind(input: ParseStream<'_>) -> Result<Kind> {
    let modifiers = Modifiers::parse(input)?;
    let start = input.span();
    let kind = if input.peek(syn::token::Bracket) {
        elements(input, &modifiers)?
    } else if input.peek(Token![enum]) {
        enumeration(input)?
    } else {
        let ident = input
            .call(Ident::parse_any)
            .map_err(|_| Error::new(start, format!("expected a field type: {FIELD_TYPES}")))?;
        match ident.to_string().as_str() {
            "str" => Kind::Text,
            "path" => Kind::Path,
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

const FIELD_TYPES: &str = "an integer up to 64 bits, `bool`, `f32`, `f64`, `str`, `path`, `[T; N]`, `[T]` or \
                           `enum R { Label = value, … }`";

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
        "String" => Err(Error::new(ident.span(), "`String` is not a field type: record text as `str`")),
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

/// `enum R { Label = value, … }`. A label is a word or a string; without a value it gets the previous value plus one.
fn enumeration(input: ParseStream<'_>) -> Result<Kind> {
    let _: Token![enum] = input.parse()?;
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
