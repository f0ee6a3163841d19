//! The public items of a tracepoint: its type and its functions. They are the same with tracing and with tracing compiled out.

use super::arguments::Arguments;
use super::local;
use crate::argument::call_lifetime;
use crate::tracepoint::Tracepoint;
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};

/// Allows the lints that the expansion must not raise in a strict crate. It lists single lints, because a crate that forbids one lint of
/// a group cannot allow the group. The clippy lints concern signatures, which are determined by the declaration.
pub(super) fn allows() -> TokenStream {
    quote!(#[allow(
        dead_code,
        deprecated,
        missing_copy_implementations,
        missing_debug_implementations,
        non_camel_case_types,
        non_snake_case,
        single_use_lifetimes,
        unreachable_pub,
        unused_variables,
        clippy::borrowed_box,
        clippy::duplicate_underscore_argument,
        clippy::exhaustive_enums,
        clippy::fn_params_excessive_bools,
        clippy::inline_always,
        clippy::large_types_passed_by_value,
        clippy::many_single_char_names,
        clippy::missing_const_for_fn,
        clippy::missing_errors_doc,
        clippy::missing_inline_in_public_items,
        clippy::needless_pass_by_value,
        clippy::no_effect_underscore_binding,
        clippy::ptr_arg,
        clippy::redundant_allocation,
        clippy::ref_option,
        clippy::ref_option_ref,
        clippy::similar_names,
        clippy::too_many_arguments,
        clippy::trivially_copy_pass_by_ref,
        clippy::type_complexity,
        clippy::unused_unit
    )])
}

/// The span of the generated parts of a tracepoint: messages about them point to its name, not to the whole block. Lints still see
/// expanded code.
pub(super) fn place(name: &Ident) -> Span {
    name.span().resolved_at(Span::call_site())
}

pub(super) fn functions(krate: &Ident, tracepoint: &Tracepoint) -> TokenStream {
    let Tracepoint { attributes, visibility, name, text, of_span, .. } = tracepoint;
    let (cfg, shown, docs) = (&attributes.cfg, &attributes.shown, &attributes.docs);
    let allows = allows();
    let place = place(&tracepoint.name);
    let trace = format_ident!("trace_{}", text, span = place);
    let enabled = format_ident!("trace_{}_enabled", text, span = place);
    let register = format_ident!("register_trace_{}", text, span = place);
    let register_prio = format_ident!("register_trace_{}_prio", text, span = place);
    let unregister = format_ident!("unregister_trace_{}", text, span = place);
    let Arguments { names, types, .. } = Arguments::of(tracepoint);
    let probe = probe_parameter(tracepoint);
    let link = format!("[`{text}`](enum@{name})");
    let type_doc =
        format!("The tracepoint `{text}`: the path that `trace!` takes, and the type of its probes' handles.");
    let trace_doc = format!(
        "Fires {link} if it is on. The caller evaluates the arguments in any case; `trace!` evaluates them only if it is on."
    );
    let enabled_doc = format!("Whether {link} is on, to guard expensive preparation.");
    let register_doc =
        format!("Connects a probe to {link} and switches it on. Dropping the handle disconnects the probe.");
    let prio_doc = format!(
        "[`{register}`](fn@{register}) with a priority: probes with a higher priority run earlier (the default is 10)."
    );
    let unregister_doc = format!(
        "Disconnects a probe of {link}. Once this returns, if called outside any probe, the probe is not running and never runs again."
    );
    let priority = quote!(priority: ::core::primitive::i32,);
    let registrations = [
        (register, register_doc, None, quote!(#krate::__macro_support::DEFAULT_PRIORITY)),
        (register_prio, prio_doc, Some(priority), quote!(priority)),
    ];
    let registrations = registrations.map(|(register, doc, parameter, priority)| {
        quote_spanned! {place=>
            #(#cfg)*
            #[doc = #doc]
            #[doc = ""]
            #[doc = "# Errors"]
            #[doc = ""]
            #[doc = "If the sites cannot be switched on."]
            #(#shown)*
            #allows
            #visibility fn #register<#probe>(
                #parameter
                probe: #probe,
            ) -> ::core::result::Result<#krate::Probe<#name>, #krate::__macro_support::RegisterError>
            where
                #probe: ::core::ops::Fn(#(#types),*) + ::core::marker::Send + ::core::marker::Sync + 'static,
            {
                #name::__tracepoint_register(#priority, probe)
            }
        }
    });
    // The ends of a span are fired by the span only.
    let fire = of_span.is_none().then(|| {
        quote_spanned! {place=>
            #(#cfg)*
            #(#docs)*
            #[doc = ""]
            #[doc = #trace_doc]
            #(#shown)*
            #allows
            #[inline(always)]
            #visibility fn #trace(#(#names: #types),*) {
                if #name::__tracepoint_is_on() {
                    #name::__tracepoint_fire(#(#names),*)
                }
            }
        }
    });
    quote_spanned! {place=>
        #(#cfg)*
        #(#docs)*
        #[doc = ""]
        #[doc = #type_doc]
        #(#shown)*
        #allows
        #visibility enum #name {}

        #fire

        #(#cfg)*
        #[doc = #enabled_doc]
        #(#shown)*
        #allows
        #[inline(always)]
        #[must_use]
        #visibility fn #enabled() -> ::core::primitive::bool {
            #name::__tracepoint_is_on()
        }

        #(#registrations)*

        #(#cfg)*
        #[doc = #unregister_doc]
        #(#shown)*
        #allows
        #visibility fn #unregister(probe: #krate::Probe<#name>) {
            probe.unregister();
        }
    }
}

/// Called by `span!`, which does not accept events. Empty for an event of a span.
pub(super) fn no_span(krate: &Ident, tracepoint: &Tracepoint) -> TokenStream {
    if tracepoint.of_span.is_some() {
        return TokenStream::new();
    }
    let (name, lifetime, parent) = (&tracepoint.name, call_lifetime(), local("parent"));
    let Arguments { names, types, .. } = Arguments::of(tracepoint);
    // Inlined: a function whose bounds cannot hold has no code, and a shared object that exports its symbol cannot be linked.
    quote_spanned! {place(&tracepoint.name)=>
        #[doc(hidden)]
        #[inline]
        pub fn __tracepoint_begin<#lifetime>(#parent: #krate::span::SpanId, #(#names: #types),*) -> !
        where
            &#lifetime (): #krate::__macro_support::IsSpan<#name>,
        {
            #krate::__macro_support::misused()
        }

        #[doc(hidden)]
        pub fn __tracepoint_off() -> ! {
            #krate::__macro_support::misused()
        }
    }
}

/// The type parameter for a probe: `F`, or the first of `F1`, `F2`, … that neither the tracepoint nor a type of its arguments
/// mentions, because type parameters have no hygiene.
pub(super) fn probe_parameter(tracepoint: &Tracepoint) -> Ident {
    let types = tracepoint.prototype.arguments.iter().map(|argument| argument.ty.to_token_stream());
    let mentioned: TokenStream = types.chain([tracepoint.name.to_token_stream()]).collect();
    let mut parameter = Ident::new("F", place(&tracepoint.name));
    for number in 1.. {
        if !mentions(&mentioned, &parameter) {
            break;
        }
        parameter = format_ident!("F{number}", span = place(&tracepoint.name));
    }
    parameter
}

fn mentions(tokens: &TokenStream, ident: &Ident) -> bool {
    tokens.clone().into_iter().any(|tree| match tree {
        TokenTree::Ident(other) => other == *ident,
        TokenTree::Group(group) => mentions(&group.stream(), ident),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}
