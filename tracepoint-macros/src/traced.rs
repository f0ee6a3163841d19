//! Parses `#[traced(options)]` and its function, and selects the fields of the span.

mod argument;

use crate::attributes;
use crate::field::plain;
use crate::name;
use crate::problems::Problems;
use argument::Argument;
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    AttrStyle, Attribute, Error, Expr, Ident, LitStr, Path, Result, ReturnType, Signature, Token, Type, Visibility,
    braced, parenthesized, parse_quote, parse_quote_spanned,
};

/// The function.
pub(crate) struct Function {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) signature: Signature,
    pub(crate) body: TokenStream,
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut attributes = Attribute::parse_outer(input)?;
        let visibility = input.parse()?;
        let ahead = input.fork();
        if ahead.parse::<Signature>().is_err() {
            return Err(input.error("`#[traced]` goes on a function, a method or an `async fn`"));
        }
        let signature: Signature = input.parse()?;
        if input.peek(Token![;]) {
            return Err(input.error("there is no body to trace: put `#[traced]` on the implementation"));
        }
        if let Some(word) = signature.constness {
            return Err(Error::new(word.span(), "a `const fn` cannot be traced"));
        }
        let body;
        braced!(body in input);
        // Inner attributes come first in the body; outside they have the same meaning.
        let inside = Attribute::parse_inner(&body)?;
        attributes.extend(inside.into_iter().map(|inner| Attribute { style: AttrStyle::Outer, ..inner }));
        Ok(Self { attributes, visibility, signature, body: body.parse()? })
    }
}

/// A field of the span: an argument of the span, and the expression that the function passes.
pub(crate) struct SpanField {
    pub(crate) name: Ident,
    /// The type of the field, in the syntax of `define_trace!`.
    pub(crate) kind: TokenStream,
    /// The type of the span's argument.
    pub(crate) ty: Type,
    pub(crate) value: Value,
}

/// The value that the function passes to its span.
pub(crate) enum Value {
    Expression(TokenStream),
    /// An argument of the function, which becomes a field if its type allows it.
    Argument(FunctionArgument),
}

/// An argument of the function.
pub(crate) struct FunctionArgument {
    /// The type of the value that `place` refers to.
    pub(crate) ty: TokenStream,
    pub(crate) place: TokenStream,
    /// The `#[cfg(…)]` attributes of the argument: the contents of each pair of parentheses.
    pub(crate) cfg: Vec<TokenStream>,
    /// True if `fields(…)` names it; it must then be a field.
    pub(crate) is_named: bool,
}

/// An entry of `fields(…)`. Without a type and a value it is an argument.
struct FieldEntry {
    name: Ident,
    rest: Option<(TokenStream, Expr)>,
}

impl Parse for FieldEntry {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = input.call(Ident::parse_any)?;
        if !input.peek(Token![:]) {
            return Ok(Self { name, rest: None });
        }
        let _: Token![:] = input.parse()?;
        let mut kind = TokenStream::new();
        while !input.peek(Token![=]) {
            if input.is_empty() || input.peek(Token![,]) {
                return Err(Error::new(
                    name.span(),
                    format!("expected the field's value: `{name}: type = expression`"),
                ));
            }
            kind.extend([input.parse::<proc_macro2::TokenTree>()?]);
        }
        let _: Token![=] = input.parse()?;
        Ok(Self { name, rest: Some((kind, input.parse()?)) })
    }
}

/// The options in the parentheses of `#[traced(…)]`.
pub(crate) struct Options {
    fields: Option<Vec<FieldEntry>>,
    skip: Vec<Ident>,
    pub(crate) err: Option<Span>,
    pub(crate) parent: Option<Expr>,
    pub(crate) name: Option<LitStr>,
    pub(crate) provider: Option<LitStr>,
    pub(crate) level: Option<Ident>,
    pub(crate) krate: Path,
}

const OPTIONS: &str = "the options are `skip(…)`, `fields(…)`, `err`, `parent = …`, `name = \"…\"`, `provider = \"…\"`, \
                       `level = …` and `crate = …`";

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let (fields, skip, krate) = (None, Vec::new(), parse_quote!(::tracepoint));
        let (err, parent, name, provider, level) = (None, None, None, None, None);
        let mut options = Self { fields, skip, err, parent, name, provider, level, krate };
        let mut problems = Problems::default();
        while !input.is_empty() {
            let word = input
                .call(Ident::parse_any)
                .map_err(|error| Error::new(error.span(), format!("expected an option: {OPTIONS}")))?;
            let text = word.to_string();
            match text.as_str() {
                "err" => options.err = Some(word.span()),
                "skip" | "fields" => {
                    let list;
                    parenthesized!(list in input);
                    if text == "skip" {
                        options.skip = Punctuated::<_, Token![,]>::parse_terminated(&list)?.into_iter().collect();
                    } else {
                        options.fields = Some(problems.list(&list));
                    }
                }
                "parent" | "name" | "provider" | "level" | "crate" => {
                    let _: Token![=] = input.parse()?;
                    match text.as_str() {
                        "parent" => options.parent = Some(input.parse()?),
                        "name" => options.name = Some(input.parse()?),
                        "provider" => options.provider = Some(input.parse()?),
                        "level" => options.level = Some(attributes::known_level(input.parse()?)?),
                        _ => options.krate = input.call(Path::parse_mod_style)?,
                    }
                }
                _ => {
                    return Err(Error::new(
                        word.span(),
                        format!("`{word}` is not an option of `#[traced]`; {OPTIONS}"),
                    ));
                }
            }
            if !input.is_empty() {
                let _: Token![,] = input.parse()?;
            }
        }
        if let (Some(_), Some(skipped)) = (&options.fields, options.skip.first()) {
            problems.add(Error::new(skipped.span(), "`fields(…)` lists all fields: nothing has to be skipped"));
        }
        problems.finish(options)
    }
}

