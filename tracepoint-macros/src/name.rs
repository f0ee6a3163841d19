//! Checks names against the limits of CTF and of LTTng's tools.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::{Error, Ident, LitStr, Result};

/// Maximum length of `provider:event` that LTTng's tools accept, in bytes.
const MAX_FULL_NAME: usize = 255;

/// The text of an identifier, without `r#`. TSDL allows only ASCII.
pub(crate) fn of_ident(ident: &Ident) -> Result<String> {
    let text = ident.unraw().to_string();
    if text.is_ascii() {
        Ok(text)
    } else {
        Err(Error::new(ident.span(), format!("CTF cannot carry the name `{text}`: use ASCII letters, digits and `_`")))
    }
}

/// Returns whether a field of a span can have the name of this argument.
pub(crate) fn can_be_of_field(name: &Ident) -> bool {
    of_ident(name).is_ok_and(|text| !BEGIN_FIELDS.contains(&text.as_str()))
}

/// The fields at the beginning of a span's first event.
pub(crate) const BEGIN_FIELDS: [&str; 2] = ["span_id", "parent_id"];

/// The primitive types. A tracepoint with such a name would shadow the type.
const PRIMITIVES: [&str; 17] = [
    "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "str", "u8", "u16", "u32", "u64", "u128",
    "usize",
];

/// The text of an event's name, if it differs from the name of the type.
pub(crate) fn of_event(name: &Ident) -> Result<String> {
    let text = of_ident(name)
        .map_err(|error| Error::new(name.span(), format!("{error}, or give the span another name: `name = \"…\"`")))?;
    check_length("", &text, name.span())?;
    Ok(text)
}

/// The text of a tracepoint's name.
pub(crate) fn of_tracepoint(name: &Ident) -> Result<String> {
    let text = of_ident(name)?;
    if PRIMITIVES.contains(&text.as_str()) {
        let message = format!("a tracepoint is a type, and this one would shadow the primitive type `{text}`");
        return Err(Error::new(name.span(), message));
    }
    check_length("", &text, name.span())?;
    Ok(text)
}

/// Checks a provider's name.
pub(crate) fn check_provider(provider: &LitStr) -> Result<()> {
    let text = provider.value();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if text.is_empty() || !text.chars().all(plain) {
        return Err(Error::new(
            provider.span(),
            "a provider's name must consist of ASCII letters, digits, `_`, `-` and `.`, and must not be empty",
        ));
    }
    check_length(&text, "", provider.span())
}

/// Checks the length of `provider:event`.
pub(crate) fn check_length(provider: &str, event: &str, span: Span) -> Result<()> {
    if provider.len() + 1 + event.len() > MAX_FULL_NAME {
        return Err(Error::new(span, format!("`provider:event` is longer than {MAX_FULL_NAME} bytes")));
    }
    Ok(())
}
