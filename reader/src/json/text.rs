//! Text that may not be valid in JSON.

use serde::ser::{Serialize, Serializer};
use std::path::Path;

/// Text that may not be UTF-8: a string, or its bytes in base 16 as `{"$bytes":"68ff"}`.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a>(pub &'a [u8]);

impl<'a> Text<'a> {
    /// The text of a path.
    pub(crate) fn of(path: &'a Path) -> Self {
        Self(path.as_os_str().as_encoded_bytes())
    }
}

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Ok(text) = std::str::from_utf8(self.0) {
            return serializer.serialize_str(text);
        }
        let hex: Vec<_> = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        serializer.collect_map([("$bytes", hex.concat())])
    }
}

/// Serializes a path.
pub(crate) fn path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    Text::of(path).serialize(serializer)
}
