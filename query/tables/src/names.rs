//! Names of partition directories: `key=value`, with values made safe for file names.
//!
//! Values come from traces, and may be arbitrary. ASCII letters, digits, `-`, `_` and `.` stay, except a leading `_` or `.`. Every other byte becomes
//! `%` and two hexadecimal digits, as readers of Hive's layout expect. A value longer than 200 bytes is truncated, and ends with `~` and a hash of
//! the complete value. No other name contains `~`, so different values have different names.

use std::fmt::Write;

use percent_encoding::percent_decode_str;
use sha2::{Digest, Sha256};

/// The directory of unknown values, named as in Hive: readers take it for NULL.
const UNKNOWN: &str = "__HIVE_DEFAULT_PARTITION__";
/// Maximum length in bytes of an escaped value. File systems allow 255 for the whole name.
const LONGEST: usize = 200;
/// Length of the hash in hexadecimal digits.
const HASH: usize = 32;

/// The directory name for a value. An empty value counts as unknown.
pub fn partition(key: &str, value: Option<&str>) -> String {
    let value = value.filter(|value| !value.is_empty()).map_or_else(|| UNKNOWN.to_owned(), escape);
    format!("{key}={value}")
}

/// The value that readers derive from the directory name; `None` is NULL. It equals the original value, unless that is too long.
pub fn value_of(escaped: &str) -> Option<String> {
    (escaped != UNKNOWN).then(|| percent_decode_str(escaped).decode_utf8_lossy().into_owned())
}

/// Returns whether a directory name is truncated, so that it does not contain the complete value.
pub fn is_cut(escaped: &str) -> bool {
    escaped.contains('~')
}

/// The value of a partition as seen by readers of a store.
pub fn as_stored(value: Option<&str>) -> Option<String> {
    value.filter(|value| !value.is_empty()).and_then(|value| value_of(&escape(value)))
}

/// Escapes a value for use in a file name. The mapping is injective.
pub fn escape(value: &str) -> String {
    let mut escaped = String::new();
    for (index, byte) in value.bytes().enumerate() {
        let is_literal = byte.is_ascii_alphanumeric() || byte == b'-' || (matches!(byte, b'.' | b'_') && index > 0);
        // Escape a leading `_` or `.`, so that no value looks like the unknown one or a parent directory.
        if is_literal {
            escaped.push(char::from(byte));
        } else {
            _ = write!(escaped, "%{byte:02X}");
        }
    }
    if escaped.len() > LONGEST {
        let mut end = LONGEST - HASH - 1;
        // Do not cut an escaped byte in two.
        while escaped[end - 2..end].contains('%') {
            end -= 1;
        }
        escaped.truncate(end);
        escaped.push('~');
        let hash = Sha256::digest(value.as_bytes());
        hash[..HASH / 2].iter().for_each(|byte| _ = write!(escaped, "{byte:02x}"));
    }
    escaped
}

/// The name of an event without the number that the tracer appends if fields differ. It is never empty.
pub fn base(name: &str) -> &str {
    let numbered = name.rsplit_once('#').filter(|(base, number)| {
        !base.is_empty()
            && !number.is_empty()
            && number.len() < 10
            && number.bytes().all(|digit| digit.is_ascii_digit())
    });
    numbered.map_or(name, |(base, _)| base)
}

/// The first of `name`, `name_2`, `name_3` … that is not in `taken`, ignoring case as SQL does. Adds it to `taken`.
pub(crate) fn unique(name: &str, taken: &mut Vec<String>) -> String {
    let is_taken = |name: &str| taken.iter().any(|other| other.eq_ignore_ascii_case(name));
    let numbered = (2u64..).map(|number| format!("{name}_{number}"));
    let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| !is_taken(name)).unwrap_or_default();
    taken.push(free.clone());
    free
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_safe_and_different() {
        let long = "ä".repeat(300);
        let values = [
            "shop:answered",
            "../../etc",
            "..",
            ".",
            "a=b/c",
            "a\nb",
            "a\0b",
            "x#2",
            "%2F",
            "/",
            "~",
            "_",
            UNKNOWN,
            "a b",
            "A",
            "a",
            &long,
            &format!("{long}x"),
            &escape(&long),
        ];
        let names: HashSet<_> = values.iter().map(|value| partition("event", Some(value))).collect();
        assert_eq!(names.len(), values.len(), "{names:?}");
        for name in &names {
            assert!(name.len() <= 255 && !name.contains(['/', '\0', '\n']), "{name}");
            assert_ne!(name, &partition("event", None));
        }
        assert_eq!(partition("event", Some("shop:answered")), "event=shop%3Aanswered");
        assert_eq!(partition("host", Some("")), partition("host", None));
    }

    #[test]
    fn numbers_of_layouts_are_no_part_of_a_name() {
        assert_eq!(
            [base("a:b#2"), base("a:b"), base("a:b#"), base("#7"), base("a#b#3")],
            ["a:b", "a:b", "a:b#", "#7", "a#b"]
        );
    }

    #[test]
    fn columns_differ_by_more_than_case() {
        let mut taken = vec!["ts".to_owned()];
        let names = ["TS", "id", "ID", "id", "id_2"].map(|name| unique(name, &mut taken));
        assert_eq!(names, ["TS_2", "id", "ID_2", "id_3", "id_2_2"]);
    }
}
