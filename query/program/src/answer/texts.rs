//! Rows of an answer with rewritten texts.

use std::sync::Arc;

use tracepoint_export::guard_formula;
use tracepoint_query::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray};
use tracepoint_query::arrow::compute::cast;
use tracepoint_query::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use tracepoint_query::arrow::error::ArrowError;
use tracepoint_query::arrow::util::display::{ArrayFormatter, FormatOptions};
use tracepoint_reader::text::escape_controls;

use crate::output::in_line;

/// Formats each cell for a table: in one line, without control characters.
pub(super) fn cells(rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let options = FormatOptions::default().with_null("NULL");
    let keeps_lines = is_plan(rows);
    let escaped = |text: &str| if keeps_lines { escape_controls(text, &['\n']).into_owned() } else { in_line(text) };
    replaced(rows, |name, column| {
        let formatter = ArrayFormatter::try_new(column, &options)?;
        let texts = (0..rows.num_rows()).map(|row| Ok(escaped(&formatter.value(row).try_to_string()?)));
        let texts: StringArray = texts.collect::<Result<Vec<_>, ArrowError>>()?.into();
        Ok((Arc::new(Field::new(in_line(name.name()), DataType::Utf8, false)), Arc::new(texts)))
    })
}

/// Returns whether the rows are the answer to `EXPLAIN`: a plan has several lines.
fn is_plan(rows: &RecordBatch) -> bool {
    rows.schema_ref().fields().iter().map(|field| &**field.name()).eq(["plan_type", "plan"])
}

/// Prefixes texts with `'` that a spreadsheet would interpret as formulas.
pub(super) fn guarded(rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    replaced(rows, |field, column| {
        let is_text = match column.data_type() {
            DataType::Dictionary(_, values) => values.is_string(),
            ty => ty.is_string(),
        };
        let column = if is_text {
            let texts = cast(column, &DataType::Utf8)?;
            let texts = texts.as_any().downcast_ref::<StringArray>();
            let guarded = texts.into_iter().flatten().map(|text| text.map(guard_formula));
            Arc::new(guarded.collect::<StringArray>())
        } else {
            Arc::clone(column)
        };
        let name = guard_formula(field.name()).into_owned();
        Ok((Arc::new(Field::new(name, column.data_type().clone(), true)), column))
    })
}

/// Replaces the columns, keeping the number of rows.
fn replaced(
    rows: &RecordBatch,
    column: impl Fn(&FieldRef, &ArrayRef) -> Result<(FieldRef, ArrayRef), ArrowError>,
) -> Result<RecordBatch, ArrowError> {
    let columns = rows.schema_ref().fields().iter().zip(rows.columns()).map(|(field, values)| column(field, values));
    let (fields, columns): (Vec<_>, Vec<_>) = columns.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
}
