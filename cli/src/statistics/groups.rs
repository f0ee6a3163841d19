//! The fields that group a count: a column for each in comma-separated values, a value for each in JSON.

use crate::output;
use tracepoint_probes::GroupKey;

fn quoted(text: &str) -> String {
    format!("\"{}\"", output::in_line(text).replace('"', "\"\""))
}

/// The names of columns, or texts of cells.
pub(super) fn cells<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    texts.into_iter().map(quoted).collect::<Vec<_>>().join(",")
}

/// The cells of a group in so many columns. What has no group has its name in the first one.
pub(super) fn group_cells(keys: &[GroupKey], name: &str, columns: usize) -> String {
    let keys: Vec<_> =
        if keys.is_empty() { vec![name.to_owned()] } else { keys.iter().map(ToString::to_string).collect() };
    let cell = |column| keys.get(column).map(String::as_str).unwrap_or_default();
    cells((0..columns).map(cell))
}

#[cfg(test)]
mod tests {
    use super::{cells, group_cells};
    use tracepoint_probes::GroupKey;

    #[test]
    fn each_field_has_a_column() {
        assert_eq!(cells(["a", "b\"c"]), "\"a\",\"b\"\"c\"");
        let text = |text: &str| GroupKey::Text { text: text.to_owned(), whole: true };
        assert_eq!(group_cells(&[text("a, b"), GroupKey::Unsigned(7)], "a, b, 7", 2), "\"a, b\",\"7\"");
        assert_eq!(group_cells(&[], "(no group)", 2), "\"(no group)\",\"\"");
    }
}
