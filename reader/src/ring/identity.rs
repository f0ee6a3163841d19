//! The process that owns a ring.

use super::header::InvalidField;
use crate::fields::Fields;
use crate::path_bytes;
use std::path::PathBuf;

/// The process and session of a ring. Texts that were too long are truncated.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identity {
    /// Process id, in the process's own pid namespace.
    pub pid: u32,
    /// Start time of the process, in clock ticks after boot.
    pub start: u64,
    /// The boot id of the machine.
    pub boot: [u8; 16],
    /// Inode of the process's pid namespace.
    pub pid_namespace: u64,
    /// Path of the executable.
    pub executable: PathBuf,
    /// Name of the host.
    pub host: String,
    /// Name of the session.
    pub session: String,
    /// Path of the metadata.
    pub metadata: PathBuf,
    /// Name of the channel.
    pub channel: String,
}

impl Identity {
    pub(super) fn parse(fields: Fields<'_>) -> Result<Self, InvalidField> {
        let path = |at, most| bytes(fields, at, most).map(|bytes| path_bytes::path(&bytes));
        let text = |at, most| bytes(fields, at, most).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(Self {
            pid: fields.u32(1024),
            start: fields.u64(1032),
            boot: fields.array(1040),
            pid_namespace: fields.u64(1056),
            executable: path(1088, 1022)?,
            host: text(2112, 254)?,
            session: text(2368, 254)?,
            metadata: path(2624, 1022)?,
            channel: channel(&text(3648, 64)?)?,
        })
    }
}

/// A text: its length in two bytes, then its bytes.
fn bytes(fields: Fields<'_>, at: usize, most: usize) -> Result<Vec<u8>, InvalidField> {
    let length = usize::from(fields.u16(at));
    let bytes = if length <= most { fields.slice(at + 2, length) } else { None };
    bytes
        .map(<[u8]>::to_vec)
        .ok_or_else(|| (at as u64, format!("a text has {length} bytes, and the field holds {most}")))
}

/// Checks the name of a channel, which becomes part of file names.
fn channel(name: &str) -> Result<String, InvalidField> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
        let name = name.escape_debug();
        return Err((3648, format!("`{name}` is not a channel name; use letters, digits, `_`, `-` and `.`")));
    }
    Ok(name.to_owned())
}
