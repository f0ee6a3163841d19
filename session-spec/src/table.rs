//! Tables of TOML, and the types that are read from them.
//!
//! The crate `toml` parses the text. Its own values are not used for the rest: what `serde` compiles to read a type from them, or to write it, is
//! several times as large.

#[cfg(test)]
mod tests;
mod text;
mod typed;

pub use text::to_text;
pub use typed::TableError;

use serde::Serialize;
use serde::de::DeserializeOwned;
pub use serde_json::Value;
use toml::de::{DeTable, DeValue};

/// A table: its keys and their values, of which none is null.
pub type Table = serde_json::Map<String, Value>;

/// Parses a text. It may contain strings, integers of 63 bits and a sign, finite numbers, booleans, arrays and tables.
pub fn parse(text: &str) -> Result<Table, TableError> {
    table_of(DeTable::parse(text).map_err(TableError::new)?.into_inner())
}

/// Reads a type.
pub fn read<T: DeserializeOwned>(table: Table) -> Result<T, TableError> {
    T::deserialize(typed::Reader(&Value::Object(table)))
}

/// Returns the table of a value whose type has named fields.
pub fn write(value: &impl Serialize) -> Result<Table, TableError> {
    match serde_json::to_value(value) {
        Ok(Value::Object(table)) => Ok(table),
        Ok(_) => Err(TableError::new("it is not a table")),
        Err(error) => Err(TableError::new(error)),
    }
}

fn table_of(table: DeTable<'_>) -> Result<Table, TableError> {
    let mut values = Table::new();
    for (key, value) in table {
        let key = key.into_inner().into_owned();
        let value = value_of(value.into_inner()).map_err(|error| error.within(&key))?;
        values.insert(key, value);
    }
    Ok(values)
}

fn value_of(value: DeValue<'_>) -> Result<Value, TableError> {
    let refused = |value: &dyn std::fmt::Display, reason| Err(TableError::new(format!("`{value}` {reason}")));
    Ok(match value {
        DeValue::String(text) => Value::String(text.into_owned()),
        DeValue::Boolean(value) => Value::Bool(value),
        DeValue::Integer(digits) => match i64::from_str_radix(digits.as_str(), digits.radix()) {
            Ok(number) => Value::from(number),
            Err(_) => return refused(&digits, "does not fit into 63 bits"),
        },
        DeValue::Float(digits) => match digits.as_str().parse().ok().and_then(serde_json::Number::from_f64) {
            Some(number) => Value::Number(number),
            None => return refused(&digits, "is not a finite number"),
        },
        DeValue::Datetime(time) => return refused(&time, "is a time; no key has one"),
        DeValue::Array(items) => items.into_iter().map(|item| value_of(item.into_inner())).collect::<Result<_, _>>()?,
        DeValue::Table(table) => Value::Object(table_of(table)?),
    })
}
