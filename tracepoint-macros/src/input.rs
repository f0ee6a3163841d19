//! Parses a `define_trace!` block: a provider, tracepoints and classes.

use crate::argument::Argument;
use crate::attributes::{self, Attributes};
use crate::field::{Field, WrittenField};
use crate::name;
use crate::problems::{Problems, expect, skip_declaration};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Error, Expr, Ident, LitStr, Result, Token, Visibility, braced, parenthesized, token};

/// The input of `define_trace!`.
pub(crate) struct Block {
    /// The path to the core crate: `$crate`.
    pub(crate) krate: Ident,
    pub(crate) provider: Option<LitStr>,
    pub(crate) tracepoints: Vec<Tracepoint>,
}

/// One tracepoint. An event of a class has a copy of the class's prototype.
pub(crate) struct Tracepoint {
    pub(crate) attributes: Attributes,
    pub(crate) visibility: Visibility,
    pub(crate) name: Ident,
    /// The name without `r#`.
    pub(crate) text: String,
    pub(crate) prototype: Prototype,
}

/// The part of a declaration that the tracepoints of a class share.
#[derive(Clone, Default)]
pub(crate) struct Prototype {
    pub(crate) arguments: Vec<Argument>,
    pub(crate) condition: Option<Expr>,
    /// `None` for a bare hook.
    pub(crate) fields: Option<Vec<Field>>,
}

/// A class: its name and its prototype.
type Class = (Ident, Prototype);

impl Parse for Block {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let krate = input.call(Ident::parse_any)?;
        let _: Token![,] = input.parse()?;
        let mut problems = Problems::default();
        let provider = match provider(input) {
            Ok(provider) => provider,
            Err(problem) => {
                problems.add(problem);
                skip_declaration(input);
                None
            }
        };
        let mut classes = Vec::new();
        let mut tracepoints = Vec::new();
        while !input.is_empty() {
            if let Err(problem) = declaration(input, &mut classes, &mut tracepoints, &mut problems) {
                problems.add(problem);
                skip_declaration(input);
            }
        }
        check_names(&tracepoints, provider.as_ref(), &mut problems);
        problems.finish(Self { krate, provider, tracepoints })
    }
}

/// `provider = "…";`, if it is there.
pub(crate) fn provider(input: ParseStream<'_>) -> Result<Option<LitStr>> {
    if !is_assignment(input) {
        return Ok(None);
    }
    let word: Ident = input.parse()?;
    if word != "provider" {
        return Err(Error::new(word.span(), "expected `provider = \"…\";`, or a name"));
    }
    let _: Token![=] = input.parse()?;
    let provider: LitStr =
        input.parse().map_err(|error| Error::new(error.span(), "a provider's name is a string literal"))?;
    name::check_provider(&provider)?;
    let _: Token![;] = expect(input, provider.span(), "expected `;` after the provider's name")?;
    Ok(Some(provider))
}

fn is_assignment(input: ParseStream<'_>) -> bool {
    input.peek(Ident) && input.peek2(Token![=])
}

/// A class or a tracepoint.
fn declaration(
    input: ParseStream<'_>,
    classes: &mut Vec<Class>,
    tracepoints: &mut Vec<Tracepoint>,
    problems: &mut Problems,
) -> Result<()> {
    let attributes = Attribute::parse_outer(input)?;
    if is_class(input) {
        problems.take(attributes::only_doc(&attributes, "a class"));
        return class(input, classes, problems);
    }
    if is_assignment(input) {
        return Err(input.error("`provider = \"…\";` may occur only once, at the beginning of the block"));
    }
    let attributes = Attributes::of_tracepoint(attributes, problems);
    tracepoints.push(tracepoint(input, attributes, classes, problems)?);
    Ok(())
}

/// Whether a class begins here: `class name`. A tracepoint called `class` is followed by its arguments.
fn is_class(input: ParseStream<'_>) -> bool {
    input.peek(Ident) && input.peek2(Ident) && input.fork().parse::<Ident>().is_ok_and(|word| word == "class")
}

