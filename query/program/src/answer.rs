//! Writes the rows of an answer to the standard output.

use std::io::{self, Write, stdout};
use std::ops::ControlFlow;

use tracepoint_query::arrow::array::RecordBatch;
use tracepoint_query::arrow::csv;
use tracepoint_query::arrow::datatypes::SchemaRef;
use tracepoint_query::arrow::error::ArrowError;
use tracepoint_query::arrow::json::writer::{LineDelimited, WriterBuilder};
use tracepoint_query::arrow::util::display::FormatOptions;
use tracepoint_query::arrow::util::pretty::pretty_format_batches_with_options;

use crate::output;

/// How many rows a table has at most: all of its rows are in memory, because the widths of its columns depend on them.
const TABLE_ROWS: usize = 1000;

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Table,
    Json,
    Csv,
}

/// The rows of an answer.
pub(crate) struct AnswerWriter {
    format: Format,
    schema: SchemaRef,
    /// The rows of a table.
    rows: Vec<RecordBatch>,
    row_count: usize,
    has_header: bool,
}

impl AnswerWriter {
    pub(crate) fn new(format: Format, schema: SchemaRef) -> Self {
        Self { format, schema, rows: Vec::new(), row_count: 0, has_header: false }
    }

    /// Writes rows, or keeps them for a table, and tells whether it takes more of them.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> io::Result<ControlFlow<()>> {
        match self.format {
            Format::Table => {
                self.row_count += batch.num_rows();
                self.rows.push(batch.clone());
            }
            Format::Json => stdout().write_all(&as_json(batch).map_err(io::Error::other)?)?,
            Format::Csv => self.write_csv(batch)?,
        }
        Ok(if self.row_count > TABLE_ROWS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn write_csv(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let mut writer = csv::WriterBuilder::new().with_header(!self.has_header).build(Vec::new());
        writer.write(batch).map_err(io::Error::other)?;
        self.has_header = true;
        stdout().write_all(&writer.into_inner())
    }

    /// Writes the table, and the header of CSV if there was no row.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        match self.format {
            Format::Table => self.write_table(),
            Format::Csv if !self.has_header => self.write_csv(&RecordBatch::new_empty(self.schema.clone())),
            Format::Csv | Format::Json => Ok(()),
        }?;
        stdout().flush()
    }

    fn write_table(&mut self) -> io::Result<()> {
        let excess = self.row_count.saturating_sub(TABLE_ROWS);
        if let Some(last) = self.rows.last_mut() {
            *last = last.slice(0, last.num_rows() - excess);
        } else {
            self.rows.push(RecordBatch::new_empty(self.schema.clone()));
        }
        let options = FormatOptions::default().with_null("NULL");
        let table = pretty_format_batches_with_options(&self.rows, &options).map_err(io::Error::other)?;
        output::line(&table.to_string())?;
        if excess > 0 {
            let text = format!("only the first {TABLE_ROWS} rows are shown; --csv and --json write all");
            output::message("note", &text);
        }
        Ok(())
    }
}

/// A line for each row.
fn as_json(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let mut writer = WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(Vec::new());
    writer.write(batch)?;
    writer.finish()?;
    Ok(writer.into_inner())
}
