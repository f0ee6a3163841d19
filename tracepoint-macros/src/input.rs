//! A `define_trace!` block: a provider, tracepoints and classes.

use crate::argument::Argument;
use crate::attributes::Attributes;
use crate::field::{self, Field};
use crate::name;
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Expr, Ident, LitStr, Result, Token, Visibility, braced, parenthesized, token};

/// What `define_trace!` was given.
pub(crate) struct Block {
    /// The path to the core crate.
    pub(crate) krate: TokenStream,
    pub(crate) provider: Option<LitStr>,
    pub(crate) tracepoints: Vec<Tracepoint>,
}

/// One tracepoint, its class resolved.
pub(crate) struct Tracepoint {
    pub(crate) attributes: Attributes,
    pub(crate) visibility: Visibility,
    pub(crate) name: Ident,
    /// The name without `r#`.
    pub(crate) text: String,
    pub(crate) prototype: Prototype,
}

/// What a class gives to its tracepoints.
#[derive(Clone)]
pub(crate) struct Prototype {
    pub(crate) arguments: Vec<Argument>,
    pub(crate) condition: Option<Expr>,
    /// `None` for a bare hook.
    pub(crate) fields: Option<Vec<Field>>,
}

impl Parse for Block {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let krate = input.call(Ident::parse_any)?;
        let _: Token![,] = input.parse()?;
        let provider = provider(input)?;
        let mut classes: Vec<(Ident, Prototype)> = Vec::new();
        let mut tracepoints: Vec<Tracepoint> = Vec::new();
        while !input.is_empty() {
            let attributes = Attribute::parse_outer(input)?;
            if is_class(input) {
                if let Some(attribute) = attributes.iter().find(|attribute| !attribute.path().is_ident("doc")) {
                    return Err(Error::new_spanned(
                        attribute,
                        "a class takes doc comments only: its events have attributes",
                    ));
                }
                let _: Ident = input.parse()?;
                let name: Ident = input.parse()?;
                if classes.iter().any(|(other, _)| *other == name) {
                    return Err(Error::new(name.span(), format!("the class `{name}` stands here twice")));
                }
                let prototype = prototype(input, Some(&name))?;
                classes.push((name, prototype));
                continue;
            }
            if input.peek(Ident) && input.peek2(Token![=]) {
                return Err(input.error("`provider = \"…\";` stands once, at the beginning of the block"));
            }
            tracepoints.push(tracepoint(input, attributes, &classes)?);
        }
        for (i, tracepoint) in tracepoints.iter().enumerate() {
            // Two with `cfg`s that exclude each other are fine; rustc finds those that do not.
            let without_cfg = |other: &&Tracepoint| other.attributes.cfg.is_empty() && other.text == tracepoint.text;
            if tracepoint.attributes.cfg.is_empty() && tracepoints[..i].iter().any(|other| without_cfg(&other)) {
                return Err(Error::new(
                    tracepoint.name.span(),
                    format!("the tracepoint `{}` stands here twice", tracepoint.text),
                ));
            }
            if let Some(provider) = &provider {
                name::check_length(&provider.value(), &tracepoint.text, tracepoint.name.span())?;
            }
        }
        Ok(Self { krate: quote!(#krate), provider, tracepoints })
    }
}

fn provider(input: ParseStream<'_>) -> Result<Option<LitStr>> {
    if !(input.peek(Ident) && input.peek2(Token![=])) {
        return Ok(None);
    }
    let word: Ident = input.parse()?;
    if word != "provider" {
        return Err(Error::new(word.span(), "expected `provider = \"…\";`, or a tracepoint"));
    }
    let _: Token![=] = input.parse()?;
    let provider: LitStr =
        input.parse().map_err(|error| Error::new(error.span(), "a provider's name is a string literal"))?;
    name::check_provider(&provider)?;
    let _: Token![;] = input.parse()?;
    Ok(Some(provider))
}

/// `class name`: two words. A tracepoint that is called `class` is followed by its arguments.
fn is_class(input: ParseStream<'_>) -> bool {
    input.peek(Ident) && input.peek2(Ident) && input.fork().parse::<Ident>().is_ok_and(|word| word == "class")
}

fn tracepoint(
    input: ParseStream<'_>,
    attributes: Vec<Attribute>,
    classes: &[(Ident, Prototype)],
) -> Result<Tracepoint> {
    let attributes = Attributes::of_tracepoint(attributes)?;
    let visibility: Visibility = input.parse()?;
    if input.peek(Token![fn]) {
        return Err(input.error("a tracepoint is declared without `fn`: `name(argument: Type);`"));
    }
    let name: Ident = input.parse().map_err(|error| {
        Error::new(error.span(), "expected a tracepoint: `name(argument: Type) { field: type = value }`")
    })?;
    let text = name::of_ident(&name)?;
    name::check_length("", &text, name.span())?;
    if input.peek(Token![<]) {
        return Err(input.error("a tracepoint has one signature: it cannot be generic"));
    }
    let prototype = if input.peek(Token![:]) {
        let _: Token![:] = input.parse()?;
        let class: Ident = input.parse()?;
        let found = classes.iter().find(|(other, _)| *other == class);
        let Some((_, prototype)) = found else {
            return Err(Error::new(class.span(), format!("no class `{class}` stands above in this block")));
        };
        if input.peek(token::Brace) || input.peek(token::Paren) {
            return Err(input.error("arguments and fields of this event are those of its class: expected `;`"));
        }
        semicolon(input, &name)?;
        prototype.clone()
    } else {
        prototype(input, None)?
    };
    Ok(Tracepoint { attributes, visibility, name, text, prototype })
}

fn semicolon(input: ParseStream<'_>, after: &Ident) -> Result<()> {
    if input.is_empty() {
        return Err(Error::new(after.span(), format!("expected `;` after `{after}`")));
    }
    input.parse::<Token![;]>().map(|_| ())
}

/// `(arguments) [if condition] { fields }`, or `;` in place of the fields unless it is a class.
fn prototype(input: ParseStream<'_>, class: Option<&Ident>) -> Result<Prototype> {
    if !input.peek(token::Paren) {
        return Err(input.error("expected the arguments in parentheses"));
    }
    let content;
    parenthesized!(content in input);
    let arguments: Vec<Argument> = Punctuated::<Argument, Token![,]>::parse_terminated(&content)?.into_iter().collect();
    let names: Vec<(String, Span)> = arguments.iter().map(|a| (a.name.to_string(), a.name.span())).collect();
    for (i, (name, span)) in names.iter().enumerate() {
        if names[..i].iter().any(|(other, _)| other == name) {
            return Err(Error::new(*span, format!("the argument `{name}` stands here twice")));
        }
    }
    if input.peek(Token![->]) {
        return Err(input.error("a tracepoint returns nothing"));
    }
    let condition = if input.peek(Token![if]) {
        let _: Token![if] = input.parse()?;
        Some(Expr::parse_without_eager_brace(input)?)
    } else {
        None
    };
    let fields = if input.peek(token::Brace) {
        Some(fields(input)?)
    } else if class.is_some() {
        return Err(input.error("a class has a field block: expected `{`"));
    } else {
        if !input.peek(Token![;]) {
            return Err(input.error("expected `;`, `if condition`, or a field block in braces"));
        }
        let _: Token![;] = input.parse()?;
        None
    };
    Ok(Prototype { arguments, condition, fields })
}

fn fields(input: ParseStream<'_>) -> Result<Vec<Field>> {
    let content;
    braced!(content in input);
    let mut fields: Vec<Field> = Vec::new();
    let mut names = Vec::new();
    while !content.is_empty() {
        let span = content.span();
        let field: Field = content.parse()?;
        names.push((field.name.clone(), span));
        fields.push(field);
        if !content.is_empty() {
            let _: Token![,] = content.parse()?;
        }
    }
    field::check_distinct(&names)?;
    Ok(fields)
}
