//! The names of sessions.

use super::SessionError;

/// Checks a session's name.
pub(crate) fn check_name(name: &str) -> Result<(), SessionError> {
    let reason = if name.is_empty() {
        "it is empty"
    } else if name.len() > 255 {
        "it is longer than 255 bytes"
    } else if name.contains('/') {
        "it contains a `/`"
    } else if name.contains('\0') {
        "it contains a NUL"
    } else if name.chars().any(char::is_control) {
        "it contains a control character"
    } else if name.starts_with('.') {
        "it starts with a dot"
    } else {
        return Ok(());
    };
    Err(SessionError::Name { name: name.to_owned(), reason })
}
