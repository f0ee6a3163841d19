//! The fields that group a count: one column each in comma-separated values, one value each in JSON.

use crate::output;
use clap::Args;
use std::borrow::Cow;
use tracepoint_export::guard_formula;
use tracepoint_probes::GroupKey;

/// How the cells of comma-separated values are written.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cells {
    /// With `--csv`, put `'` in front of texts that a spreadsheet would take for formulas
    #[arg(long, help_heading = "Form of the output", requires = "csv")]
    guard_formulas: bool,
}

impl Cells {
    fn text(self, text: &str) -> String {
        quoted(&if self.guard_formulas { guard_formula(text) } else { Cow::from(text) })
    }

    /// Joins column names or cell texts.
    pub(super) fn texts<'t>(self, texts: impl IntoIterator<Item = &'t str>) -> String {
        texts.into_iter().map(|text| self.text(text)).collect::<Vec<_>>().join(",")
    }

    /// The cells of a group, in `columns` columns. A row without group values has its name in the first one.
    pub(super) fn group(self, keys: &[GroupKey], name: &str, columns: usize) -> String {
        let cell = |column| match keys.get(column) {
            Some(key @ (GroupKey::Text { .. } | GroupKey::Path { .. })) => self.text(&key.to_string()),
            Some(number) => quoted(&number.to_string()),
            None if keys.is_empty() && column == 0 => self.text(name),
            None => quoted(""),
        };
        (0..columns).map(cell).collect::<Vec<_>>().join(",")
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", output::in_line(text).replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> GroupKey {
        GroupKey::Text { text: text.to_owned(), whole: true }
    }

    #[test]
    fn each_field_has_a_column() {
        let cells = Cells { guard_formulas: false };
        assert_eq!(cells.texts(["a", "b\"c"]), "\"a\",\"b\"\"c\"");
        assert_eq!(cells.group(&[text("=a, b"), GroupKey::Unsigned(7)], "=a, b, 7", 2), "\"=a, b\",\"7\"");
        assert_eq!(cells.group(&[], "(no group)", 2), "\"(no group)\",\"\"");
    }

    #[test]
    fn formulas_are_guarded_on_request() {
        let cells = Cells { guard_formulas: true };
        let keys = [text("=cmd|' /C calc'!A0"), GroupKey::Signed(-5), text("\t=1"), GroupKey::Float(-0.5)];
        assert_eq!(cells.group(&keys, "", 4), "\"'=cmd|' /C calc'!A0\",\"-5\",\"'\t=1\",\"-0.5\"");
        assert_eq!(cells.group(&[], "=event", 1), "\"'=event\"");
        assert_eq!(cells.texts(["@field"]), "\"'@field\"");
    }
}
