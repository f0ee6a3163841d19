//! The names of sessions.

/// The name is not valid for a session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is not a valid session name: {reason}; use 1 to 255 bytes without `/`, not starting with a dot")]
#[non_exhaustive]
pub struct NameError {
    /// The name.
    #[doc(hidden)]
    pub name: String,
    /// The reason.
    #[doc(hidden)]
    pub reason: &'static str,
}

/// Checks a session's name.
///
/// # Errors
///
/// If the name cannot be the name of a file, or begins with a dot.
pub fn check_name(name: &str) -> Result<(), NameError> {
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
    Err(NameError { name: name.to_owned(), reason })
}
