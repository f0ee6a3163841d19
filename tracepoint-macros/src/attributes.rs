//! Attributes of tracepoints, classes, arguments and fields.

use crate::problems::Problems;
use syn::ext::IdentExt;
use syn::{Attribute, Error, Expr, ExprLit, Ident, Lit, Meta, Result};

/// The names of the levels in `tracepoint::Level`.
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

/// The attributes of a tracepoint.
#[derive(Clone, Default)]
pub(crate) struct Attributes {
    /// `#[cfg(…)]`: copied to every generated item.
    pub(crate) cfg: Vec<Attribute>,
    /// Lint levels, `#[deprecated]`, `#[doc(hidden)]`: copied to the public items.
    pub(crate) shown: Vec<Attribute>,
    /// The lines of the doc comment: copied to the type and to the function that fires.
    pub(crate) docs: Vec<Attribute>,
    /// The doc comment as text.
    pub(crate) doc: String,
    /// `#[level(…)]`.
    pub(crate) level: Option<Ident>,
    /// The name of the event, if it differs from the name of the type: `#[__tracepoint_name(…)]`, which only `#[traced]` writes.
    pub(crate) name: Option<Ident>,
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
                    problems.add(Error::new_spanned(attribute, "a tracepoint has only one level"));
                }
                parsed.level = level.or(parsed.level);
            } else if is(&"__tracepoint_name") {
                parsed.name = problems.take(attribute.parse_args_with(Ident::parse_any));
            } else if is(&"doc") && matches!(attribute.meta, Meta::NameValue(_)) {
                parsed.docs.push(attribute);
            } else if ["doc", "allow", "warn", "deny", "forbid", "deprecated"].iter().any(is) {
                parsed.shown.push(attribute);
            } else if is(&"cfg_attr") {
                problems.add(Error::new_spanned(
                    attribute,
                    "`#[cfg_attr]` is not supported here: declare the tracepoint twice, under `#[cfg(…)]` and `#[cfg(not(…))]`",
                ));
            } else {
                problems.add(Error::new_spanned(
                    attribute,
                    "a tracepoint takes only doc comments, `#[level(…)]`, `#[cfg(…)]`, `#[deprecated]` and lint levels",
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
    known_level(level)
}

/// Checks the name of a level.
pub(crate) fn known_level(level: Ident) -> Result<Ident> {
    if LEVELS.contains(&level.to_string().as_str()) {
        Ok(level)
    } else {
        Err(Error::new(level.span(), format!("`{level}` is not a level; the levels are {}", LEVELS.join(", "))))
    }
}

/// Takes the constant that determines whether a field is present: `#[__tracepoint_if(…)]`, which only `#[traced]` writes.
pub(crate) fn condition(attributes: &mut Vec<Attribute>) -> Result<Option<Ident>> {
    let is_condition = |attribute: &Attribute| attribute.path().is_ident("__tracepoint_if");
    let condition = attributes.iter().find(|attribute| is_condition(attribute)).map(Attribute::parse_args).transpose();
    attributes.retain(|attribute| !is_condition(attribute));
    condition
}

/// The doc comment of a class, a field or an argument, which accept no other attribute; `what` names the item in messages.
pub(crate) fn only_doc(attributes: &[Attribute], what: &str) -> Result<String> {
    for attribute in attributes {
        if attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr") {
            let message = format!("{what} cannot be conditional: put the `#[cfg]` on whole tracepoints");
            return Err(Error::new_spanned(attribute, message));
        }
        if !attribute.path().is_ident("doc") {
            return Err(Error::new_spanned(attribute, format!("{what} takes only doc comments")));
        }
    }
    Ok(doc_text(attributes))
}

/// The lines of the doc comments, each without its leading space.
fn doc_text(attributes: &[Attribute]) -> String {
    let mut lines = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        if let Meta::NameValue(meta) = &attribute.meta {
            let mut value = &meta.value;
            // The expression is a fragment of a macro.
            while let Expr::Group(group) = value {
                value = &group.expr;
            }
            if let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = value {
                let text = text.value();
                lines.push(text.strip_prefix(' ').unwrap_or(&text).trim_end().to_owned());
            }
        }
    }
    lines.join("\n").trim().to_owned()
}
