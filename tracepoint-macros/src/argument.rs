//! The arguments of a tracepoint: `name: Type`, by shared reference or by value of a `Copy` type.

use crate::attributes;
use crate::name;
use crate::problems::expect;
use proc_macro2::Span;
use quote::ToTokens;
use syn::parse::{Parse, ParseStream};
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Error, Ident, Lifetime, Result, Token, Type, TypeReference};

/// The lifetime of the arguments of one call, in generated types.
pub(crate) fn call_lifetime() -> Lifetime {
    Lifetime::new("'__tracepoint", Span::call_site())
}

#[derive(Clone)]
pub(crate) struct Argument {
    pub(crate) name: Ident,
    /// The type as written, for function signatures.
    pub(crate) ty: Type,
    /// The type with the call's lifetime in place of every elided one, for use outside of signatures.
    pub(crate) ty_tied: Type,
    /// The type as text, for listings.
    pub(crate) ty_text: String,
}

impl Parse for Argument {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let attributes = Attribute::parse_outer(input)?;
        attributes::only_doc(&attributes, "an argument")?;
        if input.peek(Token![self]) || input.peek(Token![&]) && input.peek2(Token![self]) {
            return Err(input.error("a tracepoint cannot take `self`: pass it as a named argument, `this: &Type`"));
        }
        if !input.peek(Ident) || input.peek(Token![_]) {
            return Err(input.error("expected an argument, `name: Type`; patterns are not allowed here"));
        }
        let ident: Ident = input.parse()?;
        name::of_ident(&ident)?;
        let _: Token![:] = expect(input, ident.span(), "expected an argument's name and its type: `name: Type`")?;
        let ty: Type = input.parse()?;
        let mut check = Check { problem: None };
        check.visit_type_mut(&mut ty.clone());
        if let Some(problem) = check.problem {
            return Err(problem);
        }
        let mut ty_tied = ty.clone();
        NameLifetimes.visit_type_mut(&mut ty_tied);
        Ok(Self { name: ident, ty_text: type_text(&ty), ty, ty_tied })
    }
}

/// Finds parts that are not allowed in an argument's type.
struct Check {
    problem: Option<Error>,
}

impl VisitMut for Check {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        let problem = match ty {
            Type::ImplTrait(_) => Some("an argument cannot be `impl Trait`: name the type, or take `&dyn Trait`"),
            Type::Infer(_) => Some("an argument's type must be written out"),
            Type::Reference(TypeReference { mutability: Some(_), .. }) => {
                Some("an argument cannot be `&mut`, because every probe gets it: pass it by `&`")
            }
            _ => None,
        };
        if let Some(problem) = problem {
            self.problem.get_or_insert_with(|| Error::new_spanned(&*ty, problem));
        }
        // The types inside a function pointer are not restricted.
        if !matches!(ty, Type::FnPtr(_)) {
            visit_mut::visit_type_mut(self, ty);
        }
    }

    fn visit_parenthesized_generic_arguments_mut(&mut self, _: &mut syn::ParenthesizedGenericArguments) {}
}

/// Names elided lifetimes: `&T` and `'_` get the call's lifetime. Function pointers and `Fn(…)` bounds bind their own elided lifetimes,
/// so these stay.
struct NameLifetimes;

impl VisitMut for NameLifetimes {
    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        reference.lifetime.get_or_insert_with(call_lifetime);
        visit_mut::visit_type_reference_mut(self, reference);
    }

    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        if lifetime.ident == "_" {
            *lifetime = call_lifetime();
        }
    }

    fn visit_type_fn_ptr_mut(&mut self, _: &mut syn::TypeFnPtr) {}

    fn visit_parenthesized_generic_arguments_mut(&mut self, _: &mut syn::ParenthesizedGenericArguments) {}
}

/// Formats a type in the usual spelling: the text of a token stream has a space between any two tokens.
fn type_text(ty: &Type) -> String {
    let mut text = ty.to_token_stream().to_string();
    for (spaced, plain) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" < ", "<"),
        (" >", ">"),
        ("& ", "&"),
        (" ;", ";"),
        (" ,", ","),
        ("[ ", "["),
        (" ]", "]"),
        ("( ", "("),
        (" )", ")"),
        (" (", "("),
        ("* const", "*const"),
        ("* mut", "*mut"),
    ] {
        text = text.replace(spaced, plain);
    }
    text
}
