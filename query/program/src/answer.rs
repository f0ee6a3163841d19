//! Writes the rows of an answer to the standard output. Text of a trace must not control the user's terminal: control characters are escaped
//! in tables and in JSON, and in CSV on a terminal.

mod texts;

use std::io::{self, Write, stdout};
use std::ops::ControlFlow;

use tracepoint_query::arrow::array::RecordBatch;
use tracepoint_query::arrow::csv;
use tracepoint_query::arrow::datatypes::SchemaRef;
use tracepoint_query::arrow::error::ArrowError;
use tracepoint_query::arrow::json::writer::{LineDelimited, WriterBuilder};
use tracepoint_query::arrow::util::pretty::pretty_format_batches;

use crate::output;

/// Maximum number of rows in a table. All rows are held in memory, because column widths depend on them.
const TABLE_ROWS: usize = 1000;

/// Output format of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Table,
    Json,
    Csv { guards_formulas: bool },
}

/// Writes the rows of an answer.
pub(crate) struct AnswerWriter {
    format: Format,
    schema: SchemaRef,
    /// Rows of a table, kept until the end.
    rows: Vec<RecordBatch>,
    row_count: usize,
    has_header: bool,
}

impl AnswerWriter {
    pub(crate) fn new(format: Format, schema: SchemaRef) -> Self {
        Self { format, schema, rows: Vec::new(), row_count: 0, has_header: false }
    }

    /// Writes rows, or keeps them for a table. Returns `Break` if no more rows are accepted.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> io::Result<ControlFlow<()>> {
        match self.format {
            Format::Table => {
                self.row_count += batch.num_rows();
                self.rows.push(batch.clone());
            }
            Format::Json => tracepoint_reader::json::copy(stdout(), &as_json(batch).map_err(io::Error::other)?)?,
            Format::Csv { guards_formulas } => self.write_csv(batch, guards_formulas)?,
        }
        Ok(if self.row_count > TABLE_ROWS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn write_csv(&mut self, batch: &RecordBatch, guards_formulas: bool) -> io::Result<()> {
        let rows = as_csv(batch, !self.has_header, guards_formulas).map_err(io::Error::other)?;
        self.has_header = true;
        output::data(&rows)
    }

    /// Writes the table, and the header of CSV if there was no row.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        match self.format {
            Format::Table => self.write_table(),
            Format::Csv { guards_formulas } if !self.has_header => {
                self.write_csv(&RecordBatch::new_empty(self.schema.clone()), guards_formulas)
            }
            Format::Csv { .. } | Format::Json => Ok(()),
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
        writeln!(stdout(), "{}", as_table(&self.rows).map_err(io::Error::other)?)?;
        if excess > 0 {
            let text = format!("only the first {TABLE_ROWS} rows are shown; --csv and --json write all");
            output::message("note", &text);
        }
        Ok(())
    }
}

fn as_table(rows: &[RecordBatch]) -> Result<String, ArrowError> {
    let cells: Vec<_> = rows.iter().map(texts::cells).collect::<Result<_, _>>()?;
    Ok(pretty_format_batches(&cells)?.to_string())
}

/// Formats one line per row.
fn as_json(batch: &RecordBatch) -> Result<String, ArrowError> {
    let mut writer = WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(Vec::new());
    writer.write(batch)?;
    writer.finish()?;
    Ok(String::from_utf8(writer.into_inner())?)
}

fn as_csv(batch: &RecordBatch, has_header: bool, guards_formulas: bool) -> Result<String, ArrowError> {
    let mut writer = csv::WriterBuilder::new().with_header(has_header).build(Vec::new());
    if guards_formulas {
        writer.write(&texts::guarded(batch)?)?;
    } else {
        writer.write(batch)?;
    }
    Ok(String::from_utf8(writer.into_inner())?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tracepoint_query::arrow::array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    #[test]
    fn no_text_of_a_trace_controls_a_terminal() -> Result<(), ArrowError> {
        let texts: ArrayRef =
            Arc::new(StringArray::from(vec![Some("\u{1b}]0;x\u{7}\u{9b}\u{7f}\u{202e}\n| é |"), None]));
        let rows = RecordBatch::try_from_iter_with_nullable([("a\u{1b}[2J", texts, true)])?;
        let escaped = r"\u{1b}]0;x\u{7}\u{9b}\u{7f}\u{202e}\n| é |";
        let table = as_table(std::slice::from_ref(&rows))?;
        let lines: Vec<_> = table.lines().collect();
        assert_eq!((lines.len(), lines[3]), (6, &*format!("| {escaped} |")), "{table}");
        assert!(lines[1].starts_with(r"| a\u{1b}[2J ") && lines[4].starts_with("| NULL "), "{table}");
        assert!(lines.iter().all(|line| line.chars().count() == lines[0].chars().count()), "{table}");
        let mut json = Vec::new();
        tracepoint_reader::json::copy(&mut json, &as_json(&rows)?)?;
        let json = String::from_utf8(json)?;
        assert!(!json.contains(|c| c != '\n' && tracepoint_reader::text::is_control(c)), "{json}");
        assert_eq!(json.lines().next(), Some(r#"{"a\u001b[2J":"\u001b]0;x\u0007\u009b\u007f\u202e\n| é |"}"#));
        Ok(())
    }

    #[test]
    fn plans_keep_their_lines() -> Result<(), ArrowError> {
        let column = |text: &str| -> ArrayRef { Arc::new(StringArray::from(vec![text])) };
        let plan =
            RecordBatch::try_from_iter([("plan_type", column("logical_plan")), ("plan", column("a\n  b\u{1b}"))])?;
        let table = as_table(&[plan])?;
        assert!(table.contains("| logical_plan | a ") && table.contains("|              |   b\\u{1b} |"), "{table}");
        Ok(())
    }

    #[test]
    fn formulas_are_guarded_on_request() -> Result<(), ArrowError> {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("=1+1"), None, Some("a")]));
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![-1, -2, -3]));
        let rows = RecordBatch::try_from_iter_with_nullable([("@a", texts, true), ("n", numbers, false)])?;
        assert_eq!(as_csv(&rows, true, false)?, "@a,n\n=1+1,-1\n,-2\na,-3\n");
        assert_eq!(as_csv(&rows, true, true)?, "'@a,n\n'=1+1,-1\n,-2\na,-3\n");
        Ok(())
    }
}
