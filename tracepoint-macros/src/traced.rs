//! Parses `#[traced(options)]` and the function that it is on, and chooses the fields of its span.

use crate::attributes;
use crate::problems::Problems;
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, FnArg, Ident, LitStr, Pat, PatIdent, Path, Result, ReturnType, Signature, Token, Type,
    Visibility, braced, parenthesized, parse_quote, parse_quote_spanned,
};

/// The function.
pub(crate) struct Function {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) signature: Signature,
    pub(crate) body: TokenStream,
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let attributes = Attribute::parse_outer(input)?;
        let visibility = input.parse()?;
        let ahead = input.fork();
        if ahead.parse::<Signature>().is_err() {
            return Err(input.error("`#[traced]` goes on a function, a method or an `async fn`"));
        }
        let signature: Signature = input.parse()?;
        if input.peek(Token![;]) {
            return Err(input.error("there is no body to trace: put `#[traced]` on the implementation"));
        }
        if let Some(word) = signature.constness {
            return Err(Error::new(word.span(), "a `const fn` cannot be traced"));
        }
        let body;
        braced!(body in input);
        Ok(Self { attributes, visibility, signature, body: body.parse()? })
    }
}

/// A field of the span: an argument of the span of the same name, and the expression that the function passes.
pub(crate) struct Chosen {
    pub(crate) name: Ident,
    /// The type of the field, as `define_trace!` takes it.
    pub(crate) kind: TokenStream,
    /// The type of the span's argument.
    pub(crate) ty: Type,
    pub(crate) value: TokenStream,
}

/// An entry of `fields(…)`: without a type and a value it is an argument.
struct Written {
    name: Ident,
    rest: Option<(TokenStream, Expr)>,
}

impl Parse for Written {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = input.call(Ident::parse_any)?;
        if !input.peek(Token![:]) {
            return Ok(Self { name, rest: None });
        }
        let _: Token![:] = input.parse()?;
        let mut kind = TokenStream::new();
        while !input.peek(Token![=]) {
            if input.is_empty() || input.peek(Token![,]) {
                return Err(Error::new(
                    name.span(),
                    format!("expected the field's value: `{name}: type = expression`"),
                ));
            }
            kind.extend([input.parse::<proc_macro2::TokenTree>()?]);
        }
        let _: Token![=] = input.parse()?;
        Ok(Self { name, rest: Some((kind, input.parse()?)) })
    }
}

/// What stands in the parentheses of `#[traced(…)]`.
pub(crate) struct Options {
    fields: Option<Vec<Written>>,
    skip: Vec<Ident>,
    pub(crate) err: Option<Span>,
    pub(crate) parent: Option<Expr>,
    pub(crate) name: Option<LitStr>,
    pub(crate) provider: Option<LitStr>,
    pub(crate) level: Option<Ident>,
    pub(crate) krate: Path,
}

const OPTIONS: &str = "the options are `skip(…)`, `fields(…)`, `err`, `parent = …`, `name = \"…\"`, `provider = \"…\"`, \
                       `level = …` and `crate = …`";

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let (fields, skip, krate) = (None, Vec::new(), parse_quote!(::tracepoint));
        let (err, parent, name, provider, level) = (None, None, None, None, None);
        let mut options = Self { fields, skip, err, parent, name, provider, level, krate };
        let mut problems = Problems::default();
        while !input.is_empty() {
            let word = input
                .call(Ident::parse_any)
                .map_err(|error| Error::new(error.span(), format!("expected an option: {OPTIONS}")))?;
            let text = word.to_string();
            match text.as_str() {
                "err" => options.err = Some(word.span()),
                "skip" | "fields" => {
                    let list;
                    parenthesized!(list in input);
                    if text == "skip" {
                        options.skip = Punctuated::<_, Token![,]>::parse_terminated(&list)?.into_iter().collect();
                    } else {
                        options.fields = Some(problems.list(&list));
                    }
                }
                "parent" | "name" | "provider" | "level" | "crate" => {
                    let _: Token![=] = input.parse()?;
                    match text.as_str() {
                        "parent" => options.parent = Some(input.parse()?),
                        "name" => options.name = Some(input.parse()?),
                        "provider" => options.provider = Some(input.parse()?),
                        "level" => options.level = Some(attributes::known_level(input.parse()?)?),
                        _ => options.krate = input.call(Path::parse_mod_style)?,
                    }
                }
                _ => {
                    return Err(Error::new(
                        word.span(),
                        format!("`{word}` is not an option of `#[traced]`; {OPTIONS}"),
                    ));
                }
            }
            if !input.is_empty() {
                let _: Token![,] = input.parse()?;
            }
        }
        if let (Some(_), Some(skipped)) = (&options.fields, options.skip.first()) {
            problems.add(Error::new(skipped.span(), "`fields(…)` lists all fields: nothing has to be skipped"));
        }
        problems.finish(options)
    }
}

