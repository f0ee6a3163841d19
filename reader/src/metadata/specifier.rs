//! Type specifiers (`integer {…}`, `struct {…}`, `enum : u8 {…}`, names of types …) and the declarations of named types.

use super::declarations::MAX_DEPTH;
use super::scalar::{alignment, attributes, float, integer};
use super::tokens::{
    Input, Parsed, at, at_keyword, eat, expect, expect_name, found, keyword, mark, number, parse_error, path, shorten,
    signed_number, text, word,
};
use super::types::{ArrayType, EnumType, Field, Length, Mapping, Reference, StructType, Type, VariantType};
use std::sync::Arc;
use winnow::combinator::{alt, opt, preceded, repeat, separated};
use winnow::prelude::*;

/// Maximum number of labels of an enumeration, which are searched one by one.
const MAX_LABELS: usize = 1 << 16;

/// Words of C that may stand together as one type name.
const C_WORDS: [&str; 9] = ["void", "char", "short", "int", "long", "float", "double", "signed", "unsigned"];

/// Any type specifier.
pub(super) fn specifier(input: &mut Input<'_>) -> Parsed<Type> {
    let () = repeat(0.., keyword("const").void()).parse_next(input)?;
    match expect_name(input)? {
        "integer" => integer(input).and_then(|integer| admit(input, Type::Integer(integer))),
        "floating_point" => float(input).and_then(|float| admit(input, Type::Float(float))),
        "string" => {
            if at(input, "{")? {
                attributes(input, |_, _| Ok(()))?;
            }
            admit(input, Type::String)
        }
        "struct" => structure(input),
        "variant" => variant(input),
        "enum" => enumeration(input),
        name => named(input, name),
    }
}

/// `typealias` or `typedef`, if one comes next.
pub(super) fn type_declaration(input: &mut Input<'_>) -> Parsed<bool> {
    opt(alt((type_alias, type_definition))).map(|declared| declared.is_some()).parse_next(input)
}

fn type_alias(input: &mut Input<'_>) -> Parsed<()> {
    keyword("typealias").parse_next(input)?;
    let ty = specifier(input)?;
    let mut ty = lengths(input, ty)?;
    expect(input, ":=")?;
    let mut name = expect_name(input)?.to_owned();
    while let Some(word) = opt(word).parse_next(input)? {
        name.push(' ');
        name.push_str(word);
    }
    expect(input, ";")?;
    if let Type::Integer(integer) = &mut ty {
        integer.truth |= name == "bool";
        integer.duration |= name == "duration_ns";
    }
    input.state.declare(name, ty);
    Ok(())
}

fn type_definition(input: &mut Input<'_>) -> Parsed<()> {
    keyword("typedef").parse_next(input)?;
    let ty = specifier(input)?;
    for (name, ty) in declarators(input, &ty)? {
        input.state.declare(name.to_owned(), ty);
    }
    expect(input, ";")
}

/// Names after a type, each with the lengths of arrays: `a, b[4]`.
fn declarators<'a>(input: &mut Input<'a>, ty: &Type) -> Parsed<Vec<(&'a str, Type)>> {
    let declarator = |input: &mut Input<'a>| Ok((expect_name(input)?, lengths(input, ty.clone())?));
    separated(1.., declarator, mark(",")).parse_next(input)
}

/// Any number of `[length]`. The last one in the text is the innermost, as in C.
fn lengths(input: &mut Input<'_>, element: Type) -> Parsed<Type> {
    let mut lengths = Vec::new();
    while eat(input, "[")? {
        let field = |path: Vec<String>| Length::Field(Reference { path: path.into(), slot: None });
        lengths.push(alt((number.map(Length::Fixed), path.map(field))).parse_next(input)?);
        expect(input, "]")?;
        if lengths.len() > MAX_DEPTH as usize {
            return Err(parse_error(input, format!("types nest deeper than {MAX_DEPTH}")));
        }
    }
    let mut ty = element;
    for length in lengths.into_iter().rev() {
        let dynamic = ty.is_dynamic() || matches!(length, Length::Field(_));
        let depth = ty.depth() + 1;
        ty = admit(input, Type::Array(ArrayType { element: ty, length, depth, dynamic }.into()))?;
    }
    Ok(ty)
}

/// Counts a new type against the limits, and returns it.
fn admit(input: &mut Input<'_>, ty: Type) -> Parsed<Type> {
    input.state.admit(&ty).map_err(|limit| parse_error(input, limit.to_string()))?;
    Ok(ty)
}

/// Runs `body` one level deeper, with its own scope for named types.
pub(super) fn scoped<'a, T>(input: &mut Input<'a>, body: impl FnOnce(&mut Input<'a>) -> Parsed<T>) -> Parsed<T> {
    input.state.enter().map_err(|limit| parse_error(input, limit.to_string()))?;
    let result = body(input);
    input.state.leave();
    result
}

fn named(input: &mut Input<'_>, first: &str) -> Parsed<Type> {
    let mut name = first.to_owned();
    if C_WORDS.contains(&first) {
        while at_keyword(input, &C_WORDS)? {
            name.push(' ');
            name.push_str(expect_name(input)?);
        }
    }
    find(input, &name)
}

