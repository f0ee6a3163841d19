//! What a user sees of a tracepoint: its type and its functions. The same in both twins.

use crate::input::Tracepoint;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// Lints that the expansion must not raise in a strict crate.
pub(super) fn allows() -> TokenStream {
    quote!(#[allow(
        dead_code,
        non_camel_case_types,
        non_snake_case,
        unreachable_pub,
        unused_variables,
        single_use_lifetimes,
        clippy::all,
        clippy::pedantic,
        clippy::nursery
    )])
}

pub(super) fn functions(krate: &TokenStream, tracepoint: &Tracepoint) -> TokenStream {
    let Tracepoint { attributes, visibility, name, text, prototype } = tracepoint;
    let (cfg, shown) = (&attributes.cfg, &attributes.shown);
    let allows = allows();
    let trace = format_ident!("trace_{}", text, span = name.span());
    let enabled = format_ident!("trace_{}_enabled", text, span = name.span());
    let register = format_ident!("register_trace_{}", text, span = name.span());
    let register_prio = format_ident!("register_trace_{}_prio", text, span = name.span());
    let unregister = format_ident!("unregister_trace_{}", text, span = name.span());
    let names: Vec<_> = prototype.arguments.iter().map(|argument| &argument.name).collect();
    let types: Vec<_> = prototype.arguments.iter().map(|argument| &argument.ty).collect();
    let type_doc =
        format!("The tracepoint `{text}`: the path that `trace!` takes, and the type of its probes' handles.");
    let trace_doc = format!(
        "Fires [`{text}`], if it is on. The arguments are evaluated in any case; `trace!` evaluates them only if it is on."
    );
    let enabled_doc = format!("Whether [`{text}`] is on, for long preparation.");
    let register_doc =
        format!("Connects a probe to [`{text}`] and switches it on. Dropping the handle disconnects the probe.");
    let prio_doc =
        format!("[`{register}`] with a priority: probes with a higher one run earlier (the usual one is 10).");
    let unregister_doc = format!(
        "Disconnects a probe of [`{text}`]. When it returns, outside any probe, the probe is not running and never will again."
    );
    quote! {
        #(#cfg)*
        #(#shown)*
        #[doc = ""]
        #[doc = #type_doc]
        #allows
        #visibility enum #name {}

        #(#cfg)*
        #(#shown)*
        #[doc = ""]
        #[doc = #trace_doc]
        #allows
        #[inline(always)]
        #visibility fn #trace(#(#names: #types),*) {
            if #name::__tracepoint_is_on() {
                #name::__tracepoint_fire(#(#names),*)
            }
        }

        #(#cfg)*
        #[doc = #enabled_doc]
        #allows
        #[inline(always)]
        #[must_use]
        #visibility fn #enabled() -> bool {
            #name::__tracepoint_is_on()
        }

        #(#cfg)*
        #[doc = #register_doc]
        #[doc = ""]
        #[doc = "# Errors"]
        #[doc = ""]
        #[doc = "None at present; the type leaves room."]
        #allows
        #visibility fn #register<F>(probe: F) -> ::core::result::Result<#krate::Probe<#name>, #krate::RegisterError>
        where
            F: ::core::ops::Fn(#(#types),*) + ::core::marker::Send + ::core::marker::Sync + 'static,
        {
            #register_prio(#krate::private::DEFAULT_PRIORITY, probe)
        }

        #(#cfg)*
        #[doc = #prio_doc]
        #[doc = ""]
        #[doc = "# Errors"]
        #[doc = ""]
        #[doc = "None at present; the type leaves room."]
        #allows
        #visibility fn #register_prio<F>(
            priority: i32,
            probe: F,
        ) -> ::core::result::Result<#krate::Probe<#name>, #krate::RegisterError>
        where
            F: ::core::ops::Fn(#(#types),*) + ::core::marker::Send + ::core::marker::Sync + 'static,
        {
            #name::__tracepoint_register(priority, probe)
        }

        #(#cfg)*
        #[doc = #unregister_doc]
        #allows
        #visibility fn #unregister(probe: #krate::Probe<#name>) {
            probe.unregister();
        }
    }
}