impl Options {
    /// The fields of the span of a function.
    pub(crate) fn choose(&self, signature: &Signature) -> Result<Vec<Chosen>> {
        let arguments: Vec<_> = signature.inputs.iter().filter_map(argument).collect();
        let find = |name: &Ident| arguments.iter().find(|(argument, _)| *argument == name);
        let absent = |name: &Ident, hint: &str| {
            Error::new(name.span(), format!("`{name}` is no argument of this function{hint}"))
        };
        let mut problems = Problems::default();
        for name in self.skip.iter().filter(|name| find(name).is_none()) {
            problems.add(absent(name, ""));
        }
        let chosen = match &self.fields {
            None => {
                let kept = arguments.iter().filter(|(name, _)| !self.skip.contains(name));
                kept.filter_map(|(name, ty)| of_argument(name, ty)).collect()
            }
            Some(fields) => {
                let chosen = fields.iter().map(|Written { name, rest }| match (rest, find(name)) {
                    (Some((kind, value)), _) => of_expression(name, kind, value),
                    (None, None) => Err(absent(name, &format!(": write `{name}: type = expression`"))),
                    (None, Some((_, ty))) => of_argument(name, ty).ok_or_else(|| {
                        let message = "the type of this argument is not that of a field";
                        Error::new(name.span(), format!("{message}: write `{name}: type = expression`"))
                    }),
                });
                chosen.filter_map(|chosen| problems.take(chosen)).collect()
            }
        };
        problems.finish(chosen)
    }
}

/// The name and the type of an argument that has a name.
fn argument(argument: &FnArg) -> Option<(&Ident, &Type)> {
    let FnArg::Typed(typed) = argument else { return None };
    match &*typed.pat {
        Pat::Ident(PatIdent { ident, .. }) => Some((ident, &typed.ty)),
        _ => None,
    }
}

