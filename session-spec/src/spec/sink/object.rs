//! Sinks that are objects of the program.

use super::default_size;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// An object that the program passed to its session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ObjectSinkSpec {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The path that it writes to, if it names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Without effect; every kind of sink has this key.
    #[serde(default = "default_size")]
    pub max_size: u64,
}

impl ObjectSinkSpec {
    pub(super) const fn new(name: String, path: Option<PathBuf>) -> Self {
        Self { name: Some(name), path, max_size: default_size() }
    }
}
