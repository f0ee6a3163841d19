//! Whose ring it is.

use super::header::Flaw;
use super::page::Page;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The process that wrote a ring, and what for. Texts are cut where they were too long.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identity {
    /// Process id, in the process's own pid namespace.
    pub pid: u32,
    /// When the process started, in clock ticks after boot.
    pub start: u64,
    /// The boot of the machine.
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
    pub(super) fn parse(page: Page<'_>) -> Result<Self, Flaw> {
        let path = |at, most| bytes(page, at, most).map(|bytes| PathBuf::from(OsString::from_vec(bytes)));
        let text = |at, most| bytes(page, at, most).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(Self {
            pid: page.u32(1024),
            start: page.u64(1032),
            boot: page.array(1040),
            pid_namespace: page.u64(1056),
            executable: path(1088, 1022)?,
            host: text(2112, 254)?,
            session: text(2368, 254)?,
            metadata: path(2624, 1022)?,
            channel: channel(&text(3648, 64)?)?,
        })
    }
}

/// A text: its length, and as many bytes.
fn bytes(page: Page<'_>, at: usize, most: usize) -> Result<Vec<u8>, Flaw> {
    let length = usize::from(page.u16(at));
    let bytes = if length <= most { page.slice(at + 2, length) } else { None };
    bytes
        .map(<[u8]>::to_vec)
        .ok_or_else(|| (at as u64, format!("a text of {length} bytes is longer than the {most} there is room for")))
}

/// The name of a channel becomes a part of file names: nothing else is let through.
fn channel(name: &str) -> Result<String, Flaw> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
        let name = name.escape_debug();
        return Err((3648, format!("`{name}` is no channel name: letters, digits, `_`, `-` and `.` make one")));
    }
    Ok(name.to_owned())
}