/// The field that is an argument; `None` if its type, as written, is not that of a field.
fn of_argument(name: &Ident, ty: &Type) -> Option<Chosen> {
    let (ty, value, place) = match ty {
        // Whatever it refers to, and without the lifetimes of the function.
        Type::Reference(reference) => (&*reference.elem, quote!(*#name), quote!(&*#name)),
        ty => (ty, quote!(#name), quote!(&#name)),
    };
    let span = ty.span();
    let (kind, argument, value) = match ty {
        Type::Slice(slice) => {
            (quote!(#ty), parse_quote_spanned!(span=> &#ty), is_scalar(&slice.elem).then_some(place)?)
        }
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            let element = match &last.arguments {
                syn::PathArguments::AngleBracketed(generics) => generics.args.first(),
                syn::PathArguments::None => None,
                syn::PathArguments::Parenthesized(_) => return None,
            };
            match (last.ident.to_string().as_str(), element) {
                ("Vec", Some(syn::GenericArgument::Type(element))) if is_scalar(element) => {
                    (quote!([#element]), parse_quote_spanned!(span=> &[#element]), place)
                }
                ("Option", Some(syn::GenericArgument::Type(element))) if is_scalar(element) => {
                    (quote!(Option<#element>), ty.clone(), value)
                }
                (_, Some(_)) => return None,
                (text, _) if VALUES.contains(&text) => (last.ident.to_token_stream(), ty.clone(), value),
                ("str" | "String", _) => (quote!(str), parse_quote_spanned!(span=> &str), place),
                ("Path" | "PathBuf", _) => (quote!(path), parse_quote_spanned!(span=> &::std::path::Path), place),
                _ if is_scalar(ty) => (quote!(#ty), ty.clone(), value),
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(Chosen { name: name.clone(), kind, ty: argument, value })
}

/// Types of fields that are `Copy`.
const VALUES: [&str; 9] =
    ["Duration", "SystemTime", "IpAddr", "Ipv4Addr", "Ipv6Addr", "SocketAddr", "SocketAddrV4", "SocketAddrV6", "Uuid"];

/// Whether a type is written as the name of a scalar that a field can have.
fn is_scalar(ty: &Type) -> bool {
    const SCALARS: [&str; 13] =
        ["u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize", "bool", "f32", "f64"];
    matches!(ty, Type::Path(path) if SCALARS.iter().any(|scalar| path.path.is_ident(scalar)))
}

/// The field `name: kind = value`.
fn of_expression(name: &Ident, kind: &TokenStream, value: &Expr) -> Result<Chosen> {
    let mut value = quote!(#value);
    let ty = syn::parse::Parser::parse2(
        |input: ParseStream<'_>| {
            // The words before an integer.
            let mut word = input.fork().call(Ident::parse_any).ok();
            while word
                .as_ref()
                .is_some_and(|word| ["bin", "oct", "dec", "hex", "be", "le"].iter().any(|known| word == known))
            {
                let _ = input.call(Ident::parse_any)?;
                word = input.fork().call(Ident::parse_any).ok();
            }
            if let Some(word) = word.filter(|word| word == "display" || word == "debug") {
                let _: TokenStream = input.parse()?;
                value = quote!(&(#value));
                let bound = if word == "debug" { quote!(Debug) } else { quote!(Display) };
                return Ok(parse_quote_spanned!(name.span()=> &dyn ::core::fmt::#bound));
            }
            if input.peek(Token![enum]) {
                let _: Token![enum] = input.parse()?;
                let ty: Type = input.parse()?;
                let _: TokenStream = input.parse()?;
                return Ok(ty);
            }
            let ty: Type = input.parse()?;
            let span = ty.span();
            Ok(match &ty {
                Type::Path(path) if path.path.is_ident("str") || path.path.is_ident("String") => {
                    parse_quote_spanned!(span=> &str)
                }
                Type::Path(path) if path.path.is_ident("path") => {
                    value = quote_spanned!(value.span()=> ::core::convert::AsRef::<::std::path::Path>::as_ref(#value));
                    parse_quote_spanned!(span=> &::std::path::Path)
                }
                Type::Slice(_) => parse_quote_spanned!(span=> &#ty),
                _ => ty,
            })
        },
        kind.clone(),
    )?;
    Ok(Chosen { name: name.clone(), kind: kind.clone(), ty, value })
}

/// The return type without `impl Trait`, which a binding cannot have.
pub(crate) fn returned(signature: &Signature) -> Type {
    struct Opaque;
    impl syn::visit_mut::VisitMut for Opaque {
        fn visit_type_mut(&mut self, ty: &mut Type) {
            if matches!(ty, Type::ImplTrait(_)) {
                *ty = parse_quote!(_);
            }
            syn::visit_mut::visit_type_mut(self, ty);
        }
    }
    let mut ty = match &signature.output {
        ReturnType::Default => parse_quote!(()),
        ReturnType::Type(_, ty) => (**ty).clone(),
    };
    syn::visit_mut::VisitMut::visit_type_mut(&mut Opaque, &mut ty);
    ty
}
