//! Files that are one JSON value.

use crate::private_dir::PrivateDir;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;

/// Maximum length of a file that is read, in bytes.
const MAX_JSON: u64 = 64 << 20;

/// Reads a JSON file.
pub fn read_json<T: DeserializeOwned>(dir: &PrivateDir, name: &str) -> io::Result<T> {
    Ok(serde_json::from_slice(&dir.read_file(name, MAX_JSON)?)?)
}

/// Replaces a JSON file whose only writer is this process.
pub fn replace_json<T: Serialize>(dir: &PrivateDir, name: &str, value: &T) -> io::Result<()> {
    dir.replace(name, &serde_json::to_vec(value)?)
}

/// The same, but also works on a full file system.
pub fn replace_json_with_spare<T: Serialize>(dir: &PrivateDir, name: &str, value: &T) -> io::Result<()> {
    dir.replace_with_spare(name, &serde_json::to_vec(value)?)
}
