//! Parses spans, `[async] span name(arguments) { fields }`, and creates the tracepoints of each: `name_begin` and `name_end`, and for an
//! `async span` also the two of the span of a poll, `name_poll`.

use crate::argument::Argument;
use crate::attributes::Attributes;
use crate::field::{Field, WrittenField};
use crate::name;
use crate::problems::{Problems, expect};
use crate::tracepoint::{OfSpan, Prototype, Tracepoint, prototype};
use proc_macro2::{Span as Place, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, Result, Token, Visibility, parse_quote_spanned};

/// A span. Its tracepoints are in the block's list.
pub(crate) struct Span {
    /// The path to the core crate: `$crate`.
    krate: Ident,
    pub(crate) attributes: Attributes,
    pub(crate) visibility: Visibility,
    pub(crate) name: Ident,
    /// The name without `r#`.
    pub(crate) text: String,
    pub(crate) arguments: Vec<Argument>,
    /// The span of a poll, if this is an `async span`.
    pub(crate) poll: Option<Ident>,
}

/// Returns whether a span begins here: `span name` or `async span name`. A tracepoint named `span` is followed by its arguments.
pub(crate) fn is_span(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    let keyword = ahead.parse::<Option<Token![async]>>();
    keyword.is_ok() && ahead.parse::<Ident>().is_ok_and(|word| word == "span") && ahead.peek(Ident)
}

impl Span {
    pub(crate) fn parse(
        input: ParseStream<'_>,
        krate: &Ident,
        attributes: Attributes,
        visibility: Visibility,
        tracepoints: &mut Vec<Tracepoint>,
        problems: &mut Problems,
    ) -> Result<Vec<Self>> {
        let is_async = input.parse::<Option<Token![async]>>()?.is_some();
        let _: Ident = input.parse()?;
        let name: Ident = expect(input, input.span(), "expected the name of the span")?;
        let mut text = problems.take(name::of_tracepoint(&name)).unwrap_or_default();
        if let Some(name) = &attributes.name {
            text = problems.take(name::of_event(name)).unwrap_or_default();
        }
        if input.peek(Token![<]) {
            return Err(input.error("a span cannot be generic"));
        }
        let Prototype { arguments, condition, fields } = prototype(input, &name, problems)?;
        if let Some(condition) = condition {
            problems.add(Error::new_spanned(condition, "a span cannot be conditional: put the condition at its site"));
        }
        let fields = fields.unwrap_or_default();
        for Field { name, span, .. } in fields.iter().filter(|field| name::BEGIN_FIELDS.contains(&field.name.as_str()))
        {
            problems.add(Error::new(*span, format!("every span has a field `{name}`: choose another name")));
        }
        let mut declare = |span: Self, fields| {
            tracepoints.push(span.begin(fields));
            tracepoints.push(span.end());
            span
        };
        let poll = is_async.then(|| format_ident!("{}_poll", name, span = name.span()));
        let polled = poll.clone().map(|name| {
            let (attributes, visibility) = (attributes.clone(), visibility.clone());
            let (text, krate, arguments) = (format!("{text}_poll"), krate.clone(), Vec::new());
            declare(Self { krate, attributes, visibility, name, text, arguments, poll: None }, Vec::new())
        });
        let span = declare(Self { krate: krate.clone(), attributes, visibility, name, text, arguments, poll }, fields);
        Ok(polled.into_iter().chain([span]).collect())
    }

    /// The static of its key.
    pub(crate) fn key(&self) -> Ident {
        format_ident!("__TRACEPOINT_KEY_{}", self.text)
    }

    /// The tracepoint of one end.
    pub(crate) fn tracepoint(&self, end: &str) -> Ident {
        format_ident!("{}_{end}", self.name, span = self.name.span())
    }

    fn begin(&self, fields: Vec<Field>) -> Tracepoint {
        let place = self.name.span();
        let own = |span: &Ident| {
            quote_spanned! {place=>
                span_id: u64 = #span.id().get(),
                parent_id: u64 = #span.parent().get()
            }
        };
        self.end_of("begin", &quote!(Begin), own, fields, &self.arguments)
    }

    fn end(&self) -> Tracepoint {
        let place = self.name.span();
        let own = |span: &Ident| {
            quote_spanned! {place=>
                span_id: u64 = #span.id().get(),
                duration_ns: u64 = #span.duration(),
                outcome: enum u8 { ok = 0, error = 1, panicked = 2, cancelled = 3 } = #span.outcome() as u8
            }
        };
        self.end_of("end", &quote!(End), own, Vec::new(), &[])
    }

    /// The tracepoint of one end. Its first argument, of type `ty`, comes from the core, and so do its first fields.
    fn end_of(
        &self,
        end: &str,
        ty: &TokenStream,
        own: impl FnOnce(&Ident) -> TokenStream,
        fields: Vec<Field>,
        arguments: &[Argument],
    ) -> Tracepoint {
        // Hygienic, so that the user's expressions cannot refer to it.
        let timed = Ident::new("span", Place::mixed_site());
        let written = Punctuated::<WrittenField, Token![,]>::parse_terminated.parse2(own(&timed));
        let own = written.into_iter().flatten().filter_map(|field| field.resolve(&[]).ok());
        let place = self.name.span().resolved_at(Place::call_site());
        let krate = &self.krate;
        let path: syn::Type = parse_quote_spanned!(place=> #krate::span::#ty);
        let span = Argument { name: timed.clone(), ty_tied: path.clone(), ty: path, ty_text: format!("span::{ty}") };
        let name = self.tracepoint(end);
        Tracepoint {
            attributes: self.attributes.clone(),
            visibility: self.visibility.clone(),
            text: format!("{}_{end}", self.text),
            name,
            prototype: Prototype {
                arguments: [span].into_iter().chain(arguments.iter().cloned()).collect(),
                condition: None,
                fields: Some(own.chain(fields).collect()),
            },
            of_span: Some(OfSpan { key: self.key(), timed }),
        }
    }
}
