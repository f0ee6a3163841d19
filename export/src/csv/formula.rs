//! Cells that a spreadsheet would interpret as formulas.

use std::borrow::Cow;

/// Prefixes the text of a cell with `'` if a spreadsheet would interpret it as a formula: if it begins with `=`, `+`, `-`, `@`, a tab or a
/// line break, and is not a number.
pub fn guard_formula(text: &str) -> Cow<'_, str> {
    let is_formula = match text.as_bytes() {
        [b'=' | b'@' | b'\t' | b'\r' | b'\n', ..] => true,
        [b'+' | b'-', rest @ ..] => {
            !(rest.first().is_some_and(|digit| digit.is_ascii_digit() || *digit == b'.') && text.parse::<f64>().is_ok())
        }
        _ => false,
    };
    if is_formula { format!("'{text}").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::guard_formula;

    #[test]
    fn formulas_are_guarded_and_numbers_are_not() {
        for text in [
            "=1+1",
            "+1+1",
            "-2+3",
            "@SUM(A1)",
            "\t=1",
            "\r=1",
            "\n=1",
            "-",
            "+",
            "-inf",
            "+nan",
            "-5 apples",
            "--5",
            "=",
            "-.",
            "-=1",
        ] {
            assert_eq!(guard_formula(text), format!("'{text}"));
        }
        for text in ["", "-5", "+5", "-0.5", "-.5", "-1e9", "+1.5E-3", "a=b", "5-3", " =1", "'=1", "é"] {
            assert_eq!(guard_formula(text), text);
        }
    }
}
