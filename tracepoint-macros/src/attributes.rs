//! Attributes of tracepoints, classes, arguments and fields.

use syn::{Attribute, Error, Expr, ExprLit, Ident, Lit, Meta, Result};

/// The names of the levels, as `tracepoint::Level` has them.
const LEVELS: [&str; 15] = [
    "Emerg",
    "Alert",
    "Crit",
    "Err",
    "Warning",
    "Notice",
    "Info",
    "DebugSystem",
    "DebugProgram",
    "DebugProcess",
    "DebugModule",
    "DebugUnit",
    "DebugFunction",
    "DebugLine",
    "Debug",
];

/// What stands above a tracepoint.
#[derive(Default)]
pub(crate) struct Attributes {
    /// `#[cfg(…)]`: on every generated item.
    pub(crate) cfg: Vec<Attribute>,
    /// Doc comments, lint levels, `#[deprecated]`: on the items that a user sees.
    pub(crate) shown: Vec<Attribute>,
    /// The doc comment as text.
    pub(crate) doc: String,
    /// `#[level(…)]`.
    pub(crate) level: Option<Ident>,
}

impl Attributes {
    pub(crate) fn of_tracepoint(attributes: Vec<Attribute>) -> Result<Self> {
        let mut parsed = Self { doc: doc_text(&attributes), ..Self::default() };
        for attribute in attributes {
            let path = attribute.path();
            if path.is_ident("cfg") {
                parsed.cfg.push(attribute);
            } else if path.is_ident("level") {
                let level: Ident = attribute.parse_args()?;
                if !LEVELS.contains(&level.to_string().as_str()) {
                    return Err(Error::new(
                        level.span(),
                        format!("`{level}` is no level; the levels are {}", LEVELS.join(", ")),
                    ));
                }
                if parsed.level.replace(level).is_some() {
                    return Err(Error::new_spanned(attribute, "a tracepoint has one level"));
                }
            } else if ["doc", "allow", "warn", "deny", "forbid", "expect", "deprecated"]
                .iter()
                .any(|known| path.is_ident(known))
            {
                parsed.shown.push(attribute);
            } else {
                return Err(Error::new_spanned(
                    attribute,
                    "a tracepoint takes doc comments, `#[level(…)]`, `#[cfg(…)]`, `#[deprecated]` and lint levels only",
                ));
            }
        }
        Ok(parsed)
    }
}

/// The doc comment of a field or an argument, on which nothing else may stand: `what` says which, for the message.
pub(crate) fn only_doc(attributes: &[Attribute], what: &str) -> Result<String> {
    for attribute in attributes {
        if attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr") {
            return Err(Error::new_spanned(
                attribute,
                format!(
                    "{what} cannot be switched by `cfg`: its tracepoint would change its type; put the `#[cfg]` on the tracepoint"
                ),
            ));
        }
        if !attribute.path().is_ident("doc") {
            return Err(Error::new_spanned(attribute, format!("{what} takes doc comments only")));
        }
    }
    Ok(doc_text(attributes))
}

/// The lines of the doc comments, without the space that usually begins them.
fn doc_text(attributes: &[Attribute]) -> String {
    let mut lines = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        if let Meta::NameValue(meta) = &attribute.meta {
            if let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &meta.value {
                let text = text.value();
                lines.push(text.strip_prefix(' ').unwrap_or(&text).trim_end().to_owned());
            }
        }
    }
    lines.join("\n").trim().to_owned()
}
