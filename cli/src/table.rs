//! Tables for display: aligned columns, never wrapped, so that each row stays one line, also in a pipe.

use crate::output::in_line;
use anstyle::Style;
use comfy_table::presets::NOTHING;
use comfy_table::{Cell, CellAlignment, ContentArrangement};
use std::fmt::Display;
use std::io::{self, Write};

const HEADING: Style = Style::new().bold();

/// Rows of cells.
pub(crate) struct Table {
    cells: comfy_table::Table,
    /// Printed before each row.
    indent: &'static str,
    /// The style of each row, and the number of characters to which it applies.
    styles: Vec<(Style, usize)>,
}

impl Table {
    pub(crate) fn new(indent: &'static str) -> Self {
        let mut cells = comfy_table::Table::new();
        cells.load_preset(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        Self { cells, indent, styles: Vec::new() }
    }

    /// Adds a row with the titles of the columns.
    pub(crate) fn heading(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.cells.add_row(cells.into_iter().collect::<Vec<_>>());
        self.styles.push((HEADING, usize::MAX));
    }

    /// Adds a row whose first cell has this style.
    pub(crate) fn row(&mut self, style: Style, cells: impl IntoIterator<Item = Cell>) {
        let row: Vec<_> = cells.into_iter().collect();
        self.styles.push((style, row.first().map_or(0, |cell| cell.content().chars().count())));
        self.cells.add_row(row);
    }

    pub(crate) fn write(mut self, out: &mut impl Write) -> io::Result<()> {
        for (index, column) in self.cells.column_iter_mut().enumerate() {
            column.set_padding((if index == 0 { 0 } else { 2 }, 0));
        }
        for (line, (style, length)) in self.cells.lines().zip(&self.styles) {
            let line = line.trim_end();
            let end = line.char_indices().nth(*length).map_or(line.len(), |(end, _)| end);
            let (styled, rest) = line.split_at(end);
            writeln!(out, "{}{style}{styled}{style:#}{rest}", self.indent)?;
        }
        Ok(())
    }
}

/// A cell with text; line feeds in it are escaped.
pub(crate) fn text(text: impl Display) -> Cell {
    Cell::new(in_line(&text.to_string()))
}

/// A cell with a number.
pub(crate) fn number(number: impl Display) -> Cell {
    Cell::new(number).set_alignment(CellAlignment::Right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anstyle::AnsiColor;

    #[test]
    fn rows_are_lines_and_columns_are_aligned() -> io::Result<()> {
        let red = AnsiColor::Red.on_default();
        let mut table = Table::new("  ");
        table.heading([text("NAME"), number("COUNT"), text("WHAT")]);
        table.row(red, [text("a\nb"), number(7), text("")]);
        table.row(Style::new(), [text("longer"), number(12345), text("x".repeat(500))]);
        let mut out = Vec::new();
        table.write(&mut out)?;
        let expected = format!(
            "  {HEADING}NAME    COUNT  WHAT{HEADING:#}\n  {red}a\\nb{red:#}        7\n  longer  12345  {}\n",
            "x".repeat(500)
        );
        assert_eq!(String::from_utf8_lossy(&out), expected);
        Ok(())
    }
}