impl Options {
    /// Selects the fields of the span of a function.
    pub(crate) fn choose(&self, signature: &Signature) -> Result<Vec<SpanField>> {
        let arguments: Vec<_> = signature.inputs.iter().filter_map(Argument::of).collect();
        let find = |name: &Ident| arguments.iter().find(|argument| argument.name == name);
        let absent = |name: &Ident, hint: &str| {
            Error::new(name.span(), format!("`{name}` is no argument of this function{hint}"))
        };
        let mut problems = Problems::default();
        for name in self.skip.iter().filter(|name| find(name).is_none()) {
            problems.add(absent(name, ""));
        }
        let chosen = match &self.fields {
            None => {
                let kept = arguments
                    .iter()
                    .filter(|argument| !self.skip.contains(argument.name) && name::can_be_of_field(argument.name));
                kept.filter_map(|argument| argument.field(&signature.generics, false)).collect()
            }
            Some(fields) => {
                let chosen = fields.iter().map(|FieldEntry { name, rest }| match (rest, find(name)) {
                    (Some((kind, value)), _) => of_expression(name, kind, value),
                    (None, None) => Err(absent(name, &format!(": write `{name}: type = expression`"))),
                    (None, Some(argument)) => argument.field(&signature.generics, true).ok_or_else(|| {
                        let message = "the type of this argument is not that of a field";
                        Error::new(name.span(), format!("{message}: write `{name}: type = expression`"))
                    }),
                });
                chosen.filter_map(|chosen| problems.take(chosen)).collect()
            }
        };
        problems.finish(chosen)
    }
}

/// The field `name: kind = value`.
fn of_expression(name: &Ident, kind: &TokenStream, value: &Expr) -> Result<SpanField> {
    let mut value = quote!(#value);
    let ty = syn::parse::Parser::parse2(
        |input: ParseStream<'_>| {
            // Skip the words before an integer.
            let mut word = input.fork().call(Ident::parse_any).ok();
            while word
                .as_ref()
                .is_some_and(|word| ["bin", "oct", "dec", "hex", "be", "le"].iter().any(|known| word == known))
            {
                let _ = input.call(Ident::parse_any)?;
                word = input.fork().call(Ident::parse_any).ok();
            }
            if let Some(word) = word.filter(|word| word == "display" || word == "debug") {
                let _: TokenStream = input.parse()?;
                value = quote!(&(#value));
                let bound = if word == "debug" { quote!(Debug) } else { quote!(Display) };
                return Ok(parse_quote_spanned!(name.span()=> &dyn ::core::fmt::#bound));
            }
            if input.peek(Token![enum]) {
                let _: Token![enum] = input.parse()?;
                let ty: Type = input.parse()?;
                let _: TokenStream = input.parse()?;
                return Ok(ty);
            }
            let ty: Type = input.parse()?;
            let span = ty.span();
            Ok(match plain(&ty) {
                Type::Path(path) if path.path.is_ident("str") || path.path.is_ident("String") => {
                    parse_quote_spanned!(span=> &str)
                }
                Type::Path(path) if path.path.is_ident("path") => {
                    value = quote_spanned!(value.span()=> ::core::convert::AsRef::<::std::path::Path>::as_ref(#value));
                    parse_quote_spanned!(span=> &::std::path::Path)
                }
                Type::Slice(_) => parse_quote_spanned!(span=> &#ty),
                _ => ty.clone(),
            })
        },
        kind.clone(),
    )?;
    Ok(SpanField { name: name.clone(), kind: kind.clone(), ty, value: Value::Expression(value) })
}

/// The return type with `impl Trait` replaced, because a binding cannot have such a type.
pub(crate) fn returned(signature: &Signature) -> Type {
    struct Opaque;
    impl syn::visit_mut::VisitMut for Opaque {
        fn visit_type_mut(&mut self, ty: &mut Type) {
            if matches!(ty, Type::ImplTrait(_)) {
                *ty = parse_quote!(_);
            }
            syn::visit_mut::visit_type_mut(self, ty);
        }
    }
    let mut ty = match &signature.output {
        ReturnType::Default => parse_quote!(()),
        ReturnType::Type(_, ty) => (**ty).clone(),
    };
    syn::visit_mut::VisitMut::visit_type_mut(&mut Opaque, &mut ty);
    ty
}
