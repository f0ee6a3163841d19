//! Maps integers that are times by their names, and that the metadata maps to no clock, to the only clock: `timestamp` in event headers,
//! `timestamp_begin` and `timestamp_end` in packet contexts. Without any clock they count nanoseconds since the epoch. babeltrace2 does the
//! same. With several clocks, babeltrace2 refuses such metadata, whereas here the stream has no clock.

use std::sync::Arc;

use super::Clock;
use super::block::StreamBlock;
use super::types::{Field, StructType, Type};

/// Maximum number of types of a structure that are searched for times.
const MAX_SEARCH: u32 = 4096;

/// Maps the times of all streams. Adds the implied clock if none is declared and one is needed.
pub(super) fn map(streams: &mut [StreamBlock], clocks: &mut Vec<Clock>) {
    if clocks.len() > 1 {
        return;
    }
    let mut is_needed = false;
    for stream in streams {
        for (ty, names) in [
            (&mut stream.event_header, &["timestamp"][..]),
            (&mut stream.packet_context, &["timestamp_begin", "timestamp_end"]),
        ] {
            let changed = ty.as_ref().and_then(|ty| members(&ty.fields, names, &mut { MAX_SEARCH }));
            if let (Some(fields), Some(ty)) = (changed, ty) {
                *ty = Arc::new(StructType { fields, ..**ty });
                is_needed = true;
            }
        }
    }
    if is_needed && clocks.is_empty() {
        clocks.push(Clock { name: "default".to_owned(), frequency: 1_000_000_000, ..Clock::default() });
    }
}

/// The members, with those called one of `names` mapped; `None` if there are none. Visits at most `left` types.
fn members(fields: &[Field], names: &[&str], left: &mut u32) -> Option<Vec<Field>> {
    let changed = |field: &Field| mapped(&field.ty, names.contains(&field.name()), names, left);
    let changed: Vec<Option<Type>> = fields.iter().map(changed).collect();
    changed.iter().any(Option::is_some).then(|| {
        let pairs = fields.iter().zip(changed);
        pairs.map(|(field, ty)| Field { ty: ty.unwrap_or_else(|| field.ty.clone()), ..field.clone() }).collect()
    })
}

/// The type with its times mapped to the first clock; `None` if it has none to map.
fn mapped(ty: &Type, is_time: bool, names: &[&str], left: &mut u32) -> Option<Type> {
    *left = left.checked_sub(1)?;
    match ty {
        Type::Integer(integer) if is_time && integer.clock.is_none() => {
            let mut integer = *integer;
            integer.clock = Some(0);
            Some(Type::Integer(integer))
        }
        Type::Struct(ty) => {
            members(&ty.fields, names, left).map(|fields| Type::Struct(Arc::new(StructType { fields, ..**ty })))
        }
        Type::Variant(ty) => members(&ty.options, names, left).map(|options| {
            let mut ty = (**ty).clone();
            ty.options = options;
            Type::Variant(Arc::new(ty))
        }),
        _ => None,
    }
}
