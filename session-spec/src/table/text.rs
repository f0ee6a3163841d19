//! The text of a table.

use super::{Table, TableError, Value};
use std::fmt;
use toml_writer::TomlWrite as _;

/// Returns the text of a table: its keys in alphabetical order, tables after other values.
pub fn to_text(table: Table) -> Result<String, TableError> {
    let mut out = String::new();
    write_members(&mut out, &mut Vec::new(), table)
        .map(|()| out)
        .map_err(|_| TableError::new("a value is null, or a number does not fit into 63 bits"))
}

fn write_members(out: &mut String, path: &mut Vec<String>, mut table: Table) -> fmt::Result {
    // They are sorted, unless a crate of the program has enabled the feature `preserve_order` of `serde_json`.
    table.sort_keys();
    for (key, value) in table.iter().filter(|(_, value)| !has_header(value)) {
        write_member(out, key, value)?;
        out.newline()?;
    }
    for (key, value) in table.into_iter().filter(|(_, value)| has_header(value)) {
        path.push(key);
        match value {
            Value::Object(table) => {
                // A table that has nothing but tables needs no header.
                if table.is_empty() || !table.values().all(has_header) {
                    write_header(out, path, ["[", "]"])?;
                }
                write_members(out, path, table)?;
            }
            Value::Array(items) => {
                for item in items {
                    let Value::Object(table) = item else { return Err(fmt::Error) };
                    write_header(out, path, ["[[", "]]"])?;
                    write_members(out, path, table)?;
                }
            }
            _ => {}
        }
        path.pop();
    }
    Ok(())
}

/// Returns whether a value is a table, or an array of tables.
fn has_header(value: &Value) -> bool {
    match value {
        Value::Object(_) => true,
        Value::Array(items) => !items.is_empty() && items.iter().all(Value::is_object),
        _ => false,
    }
}

/// Writes the header of a table, after an empty line.
fn write_header(out: &mut String, path: &[String], [open, close]: [&str; 2]) -> fmt::Result {
    if !out.is_empty() {
        out.newline()?;
    }
    out.push_str(open);
    separated(out, ".", path, |out, key| out.key(key.as_str()))?;
    out.push_str(close);
    out.newline()
}

fn write_member(out: &mut String, key: &str, value: &Value) -> fmt::Result {
    out.key(key)?;
    out.push_str(" = ");
    write_value(out, value)
}

fn write_value(out: &mut String, value: &Value) -> fmt::Result {
    match value {
        Value::String(text) => out.value(text.as_str()),
        Value::Bool(value) => out.value(*value),
        Value::Number(number) => match (number.as_i64(), number.as_f64().filter(|_| number.is_f64())) {
            (Some(integer), _) => out.value(integer),
            (None, Some(number)) => out.value(number),
            (None, None) => Err(fmt::Error),
        },
        Value::Array(items) => {
            out.push('[');
            separated(out, ", ", items, write_value)?;
            out.push(']');
            Ok(())
        }
        Value::Object(table) => {
            out.push_str("{ ");
            separated(out, ", ", table, |out, (key, value)| write_member(out, key, value))?;
            out.push_str(" }");
            Ok(())
        }
        Value::Null => Err(fmt::Error),
    }
}

/// Writes items with a separator between them.
fn separated<T>(
    out: &mut String,
    separator: &str,
    items: impl IntoIterator<Item = T>,
    write: impl Fn(&mut String, T) -> fmt::Result,
) -> fmt::Result {
    for (nth, item) in items.into_iter().enumerate() {
        out.push_str(if nth == 0 { "" } else { separator });
        write(out, item)?;
    }
    Ok(())
}
