//! Parses a `define_trace!` block: a provider, tracepoints and classes.

use crate::attributes::{self, Attributes};
use crate::name;
use crate::problems::{Problems, expect, skip_declaration};
use crate::span::{self, Span};
use crate::tracepoint::{Prototype, Tracepoint, prototype};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Error, Ident, LitStr, Result, Token, Visibility, token};

/// The input of `define_trace!`.
pub(crate) struct Block {
    /// The path to the core crate: `$crate`.
    pub(crate) krate: Ident,
    pub(crate) provider: Option<LitStr>,
    /// The tracepoints, including those of the spans.
    pub(crate) tracepoints: Vec<Tracepoint>,
    pub(crate) spans: Vec<Span>,
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
        let mut block = Self { krate, provider, tracepoints: Vec::new(), spans: Vec::new() };
        while !input.is_empty() {
            if let Err(problem) = declaration(input, &mut classes, &mut block, &mut problems) {
                problems.add(problem);
                skip_declaration(input);
            }
        }
        check_names(&block, &mut problems);
        problems.finish(block)
    }
}

/// Parses an optional `provider = "…";`.
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

/// A class, a span or a tracepoint.
fn declaration(
    input: ParseStream<'_>,
    classes: &mut Vec<Class>,
    block: &mut Block,
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
    let visibility: Visibility = input.parse()?;
    if span::is_span(input) {
        let Block { krate, tracepoints, spans, .. } = block;
        spans.extend(Span::parse(input, krate, attributes, visibility, tracepoints, problems)?);
    } else {
        block.tracepoints.push(tracepoint(input, attributes, visibility, classes, problems)?);
    }
    Ok(())
}

/// Returns whether a class begins here: `class name`. A tracepoint named `class` is followed by its arguments.
fn is_class(input: ParseStream<'_>) -> bool {
    input.peek(Ident) && input.peek2(Ident) && input.fork().parse::<Ident>().is_ok_and(|word| word == "class")
}

fn class(input: ParseStream<'_>, classes: &mut Vec<Class>, problems: &mut Problems) -> Result<()> {
    let _: Ident = input.parse()?;
    let name: Ident = input.parse()?;
    if classes.iter().any(|(other, _)| *other == name) {
        problems.add(Error::new(name.span(), format!("the class `{name}` is declared twice")));
    }
    // Declare the class even if it has an error, so that its events do not report it as missing.
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
    visibility: Visibility,
    classes: &[Class],
    problems: &mut Problems,
) -> Result<Tracepoint> {
    if input.peek(Token![fn]) {
        return Err(input.error("a tracepoint is declared without `fn`: `name(argument: Type);`"));
    }
    let name: Ident = input.parse().map_err(|error| {
        Error::new(error.span(), "expected a tracepoint: `name(argument: Type) { field: type = value }`")
    })?;
    let mut text = problems.take(name::of_tracepoint(&name)).unwrap_or_default();
    if let Some(name) = &attributes.name {
        text = problems.take(name::of_event(name)).unwrap_or_default();
    }
    if input.peek(Token![<]) {
        return Err(input.error("a tracepoint cannot be generic"));
    }
    let prototype =
        if input.peek(Token![:]) { of_class(input, classes, problems)? } else { prototype(input, &name, problems)? };
    Ok(Tracepoint { attributes, visibility, name, text, prototype, of_span: None })
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

/// Checks the names of a block for conflicts.
fn check_names(Block { provider, tracepoints, spans, .. }: &Block, problems: &mut Problems) {
    for Span { name, text, attributes, .. } in spans {
        let clashes = |other: &Tracepoint| other.attributes.cfg.is_empty() && other.text == *text;
        if attributes.cfg.is_empty() && tracepoints.iter().any(clashes) {
            problems.add(Error::new(
                name.span(),
                format!("there is a tracepoint `{text}`: a span needs a name of its own"),
            ));
        }
    }
    for (i, tracepoint) in tracepoints.iter().enumerate() {
        let Tracepoint { text, name, attributes, .. } = tracepoint;
        // Two tracepoints with the same name are allowed under mutually exclusive `cfg`s; rustc reports an error if both are active.
        let clashes = |other: &&Tracepoint| other.attributes.cfg.is_empty() && other.text == *text;
        if attributes.cfg.is_empty() && tracepoints[..i].iter().any(|other| clashes(&other)) {
            problems.add(Error::new(name.span(), format!("the tracepoint `{text}` is declared twice")));
        }
        for (suffix, function) in [("_enabled", format!("trace_{text}")), ("_prio", format!("register_trace_{text}"))] {
            if let Some(other) = text.strip_suffix(suffix)
                && tracepoints.iter().any(|tracepoint| tracepoint.text == other)
            {
                let message = format!("the function `{function}` already belongs to the tracepoint `{other}`");
                problems.add(Error::new(name.span(), message));
            }
        }
        if let Some(provider) = provider {
            problems.take(name::check_length(&provider.value(), text, name.span()));
        }
    }
}
