//! The fields of a marker: `name: type = expression`, or `name` alone for an argument with this name and its type. `ty` parses the types.

mod ty;

use crate::argument::Argument;
use crate::attributes;
use crate::name;
use crate::problems::expect;
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Error, Expr, Ident, Path, Result, Token, Type, parse_quote_spanned};
use ty::parse_kind;

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
    /// An enumeration that derives `TraceEnum`.
    DerivedEnum(Path),
    Text,
    /// Text in a `String` or a pointer to text; also the text of a `%s`.
    Printed,
    /// The output of `Display` or `Debug`, up to a number of bytes.
    Formatted {
        debug: bool,
        bound: Box<Expr>,
    },
    Duration,
    SystemTime,
    /// An `Option`.
    Optional(Box<Self>),
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
    /// The constant that determines whether the field is present; `None` if it always is.
    pub(crate) condition: Option<Ident>,
}

/// A field as written. Without a type and a value it is an argument.
pub(crate) struct WrittenField {
    ident: Ident,
    name: String,
    doc: String,
    condition: Option<Ident>,
    rest: Option<(Kind, Expr)>,
}

impl Parse for WrittenField {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut attributes = Attribute::parse_outer(input)?;
        let condition = attributes::condition(&mut attributes)?;
        let doc = attributes::only_doc(&attributes, "a field")?;
        // Any word is allowed, including keywords of Rust, and of TSDL, which the metadata prefixes with an underscore.
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
        Ok(Self { ident, name, doc, condition, rest })
    }
}

impl WrittenField {
    /// Resolves the field, given the arguments of the event.
    pub(crate) fn resolve(self, arguments: &[Argument]) -> Result<Field> {
        let Self { ident, name, doc, condition, rest } = self;
        let (kind, value) = match rest {
            Some(rest) => rest,
            None => of_argument(&ident, arguments)?,
        };
        Ok(Field { name, span: ident.span(), doc, kind, value, condition })
    }
}

/// The type and value of a field that stands for the argument `ident`.
fn of_argument(ident: &Ident, arguments: &[Argument]) -> Result<(Kind, Expr)> {
    let hint = format!("write `{ident}: type = expression`");
    let Some(Argument { ty, .. }) = arguments.iter().find(|argument| argument.name == *ident) else {
        return Err(Error::new(ident.span(), format!("`{ident}` is no argument of this event: {hint}")));
    };
    let (ty, is_reference) = match plain(ty) {
        Type::Reference(reference) => (&*reference.elem, true),
        ty => (ty, false),
    };
    let kind = syn::parse::Parser::parse2(parse_kind, quote!(#ty))
        .map_err(|error| Error::new(ident.span(), format!("{error}; {hint}")))?;
    let value = if is_reference && kind.is_by_value() {
        parse_quote_spanned!(ident.span()=> *#ident)
    } else {
        parse_quote_spanned!(ident.span()=> #ident)
    };
    Ok((kind, value))
}

/// The type without surrounding parentheses and groups; fragments of macros are groups.
pub(crate) fn plain(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => plain(&group.elem),
        Type::Paren(paren) => plain(&paren.elem),
        ty => ty,
    }
}

impl Kind {
    /// Returns whether the value of a field is passed by value, not by reference.
    fn is_by_value(&self) -> bool {
        !matches!(self, Self::Path | Self::Text | Self::Array { .. } | Self::Sequence { .. })
    }
}
