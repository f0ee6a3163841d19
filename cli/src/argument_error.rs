//! Errors in values on the command line.

/// A value that cannot be parsed. The text describes the expected form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ArgumentError(String);

impl From<&str> for ArgumentError {
    fn from(expected: &str) -> Self {
        Self(expected.to_owned())
    }
}

impl From<String> for ArgumentError {
    fn from(expected: String) -> Self {
        Self(expected)
    }
}
