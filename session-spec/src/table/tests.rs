//! Texts, their tables, and types read from them.

use super::{Table, TableError, Value, parse, read, to_text, write};
use serde::{Deserialize, Serialize};

type Outcome = Result<(), TableError>;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Outer {
    share: f64,
    name: Option<String>,
    list: Vec<Inner>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Inner {
    small: u8,
}

/// The error of a text that is read as this type.
fn error(text: &str) -> String {
    match parse(text).and_then(read::<Outer>) {
        Ok(outer) => format!("{outer:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_type_is_kept() -> Outcome {
    let outer = Outer { share: 2.0, name: Some("a\"b\n".to_owned()), list: vec![Inner { small: 255 }] };
    let text = to_text(write(&outer)?)?;
    assert_eq!(read::<Outer>(parse(&text)?)?, outer, "{text}");
    // An integer is a number, too.
    assert_eq!(read::<Outer>(parse(&text.replace("2.0", "2"))?)?, outer);
    Ok(())
}

#[test]
fn an_error_names_the_key() {
    for (text, message) in [
        ("share = 'x'\nlist = []", "invalid type: string \"x\", expected f64\nin `share`"),
        ("share = 1\n[[list]]\nsmall = 256", "invalid value: integer `256`, expected u8\nin `list.small`"),
        ("share = 1\n[[list]]\nsmall = -1", "invalid value: integer `-1`, expected u8\nin `list.small`"),
        ("share = 1\nlist = 7", "invalid type: integer `7`, expected a sequence\nin `list`"),
        ("share = 1\nlist = [7]", "invalid type: integer `7`, expected struct Inner\nin `list`"),
        ("share = 1\nname = true\nlist = []", "invalid type: boolean `true`, expected a string\nin `name`"),
        ("share = 1", "missing field `list`"),
        ("other = 1", "unknown field `other`, expected one of `share`, `name`, `list`"),
    ] {
        assert_eq!(error(text), message, "{text}");
    }
}

#[test]
fn values_that_no_key_has_are_refused() {
    for (value, message) in [
        ("nan", "`nan` is not a finite number\nin `a.b`"),
        ("-inf", "`-inf` is not a finite number\nin `a.b`"),
        ("1e999", "`1e999` is not a finite number\nin `a.b`"),
        ("1979-05-27", "`1979-05-27` is a time; no key has one\nin `a.b`"),
        ("9223372036854775808", "`9223372036854775808` does not fit into 63 bits\nin `a.b`"),
    ] {
        let refused = parse(&format!("[a]\nb = {value}")).expect_err(value);
        assert_eq!(refused.to_string(), message);
    }
    let unwritable = |value| to_text(Table::from_iter([("a".to_owned(), value)])).is_err();
    assert!(unwritable(Value::Null) && unwritable(u64::MAX.into()));
}

/// A text may be from another user.
#[test]
fn deep_nesting_is_refused() {
    for part in ["[", "{a="] {
        let refused = parse(&format!("a = {}", part.repeat(1 << 20))).expect_err(part).to_string();
        assert!(refused.contains("cannot recurse further"), "{}", &refused[refused.len().saturating_sub(200)..]);
    }
}

#[test]
fn the_text_has_values_before_tables() -> Outcome {
    let text = "\
a = [[1, 2.5], [], [{ b = -16 }, true]]
\"k k\" = \"\"

[b.c]
d = 'e\"f'

[[t]]

[t.u]
v = 1

[[t]]

[z]
";
    assert_eq!(to_text(parse(text)?)?, text);
    Ok(())
}
