//! Table columns that do not depend on the contents of a store.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use datafusion::common::plan_datafusion_err;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::type_coercion::binary::type_union_coercion;

/// The union of the columns of these events, matched by name.
pub(super) fn union<'a>(
    events: impl IntoIterator<Item = (&'a str, SchemaRef)>,
) -> datafusion::common::Result<SchemaRef> {
    let mut columns: Vec<Field> = Vec::new();
    for (name, schema) in events {
        for field in schema.fields() {
            let Some(known) = columns.iter_mut().find(|known| known.name() == field.name()) else {
                columns.push(field.as_ref().clone());
                continue;
            };
            let both = type_union_coercion(known.data_type(), field.data_type()).ok_or_else(|| {
                let (this, other) = (field.data_type(), known.data_type());
                plan_datafusion_err!(
                    "the column {:?} of {name:?} is {this}, and {other} in another version of the event; name the versions one by one",
                    field.name()
                )
            })?;
            *known = Field::new(known.name(), both, true);
        }
    }
    Ok(Arc::new(Schema::new(columns)))
}

fn time_type() -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()))
}

fn schema<const N: usize>(columns: [(&str, DataType); N]) -> SchemaRef {
    Arc::new(Schema::new(columns.map(|(name, ty)| Field::new(name, ty, true)).to_vec()))
}

/// The columns that all events share.
pub(super) fn common_columns() -> SchemaRef {
    schema([
        ("ts", time_type()),
        ("host", DataType::Utf8View),
        ("pid", DataType::UInt32),
        ("tid", DataType::UInt32),
        ("thread", DataType::Utf8View),
        ("stream", DataType::Utf8View),
        ("seq", DataType::UInt64),
        ("lost_before", DataType::UInt64),
    ])
}

pub(super) fn account_columns() -> SchemaRef {
    schema([
        ("trace", DataType::Utf8View),
        ("pid", DataType::UInt32),
        ("scope", DataType::Utf8View),
        ("channel", DataType::UInt64),
        ("name", DataType::Utf8View),
        ("stream", DataType::Utf8View),
        ("what", DataType::Utf8View),
        ("reason", DataType::Utf8View),
        ("count", DataType::UInt64),
    ])
}

pub(super) fn losses_columns() -> SchemaRef {
    schema([
        ("from_ts", time_type()),
        ("to_ts", time_type()),
        ("stream", DataType::Utf8View),
        ("what", DataType::Utf8View),
        ("events", DataType::UInt64),
        ("packets", DataType::UInt64),
        ("reason", DataType::Utf8View),
    ])
}

/// Replaces view types of texts and bytes by plain types, unless the session wants views.
pub(super) fn as_wanted(state: &SessionState, columns: SchemaRef) -> SchemaRef {
    let has_views = state.config_options().execution.parquet.schema_force_view_types;
    if has_views { columns } else { without_views(&columns) }
}

/// Replaces view types of texts and bytes by plain types: a batch sent to another process would carry the complete buffers of its views.
fn without_views(schema: &SchemaRef) -> SchemaRef {
    let plain = |field: &FieldRef| match field.data_type() {
        DataType::Utf8View => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8)),
        DataType::BinaryView => Arc::new(field.as_ref().clone().with_data_type(DataType::Binary)),
        _ => Arc::clone(field),
    };
    let fields: Fields = schema.fields().iter().map(plain).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}
