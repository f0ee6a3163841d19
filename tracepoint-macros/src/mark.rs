//! Parses `trace_mark!([provider = "…";] name, "format", arguments…)`.

use crate::field::Field;
use crate::format;
use crate::input;
use crate::name;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Error, Expr, Ident, LitStr, Result, Token};

pub(crate) struct Mark {
    /// The path to the core crate: `$crate`.
    pub(crate) krate: Ident,
    pub(crate) provider: Option<LitStr>,
    pub(crate) name: Ident,
    pub(crate) format: LitStr,
    pub(crate) fields: Vec<Field>,
}

impl Parse for Mark {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let krate = input.call(Ident::parse_any)?;
        let _: Token![,] = input.parse()?;
        let provider = input::provider(input)?;
        let name: Ident = input.parse().map_err(|error| {
            Error::new(error.span(), "expected the marker's name: `trace_mark!(name, \"format\", …)`")
        })?;
        let text = name::of_ident(&name)?;
        let provider_text = provider.as_ref().map(LitStr::value).unwrap_or_default();
        name::check_length(&provider_text, &text, name.span())?;
        if !input.is_empty() && !input.peek(Token![,]) {
            return Err(input.error("expected `,`: a marker's name is one identifier"));
        }
        let missing = "expected a format string: `trace_mark!(name, \"field %d\", argument)`";
        let _: Token![,] = input.parse().map_err(|_| Error::new(name.span(), missing))?;
        let format: LitStr = input.parse().map_err(|error| Error::new(error.span(), missing))?;
        if !input.is_empty() {
            let _: Token![,] = input.parse()?;
        }
        let arguments = Punctuated::<Expr, Token![,]>::parse_terminated(input)?;
        let conversions = format::parse(&format)?;
        if let Some(extra) = arguments.iter().nth(conversions.len()) {
            return Err(Error::new(
                extra.span(),
                format!("this argument has no conversion: the format has {}", counted(conversions.len(), "conversion")),
            ));
        }
        if let Some(without) = conversions.get(arguments.len()) {
            return Err(Error::new(
                format.span(),
                format!(
                    "the conversion of `{}` has no argument: the format has {}, the macro was given {}",
                    without.name,
                    counted(conversions.len(), "conversion"),
                    counted(arguments.len(), "argument")
                ),
            ));
        }
        let fields = conversions
            .into_iter()
            .zip(arguments)
            .map(|(conversion, value)| Field {
                condition: None,
                name: conversion.name,
                span: format.span(),
                doc: String::new(),
                kind: conversion.kind,
                value,
            })
            .collect();
        Ok(Self { krate, provider, name, format, fields })
    }
}

fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
