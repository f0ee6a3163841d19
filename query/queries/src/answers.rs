//! Compares answers of different engines.

use serde_json::Value;

use crate::Query;

/// Rows of values: times as nanoseconds, days as texts.
pub type Rows = Vec<Vec<Value>>;

/// Checks that two answers are equal, but for the order of rows and the rounding of numbers.
///
/// # Panics
/// If they are not, or if there are no rows.
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

fn is_equal(a: &Value, b: &Value, tolerance: f64) -> bool {
    // Some engines have sums of 128 bits, which come as texts.
    let number = |value: &Value| value.as_f64().or_else(|| value.as_str()?.parse().ok());
    match (number(a), number(b)) {
        (Some(left), Some(right)) => (left - right).abs() <= tolerance * left.abs().max(right.abs()),
        _ => a == b,
    }
}

fn sorted(mut rows: Rows) -> Rows {
    rows.sort_by_key(|row| row.iter().map(|value| value.to_string().replace('"', "")).collect::<Vec<_>>());
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
}
