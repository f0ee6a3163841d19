//! Which field expressions run nothing of the program's: taken twice, they give the same and nothing else happens.
//!
//! What is not seen to be one is not one. A wrong answer could be had from a type of the program's that has a built-in type's name; its
//! expression would be evaluated once more where the event cannot be written at once.

use crate::argument::Argument;
use crate::field::{Field, Kind};
use syn::{Expr, ExprCast, ExprGroup, ExprParen, ExprPath, Ident, Type, TypeReference, TypeSlice};

/// Whether a field's value is an argument of a built-in type, or a literal.
pub(crate) fn is(field: &Field, arguments: &[Argument]) -> bool {
    match field.kind {
        Kind::Scalar { .. } => is_number(&field.value, arguments),
        Kind::Text | Kind::Sequence { .. } => argument(&field.value, arguments).is_some_and(is_view),
        _ => false,
    }
}

/// An argument of a scalar type or a literal, perhaps cast to another scalar type.
fn is_number(value: &Expr, arguments: &[Argument]) -> bool {
    match value {
        Expr::Lit(_) => true,
        Expr::Cast(ExprCast { expr, ty, .. }) => is_scalar(ty) && is_number(expr, arguments),
        Expr::Paren(ExprParen { expr, .. }) | Expr::Group(ExprGroup { expr, .. }) => is_number(expr, arguments),
        _ => argument(value, arguments).is_some_and(is_scalar),
    }
}

/// The type of the argument that an expression is, if it is one.
fn argument<'a>(value: &Expr, arguments: &'a [Argument]) -> Option<&'a Type> {
    let Expr::Path(ExprPath { path, .. }) = value else { return None };
    let name = path.get_ident()?;
    arguments.iter().find(|argument| argument.name == *name).map(|argument| &argument.ty)
}

/// `&str`, or a reference to a slice of scalars.
fn is_view(ty: &Type) -> bool {
    let Type::Reference(TypeReference { elem, .. }) = ty else { return false };
    match &**elem {
        Type::Slice(TypeSlice { elem, .. }) => is_scalar(elem),
        elem => named(elem).is_some_and(|name| name == "str"),
    }
}

fn is_scalar(ty: &Type) -> bool {
    const NAMES: [&str; 14] =
        ["i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64", "usize", "bool", "char", "f32", "f64"];
    named(ty).is_some_and(|name| NAMES.iter().any(|scalar| name == scalar))
}

/// The name of a type that is nothing but a name.
fn named(ty: &Type) -> Option<&Ident> {
    let Type::Path(path) = ty else { return None };
    path.path.get_ident()
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    fn answer(ty: &str, field: &Field) -> bool {
        let ty: Type = syn::parse_str(ty).unwrap();
        is(field, &[parse_quote!(a: #ty)])
    }

    #[test]
    fn arguments_and_literals_of_built_in_types_are() {
        assert!(answer("i32", &parse_quote!(f: i32 = a)));
        assert!(answer("i32", &parse_quote!(f: u64 = (a as u64))));
        assert!(answer("Anything", &parse_quote!(f: u8 = 7)));
        assert!(answer("&str", &parse_quote!(f: str = a)));
        assert!(answer("&[u8]", &parse_quote!(f: [u8] = a)));
    }

    #[test]
    fn what_may_run_code_of_the_program_is_not() {
        assert!(!answer("Meters", &parse_quote!(f: i32 = a)));
        assert!(!answer("i32", &parse_quote!(f: i32 = other)));
        assert!(!answer("i32", &parse_quote!(f: i32 = a + 1)));
        assert!(!answer("i32", &parse_quote!(f: i32 = count(a))));
        assert!(!answer("&Thing", &parse_quote!(f: u64 = a.size)));
        assert!(!answer("&Name", &parse_quote!(f: str = a)));
        assert!(!answer("&String", &parse_quote!(f: str = a)));
        assert!(!answer("&[Meters]", &parse_quote!(f: [u64] = a)));
    }
}
