//! A tracepoint, and its prototype: arguments, condition, fields.

use crate::argument::Argument;
use crate::attributes::Attributes;
use crate::field::{Field, WrittenField};
use crate::problems::{Problems, expect};
use syn::parse::ParseStream;
use syn::{Error, Expr, Ident, Result, Token, Visibility, braced, parenthesized, token};

/// A tracepoint. An event of a class has a copy of the class's prototype.
pub(crate) struct Tracepoint {
    pub(crate) attributes: Attributes,
    pub(crate) visibility: Visibility,
    pub(crate) name: Ident,
    /// The name without `r#`.
    pub(crate) text: String,
    pub(crate) prototype: Prototype,
    /// Set if it is one end of a span.
    pub(crate) of_span: Option<OfSpan>,
}

/// The part of a declaration that the tracepoints of a class share.
#[derive(Clone, Default)]
pub(crate) struct Prototype {
    pub(crate) arguments: Vec<Argument>,
    pub(crate) condition: Option<Expr>,
    /// `None` for a bare hook.
    pub(crate) fields: Option<Vec<Field>>,
}

/// Additional data of a tracepoint that is one end of a span.
pub(crate) struct OfSpan {
    /// The static of the key that both share.
    pub(crate) key: Ident,
    /// The argument with the time of the event.
    pub(crate) timed: Ident,
}

/// Parses `(arguments) [if condition] { fields }`, or `;` in place of the fields. `name` is the name of the tracepoint, class or span.
pub(crate) fn prototype(input: ParseStream<'_>, name: &Ident, problems: &mut Problems) -> Result<Prototype> {
    if !input.peek(token::Paren) {
        return Err(Error::new(name.span(), format!("expected arguments in parentheses after `{name}`")));
    }
    let arguments = arguments(input, problems)?;
    if input.peek(Token![->]) {
        return Err(input.error("a tracepoint has no return type"));
    }
    let condition = if input.peek(Token![if]) { Some(condition(input)?) } else { None };
    let fields = if input.peek(token::Brace) {
        Some(fields(input, &arguments, problems)?)
    } else {
        let message = format!("expected `;`, `if condition` or a field block in braces after `{name}(…)`");
        let _: Token![;] = expect(input, name.span(), message)?;
        None
    };
    Ok(Prototype { arguments, condition, fields })
}

fn condition(input: ParseStream<'_>) -> Result<Expr> {
    let _: Token![if] = input.parse()?;
    if input.peek(Token![let]) {
        return Err(input.error("a condition cannot be `if let`: write `if matches!(value, pattern)`"));
    }
    Expr::parse_without_eager_brace(input)
}

fn arguments(input: ParseStream<'_>, problems: &mut Problems) -> Result<Vec<Argument>> {
    let content;
    parenthesized!(content in input);
    let arguments: Vec<Argument> = problems.list(&content);
    for (i, Argument { name, .. }) in arguments.iter().enumerate() {
        if arguments[..i].iter().any(|other| other.name == *name) {
            problems.add(Error::new(name.span(), format!("the argument `{name}` is declared twice")));
        }
    }
    Ok(arguments)
}

fn fields(input: ParseStream<'_>, arguments: &[Argument], problems: &mut Problems) -> Result<Vec<Field>> {
    let content;
    braced!(content in input);
    let written: Vec<WrittenField> = problems.list(&content);
    let fields: Vec<_> = written.into_iter().filter_map(|field| problems.take(field.resolve(arguments))).collect();
    for (i, Field { name, span, .. }) in fields.iter().enumerate() {
        // Readers find fields by name.
        if fields[..i].iter().any(|other| other.name == *name) {
            problems.add(Error::new(*span, format!("the field `{name}` is declared twice")));
        }
    }
    Ok(fields)
}