fn class(input: ParseStream<'_>, classes: &mut Vec<Class>, problems: &mut Problems) -> Result<()> {
    let _: Ident = input.parse()?;
    let name: Ident = input.parse()?;
    if classes.iter().any(|(other, _)| *other == name) {
        problems.add(Error::new(name.span(), format!("the class `{name}` is declared twice")));
    }
    // Declare the class even if it has an error, so that its events do not report that it is missing.
    let index = classes.len();
    classes.push((name.clone(), Prototype::default()));
    let prototype = prototype(input, &name, problems)?;
    if prototype.fields.is_none() {
        return Err(Error::new(
            name.span(),
            format!("a class needs a field block: `class {name}(…) {{ field: type = value }}`"),
        ));
    }
    classes[index].1 = prototype;
    Ok(())
}

fn tracepoint(
    input: ParseStream<'_>,
    attributes: Attributes,
    classes: &[Class],
    problems: &mut Problems,
) -> Result<Tracepoint> {
    let visibility: Visibility = input.parse()?;
    if input.peek(Token![fn]) {
        return Err(input.error("a tracepoint is declared without `fn`: `name(argument: Type);`"));
    }
    let name: Ident = input.parse().map_err(|error| {
        Error::new(error.span(), "expected a tracepoint: `name(argument: Type) { field: type = value }`")
    })?;
    let text = problems.take(name::of_tracepoint(&name)).unwrap_or_default();
    if input.peek(Token![<]) {
        return Err(input.error("a tracepoint cannot be generic"));
    }
    let prototype =
        if input.peek(Token![:]) { of_class(input, classes, problems)? } else { prototype(input, &name, problems)? };
    Ok(Tracepoint { attributes, visibility, name, text, prototype })
}

/// `: class;`
fn of_class(input: ParseStream<'_>, classes: &[Class], problems: &mut Problems) -> Result<Prototype> {
    let _: Token![:] = input.parse()?;
    let class: Ident = input.parse().map_err(|error| Error::new(error.span(), "expected the name of a class"))?;
    let found = classes.iter().find(|(other, _)| *other == class);
    if found.is_none() {
        problems.add(Error::new(class.span(), format!("no class `{class}` is declared above in this block")));
    }
    if input.peek(token::Brace) || input.peek(token::Paren) {
        return Err(input.error("an event of a class has the arguments and fields of the class: expected `;`"));
    }
    let _: Token![;] = expect(input, class.span(), format!("expected `;` after `{class}`"))?;
    Ok(found.map_or_else(Prototype::default, |(_, prototype)| prototype.clone()))
}

/// `(arguments) [if condition] { fields }`, or `;` in place of the fields. `name` is that of the tracepoint or class.
fn prototype(input: ParseStream<'_>, name: &Ident, problems: &mut Problems) -> Result<Prototype> {
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

/// Checks the names of a block against each other.
fn check_names(tracepoints: &[Tracepoint], provider: Option<&LitStr>, problems: &mut Problems) {
    for (i, tracepoint) in tracepoints.iter().enumerate() {
        let Tracepoint { text, name, attributes, .. } = tracepoint;
        // Two tracepoints of one name are allowed under `cfg`s that exclude each other; rustc reports those that do not.
        let clashes = |other: &&Tracepoint| other.attributes.cfg.is_empty() && other.text == *text;
        if attributes.cfg.is_empty() && tracepoints[..i].iter().any(|other| clashes(&other)) {
            problems.add(Error::new(name.span(), format!("the tracepoint `{text}` is declared twice")));
        }
        for (suffix, function) in [("_enabled", format!("trace_{text}")), ("_prio", format!("register_trace_{text}"))] {
            if let Some(other) = text.strip_suffix(suffix) {
                if tracepoints.iter().any(|tracepoint| tracepoint.text == other) {
                    let message = format!("the function `{function}` already belongs to the tracepoint `{other}`");
                    problems.add(Error::new(name.span(), message));
                }
            }
        }
        if let Some(provider) = provider {
            problems.take(name::check_length(&provider.value(), text, name.span()));
        }
    }
}
