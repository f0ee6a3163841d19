//! The function of a `#[traced]`, with its body inside a span.
//!
//! The span is declared inside the function, where no other item can collide with its names. An item inside a function cannot use the
//! function's generics: so the span's arguments have the types of fields, and the function converts its values to them. The type of an argument
//! determines whether it is a field; the result is a constant there, see `field::argument` of `tracepoint-ring`.

use super::local;
use crate::name;
use crate::traced::{Function, FunctionArgument, Options, SpanField, Value, returned};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Error, Ident, LitStr, Path, Result, ReturnType, Type, parse_quote};

pub(crate) fn traced(options: &Options, function: &Function) -> Result<TokenStream> {
    let Function { attributes, visibility, signature, body } = function;
    let fields = options.choose(signature)?;
    let krate = &options.krate;
    let span = local("span");
    let begin = begin(options, function, &fields)?;
    let is_async = signature.asyncness.is_some();
    let Some(err) = options.err else {
        let body = match &signature.output {
            // In a block of its own: the lints about the placement of items are for the user's code.
            _ if !is_async => quote!({ #body }),
            ReturnType::Type(_, ty) if matches!(**ty, Type::Never(_)) => {
                let body = typed(&parse_quote!(::core::convert::Infallible), body);
                quote!(match #krate::span::FutureExt::traced(async move { #body }, #span).await {})
            }
            _ => {
                let body = typed(&returned(signature), body);
                quote!(#krate::span::FutureExt::traced(async move { #body }, #span).await)
            }
        };
        return Ok(quote!(#(#attributes)* #visibility #signature { #begin #body }));
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
    let ty = returned(signature);
    let body = typed(&ty, body);
    let body = if is_async {
        quote! {
            #krate::span::traced_by(async move { #body }, #span, |#result, #id| #outcome).await
        }
    } else {
        quote! {
            let #result: #ty = #krate::span::once(move || { #body });
            let #id = #span.id();
            #span.end({ let #result = &#result; #outcome });
            #result
        }
    };
    Ok(quote!(#(#attributes)* #visibility #signature { #begin #body }))
}

/// Declares and begins the span. With `err`, also creates the function that records an error.
fn begin(options: &Options, function: &Function, fields: &[SpanField]) -> Result<TokenStream> {
    let Function { attributes, signature, .. } = function;
    let Options { krate, parent, err, .. } = options;
    let [span, failed, id, error] = ["span", "failed", "id", "error"].map(local);
    let (name, place) = match &options.name {
        Some(name) => (identifier(name)?, name.span()),
        None => (signature.ident.clone(), signature.ident.span()),
    };
    name::of_event(&name)?;
    // Type names that differ from the function's name: the user's expressions may refer to a type or module with that name.
    let [ty, event] = ["__tracepoint_span", "__tracepoint_error"].map(|ty| Ident::new(ty, place));
    let keyword = signature.asyncness.map(|_| quote!(async));
    let provider = options.provider.as_ref().map(|provider| quote!(provider = #provider;));
    let level = options.level.as_ref().map(|level| quote!(#[level(#level)]));
    let docs = attributes.iter().filter(|attribute| attribute.path().is_ident("doc"));
    let docs: Vec<_> = docs.filter(|attribute| matches!(attribute.meta, syn::Meta::NameValue(_))).collect();
    let conditions: Vec<_> = (0..).map(|n| format_ident!("__TRACEPOINT_HAS_{n}")).take(fields.len()).collect();
    let constants = fields.iter().zip(&conditions).filter_map(|(field, condition)| constant(krate, field, condition));
    let names: Vec<_> = fields.iter().map(|SpanField { name, .. }| name).collect();
    let types = fields.iter().map(|SpanField { ty, .. }| ty);
    let declared = fields.iter().zip(&conditions).map(|(SpanField { name, kind, value, .. }, condition)| {
        let condition = is_conditional(value).then(|| quote!(#[__tracepoint_if(#condition)]));
        quote!(#condition #name: #kind = #name)
    });
    let values = fields.iter().map(|field| value(krate, field));
    let parent = parent.as_ref().map(|parent| quote!(parent: #parent,));
    // With `err`: an event, the function that fires it, and the binding of that function.
    let recording = err.map(|_| {
        let error_event = format_ident!("{name}_err");
        let declared = quote! {
            #[__tracepoint_name(#error_event)]
            #[level(Err)]
            #event(span_id: u64, error: &dyn ::core::fmt::Display) { span_id: u64 = span_id, error: display = error }
        };
        let fire = quote! {
            |#id: #krate::span::SpanId, #error: &dyn ::core::fmt::Display| {
                #krate::trace!(#event(#id.get(), #error));
            }
        };
        (declared, fire)
    });
    let (recorded, fire) = recording.unzip();
    let failed = err.map(|_| failed);
    Ok(quote! {
        #[allow(clippy::let_unit_value, clippy::used_underscore_binding)]
        let (#span, #failed) = {
            #(#constants)*
            #krate::define_trace! {
                #provider
                #(#docs)*
                #[__tracepoint_name(#name)]
                #level
                #keyword span #ty(#(#names: #types),*) { #(#declared),* }
                #recorded
            }
            (#krate::span!(#parent #ty(#(#values),*)), #fire)
        };
    })
}

/// Returns whether the presence of the field depends on more than the declaration.
fn is_conditional(value: &Value) -> bool {
    matches!(value, Value::Argument(given) if !given.is_named || !given.cfg.is_empty())
}

/// The constant that determines whether an argument is a field.
fn constant(krate: &Path, field: &SpanField, condition: &Ident) -> Option<TokenStream> {
    let SpanField { name, ty: argument, value: Value::Argument(FunctionArgument { ty, cfg, is_named, .. }), .. } =
        field
    else {
        return None;
    };
    let (is_there, is_absent) = cfg_pair(cfg);
    let checked = is_named.then(|| {
        let message =
            format!("the type of the argument `{name}` is not that of a field: write `{name}: type = expression`");
        quote_spanned!(name.span()=> #is_there const _: () = ::core::assert!(#condition, #message);)
    });
    let absent = is_absent.map(|cfg| quote!(#cfg const #condition: ::core::primitive::bool = false;));
    Some(quote! {
        #is_there
        const #condition: ::core::primitive::bool = {
            #[allow(unused_imports)]
            use #krate::__macro_support::NoField as _;
            <#krate::__macro_support::TracedArgument::<'_, #ty, #argument>>::IS_FIELD
        };
        #absent
        #checked
    })
}

/// The value that the function passes.
fn value(krate: &Path, SpanField { ty: argument, value, .. }: &SpanField) -> TokenStream {
    let FunctionArgument { place, cfg, .. } = match value {
        Value::Expression(value) => return value.clone(),
        Value::Argument(given) => given,
    };
    let (is_there, is_absent) = cfg_pair(cfg);
    let value = local("value");
    let absent = is_absent
        .map(|cfg| quote!(#cfg let #value: #argument = <#argument as #krate::__macro_support::Absent>::absent();));
    quote!({
        #[allow(unused_imports)]
        use #krate::__macro_support::NoField as _;
        #is_there
        let #value: #argument = #krate::__macro_support::TracedArgument::<_, #argument>::new(#place).get();
        #absent
        #value
    })
}

/// Two attributes: one is active if the argument is present, the other one if it is not.
fn cfg_pair(cfg: &[TokenStream]) -> (Option<TokenStream>, Option<TokenStream>) {
    let is_conditional = !cfg.is_empty();
    (
        is_conditional.then(|| quote!(#[cfg(all(#(#cfg),*))])),
        is_conditional.then(|| quote!(#[cfg(not(all(#(#cfg),*)))])),
    )
}

/// The body, after a statement that determines its type: `?` in a closure or an `async` block does not.
fn typed(ty: &Type, body: &TokenStream) -> TokenStream {
    let result = local("never");
    quote! {
        #[allow(
            unit_bindings,
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
        { #body }
    }
}

fn identifier(name: &LitStr) -> Result<Ident> {
    let no_identifier = |_| Error::new(name.span(), "the name of a span is an identifier: letters, digits and `_`");
    name.parse_with(Ident::parse_any).map_err(no_identifier)
}