fn find(input: &Input<'_>, name: &str) -> Parsed<Type> {
    let undeclared =
        || parse_error(input, format!("no type is called `{}`; declare it before its first use", shorten(name)));
    input.state.find(name).ok_or_else(undeclared)
}

/// The optional name after `struct`, `variant` or `enum`, in its declared form.
fn tag_name(input: &mut Input<'_>, kind: &str) -> Parsed<Option<String>> {
    opt(word.map(|word| format!("{kind} {word}"))).parse_next(input)
}

/// The type that was declared under this name.
fn declared(input: &mut Input<'_>, name: Option<String>) -> Parsed<Type> {
    match name {
        Some(name) => find(input, &name),
        None => expect(input, "{").and_then(|()| Err(parse_error(input, "expected a name"))),
    }
}

/// Admits a type, and declares it if it has a name.
fn declare(input: &mut Input<'_>, name: Option<String>, ty: Type) -> Parsed<Type> {
    let ty = admit(input, ty)?;
    if let Some(name) = name {
        input.state.declare(name, ty.clone());
    }
    Ok(ty)
}

fn structure(input: &mut Input<'_>) -> Parsed<Type> {
    let name = tag_name(input, "struct")?;
    if !at(input, "{")? {
        return declared(input, name);
    }
    let fields = fields(input)?;
    let mut align = 1;
    if opt(keyword("align")).parse_next(input)?.is_some() {
        expect(input, "(")?;
        align = alignment(input)?;
        expect(input, ")")?;
    }
    align = fields.iter().map(|f| f.ty.align()).fold(align, u32::max);
    let depth = 1 + fields.iter().map(|f| f.ty.depth()).max().unwrap_or(0);
    let dynamic = fields.iter().any(|f| f.ty.is_dynamic());
    declare(input, name, Type::Struct(StructType { fields, align, depth, dynamic }.into()))
}

fn fields(input: &mut Input<'_>) -> Parsed<Vec<Field>> {
    expect(input, "{")?;
    scoped(input, |input| {
        let mut fields = Vec::new();
        while !eat(input, "}")? {
            if type_declaration(input)? {
                continue;
            }
            let ty = specifier(input)?;
            if eat(input, ";")? {
                continue;
            }
            for (name, ty) in declarators(input, &ty)? {
                let ty = admit(input, ty)?;
                fields.push(Field { raw_name: name.into(), ty });
            }
            expect(input, ";")?;
        }
        Ok(fields)
    })
}

fn variant(input: &mut Input<'_>) -> Parsed<Type> {
    let name = tag_name(input, "variant")?;
    let mut path_of_tag = Vec::new();
    if eat(input, "<")? {
        path_of_tag = path(input)?;
        expect(input, ">")?;
    }
    let tag = Reference { path: path_of_tag.into(), slot: None };
    if !at(input, "{")? {
        // A previously declared variant, now with its tag.
        let Type::Variant(declared) = declared(input, name)? else {
            return Err(parse_error(input, "expected a variant"));
        };
        let mut variant = (*declared).clone();
        if !tag.path.is_empty() {
            variant.tag = tag;
        }
        return admit(input, Type::Variant(variant.into()));
    }
    let options = fields(input)?;
    let depth = 1 + options.iter().map(|f| f.ty.depth()).max().unwrap_or(0);
    declare(input, name, Type::Variant(VariantType { tag, choices: Arc::new([]), options, depth }.into()))
}

fn enumeration(input: &mut Input<'_>) -> Parsed<Type> {
    let name = tag_name(input, "enum")?;
    let container = if eat(input, ":")? {
        // The container may be an enumeration, by name: the level bounds the recursion.
        scoped(input, specifier)?
    } else if at(input, "{")? {
        named(input, "int")?
    } else {
        return declared(input, name);
    };
    let Type::Integer(container) = container else {
        return Err(parse_error(input, "the values of an enumeration must be kept in an integer"));
    };
    expect(input, "{")?;
    let mut mappings = Vec::new();
    while !eat(input, "}")? {
        let next = mappings.last().map_or(0, |mapping: &Mapping| mapping.last + 1);
        mappings.push(label(input, next)?);
        if mappings.len() > MAX_LABELS {
            return Err(parse_error(input, format!("an enumeration has more than {MAX_LABELS} labels")));
        }
        if !eat(input, ",")? && !at(input, "}")? {
            let reason = format!("expected `,` or `}}`, found {}", found(input)?);
            return Err(parse_error(input, reason));
        }
    }
    declare(input, name, Type::Enum(container, Arc::new(EnumType { mappings })))
}

/// `NAME`, `NAME = VALUE` or `NAME = FIRST ... LAST`; without a value it is `next`.
fn label(input: &mut Input<'_>, next: i128) -> Parsed<Mapping> {
    let Some(label) = opt(alt((word.map(str::to_owned), text))).parse_next(input)? else {
        let reason = format!("expected a label, found {}", found(input)?);
        return Err(parse_error(input, reason));
    };
    let Some(first) = opt(preceded(mark("="), signed_number)).parse_next(input)? else {
        return Ok(Mapping { label, first: next, last: next });
    };
    let last = opt(preceded(mark("..."), signed_number)).parse_next(input)?.unwrap_or(first);
    if last < first {
        return Err(parse_error(input, "a range of values ends before it begins"));
    }
    Ok(Mapping { label, first, last })
}
