//! Compares the answers of different engines.

use serde_json::Value;

use crate::queries::Query;

/// Rows of values: times as nanoseconds, days as texts.
pub type Rows = Vec<Vec<Value>>;

/// Checks that two answers are equal, ignoring the order of rows and rounding differences.
///
/// # Panics
/// If they differ, or are empty.
pub fn assert_equal(query: &Query, answer: Rows, expected: Rows) {
    let name = &query.name;
    assert!(!answer.is_empty(), "{name} has no rows");
    let (answer, expected) = (sorted(answer), sorted(expected));
    assert_eq!(answer.len(), expected.len(), "{name}: rows");
    for (row, expected) in answer.iter().zip(&expected) {
        assert_eq!(row.len(), expected.len(), "{name}: columns");
        let is_equal = row.iter().zip(expected).all(|(a, b)| is_equal(a, b, query.tolerance()));
        assert!(is_equal, "{name}: {row:?} instead of {expected:?}");
    }
}

/// Parses a number. Some engines return 128-bit sums as text.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

fn is_equal(a: &Value, b: &Value, tolerance: f64) -> bool {
    match (number(a), number(b)) {
        (Some(left), Some(right)) => (left - right).abs() <= tolerance * left.abs().max(right.abs()),
        _ => a == b,
    }
}

/// Sorts rows by their non-numeric values, which are never estimates, then by all values.
fn sorted(mut rows: Rows) -> Rows {
    let text = |value: &Value| value.to_string().replace('"', "");
    rows.sort_by_key(|row| {
        let exact = row.iter().filter(|value| number(value).is_none());
        exact.chain(row).map(text).collect::<Vec<_>>()
    });
    rows
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use serde_json::json;

    use super::*;

    #[test]
    fn differences_are_found() {
        let is_accepted = |name: &str, a: Value, b: Value| {
            let query = Query { name: name.to_owned(), sql: String::new() };
            catch_unwind(|| assert_equal(&query, vec![vec![json!("a")], vec![a]], vec![vec![b], vec![json!("a")]]))
                .is_ok()
        };
        assert!(is_accepted("sum", json!(0.1 + 0.2), json!("0.3")));
        assert!(!is_accepted("sum", json!(100), json!(101)));
        assert!(is_accepted("about-sum", json!(100), json!(101)));
        assert!(!is_accepted("about-sum", json!(100), json!(110)));
        assert!(!is_accepted("sum", json!(0), Value::Null));
    }

    #[test]
    fn estimates_do_not_order_rows() {
        let query = Query { name: "about-sum".to_owned(), sql: String::new() };
        let rows = |a: u64, b: u64| vec![vec![json!(a), json!("/a")], vec![json!(b), json!("/b")]];
        assert_equal(&query, rows(100, 101), rows(101, 100));
    }
}
