//! Attributes of tracepoints, classes, arguments and fields.

use crate::problems::Problems;
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
    /// Lint levels, `#[deprecated]`, `#[doc(hidden)]`: on the items that a user sees.
    pub(crate) shown: Vec<Attribute>,
    /// The lines of the doc comment: on the items that fire.
    pub(crate) docs: Vec<Attribute>,
    /// The doc comment as text.
    pub(crate) doc: String,
    /// `#[level(…)]`.
    pub(crate) level: Option<Ident>,
}

impl Attributes {
    pub(crate) fn of_tracepoint(attributes: Vec<Attribute>, problems: &mut Problems) -> Self {
        let mut parsed = Self { doc: doc_text(&attributes), ..Self::default() };
        for attribute in attributes {
            let is = |name: &&str| attribute.path().is_ident(name);
            if is(&"cfg") {
                parsed.cfg.push(attribute);
            } else if is(&"level") {
                let level = problems.take(level(&attribute));
                if parsed.level.is_some() {
                    problems.add(Error::new_spanned(attribute, "a tracepoint has one level"));
                }
                parsed.level = level.or(parsed.level);
            } else if is(&"doc") && matches!(attribute.meta, Meta::NameValue(_)) {
                parsed.docs.push(attribute);
            } else if ["doc", "allow", "warn", "deny", "forbid", "deprecated"].iter().any(is) {
                parsed.shown.push(attribute);
            } else if is(&"cfg_attr") {
                problems.add(Error::new_spanned(
                    attribute,
                    "a tracepoint has its attributes always: declare it twice, under `#[cfg(…)]` and `#[cfg(not(…))]`",
                ));
            } else {
                problems.add(Error::new_spanned(
                    attribute,
                    "a tracepoint takes doc comments, `#[level(…)]`, `#[cfg(…)]`, `#[deprecated]` and lint levels only",
                ));
            }
        }
        parsed
    }
}

fn level(attribute: &Attribute) -> Result<Ident> {
    let level: Ident = attribute
        .parse_args()
        .map_err(|error| Error::new(error.span(), "expected a level in parentheses: `#[level(Info)]`"))?;
    if LEVELS.contains(&level.to_string().as_str()) {
        Ok(level)
    } else {
        Err(Error::new(level.span(), format!("`{level}` is no level; the levels are {}", LEVELS.join(", "))))
    }
}

/// The doc comment of a class, a field or an argument, on which nothing else may stand: `what` says which, for the message.
pub(crate) fn only_doc(attributes: &[Attribute], what: &str) -> Result<String> {
    for attribute in attributes {
        if attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr") {
            let message = format!("{what} is there in every build: put the `#[cfg]` on whole tracepoints");
            return Err(Error::new_spanned(attribute, message));
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
