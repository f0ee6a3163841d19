//! The fields of a decoded event in the form that filters use.
//!
//! They are numbered as in [`EventView`](tracepoint_reader::EventView).

use crate::filter::{FieldKind, FilterField, Label};
use std::sync::Arc;
use tracepoint_reader::metadata::types::{Field, StructType, Type};
use tracepoint_reader::metadata::{EventClass, StreamClass};

/// The fields that a condition on this kind of event can use.
pub(crate) fn condition_fields<'a>(stream: &'a StreamClass, class: &'a EventClass) -> Vec<FilterField<'a>> {
    let parts = [&class.fields, &class.context, &stream.event_context, &stream.packet_context];
    parts.into_iter().flatten().flat_map(|ty: &Arc<StructType>| ty.fields.iter().map(describe)).collect()
}

fn describe(field: &Field) -> FilterField<'_> {
    let (kind, ty) = kind_of(&field.ty);
    FilterField { name: field.name(), kind, ty }
}

fn kind_of(ty: &Type) -> (FieldKind<'_>, String) {
    match ty {
        Type::Integer(integer) if integer.truth => (FieldKind::Truth, "bool".to_owned()),
        Type::Integer(integer) if integer.duration && !integer.signed => (FieldKind::Duration, "Duration".to_owned()),
        Type::Integer(integer) => {
            let letter = if integer.signed { 'i' } else { 'u' };
            (FieldKind::Integer { signed: integer.signed }, format!("{letter}{}", integer.bits))
        }
        Type::Enum(_, ty) => {
            let labels = ty.mappings.iter();
            let labels = labels.map(|label| Label { name: &label.label, first: label.first, last: label.last });
            (FieldKind::Enum(labels.collect()), "an enumeration".to_owned())
        }
        Type::Float(float) => (FieldKind::Float, format!("f{}", float.bits)),
        Type::String => (FieldKind::Text, "str".to_owned()),
        Type::Array(array) if array.element.is_character() || array.element.is_plain_byte().is_some() => {
            (FieldKind::Text, "[u8]".to_owned())
        }
        Type::Array(_) => (FieldKind::Other, "an array".to_owned()),
        Type::Struct(_) => (FieldKind::Other, "a structure".to_owned()),
        Type::Variant(variant) => match &variant.options[..] {
            // The form in which the tracer writes an `Option`, and a value of any type.
            [none, some] if none.name() == "none" && some.name() == "some" => kind_of(&some.ty),
            [none, options @ ..] if none.name() == "none" && options.iter().all(is_of_tracer) => {
                (FieldKind::Any, "any".to_owned())
            }
            _ => (FieldKind::Other, "a variant".to_owned()),
        },
        _ => (FieldKind::Other, "of an unknown type".to_owned()),
    }
}

fn is_of_tracer(option: &Field) -> bool {
    tracepoint_reader::TRACER_OPTIONS.contains(&option.name())
}
