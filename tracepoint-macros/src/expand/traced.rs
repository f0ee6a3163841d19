//! The function of a `#[traced]`, whose body is in a span.
//!
//! The span is declared inside the function, where no other item can collide with its names. An item inside a function cannot use the
//! function's generics: the types of the span's arguments are those of fields, and the function passes what it has of them.

use super::local;
use crate::traced::{Chosen, Function, Options, returned};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Error, Ident, LitStr, Result, ReturnType};

pub(crate) fn traced(options: &Options, function: &Function) -> Result<TokenStream> {
    let Function { attributes, visibility, signature, body } = function;
    let fields = options.choose(signature)?;
    let krate = &options.krate;
    let span = local("span");
    let begin = begin(options, function, &fields)?;
    let Some(err) = options.err else {
        let body = if signature.asyncness.is_some() {
            let body = typed(function);
            quote!({ #begin #krate::span::FutureExt::traced(async move { #body }, #span).await })
        } else {
            quote!({ #begin #body })
        };
        return Ok(quote!(#(#attributes)* #visibility #signature #body));
    };
    if matches!(signature.output, ReturnType::Default) {
        return Err(Error::new(err, "`err` is for functions that return a `Result`"));
    }
    let [failed, result, error, id] = ["failed", "result", "error", "id"].map(local);
    let outcome = quote_spanned! {err.resolved_at(Span::mixed_site())=>
        match #result {
            ::core::result::Result::Err(#error) => {
                #failed(#id, #error);
                #krate::span::Outcome::Error
            }
            ::core::result::Result::Ok(_) => #krate::span::Outcome::Ok,
        }
    };
    let body = typed(function);
    let body = if signature.asyncness.is_some() {
        quote! {
            #krate::span::traced_by(async move { #body }, #span, |#result, #id| #outcome).await
        }
    } else {
        let ty = returned(signature);
        quote! {
            let #result: #ty = #krate::span::once(move || { #body });
            let #id = #span.id();
            #span.end({ let #result = &#result; #outcome });
            #result
        }
    };
    Ok(quote!(#(#attributes)* #visibility #signature { #begin #body }))
}

/// Declares and begins the span, and with `err` makes the function that records an error.
fn begin(options: &Options, function: &Function, fields: &[Chosen]) -> Result<TokenStream> {
    let Function { attributes, signature, .. } = function;
    let Options { krate, parent, err, .. } = options;
    let [span, failed, id, error] = ["span", "failed", "id", "error"].map(local);
    let name = match &options.name {
        Some(name) => identifier(name)?,
        None => signature.ident.clone(),
    };
    let keyword = signature.asyncness.map(|_| quote!(async));
    let provider = options.provider.as_ref().map(|provider| quote!(provider = #provider;));
    let level = options.level.as_ref().map(|level| quote!(#[level(#level)]));
    let docs = attributes.iter().filter(|attribute| attribute.path().is_ident("doc"));
    let docs: Vec<_> = docs.filter(|attribute| matches!(attribute.meta, syn::Meta::NameValue(_))).collect();
    let names: Vec<_> = fields.iter().map(|Chosen { name, .. }| name).collect();
    let types = fields.iter().map(|Chosen { ty, .. }| ty);
    let kinds = fields.iter().map(|Chosen { kind, .. }| kind);
    let values = fields.iter().map(|Chosen { value, .. }| value);
    let parent = parent.as_ref().map(|parent| quote!(parent: #parent,));
    // With `err`: an event, what fires it, and the binding of that.
    let recording = err.map(|_| {
        let event = format_ident!("{name}_err");
        let declared = quote! {
            #[level(Err)]
            #event(span_id: u64, error: &dyn ::core::fmt::Display) { span_id, error: display = error }
        };
        let fire = quote! {
            |#id: #krate::span::SpanId, #error: &dyn ::core::fmt::Display| {
                #krate::trace!(#event(#id.get(), #error));
            }
        };
        (declared, fire)
    });
    let (declared, fire) = recording.unzip();
    let failed = err.map(|_| failed);
    Ok(quote! {
        let (#span, #failed) = {
            #krate::define_trace! {
                #provider
                #(#docs)*
                #level
                #keyword span #name(#(#names: #types),*) { #(#names: #kinds = #names),* }
                #declared
            }
            (#krate::span!(#parent #name(#(#values),*)), #fire)
        };
    })
}

/// The body, after a statement that tells its type: `?` in a closure or an `async` block does not.
fn typed(function: &Function) -> TokenStream {
    let Function { signature, body, .. } = function;
    let (ty, result) = (returned(signature), local("never"));
    quote! {
        #[allow(
            unreachable_code,
            clippy::diverging_sub_expression,
            clippy::empty_loop,
            clippy::let_unit_value,
            clippy::let_with_type_underscore,
            clippy::needless_return
        )]
        if false {
            let #result: #ty = loop {};
            return #result;
        }
        #body
    }
}

fn identifier(name: &LitStr) -> Result<Ident> {
    name.parse().map_err(|_| Error::new(name.span(), "the name of a span is an identifier: letters, digits and `_`"))
}
