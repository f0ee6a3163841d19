//! Errors of registering a probe and of looking up a tracepoint by name.

use crate::site::SiteSwitchError;
use std::fmt;

/// A probe could not be registered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegisterError {
    /// The tracepoint's sites cannot be switched on.
    Switch(SiteSwitchError),
    /// The signature of a probe that was registered by name differs from the tracepoint's.
    Signature {
        /// `provider:name` of the tracepoint.
        tracepoint: String,
        /// The signature of the tracepoint, as Rust writes the type of a function pointer.
        expected: String,
        /// The signature of the probe.
        found: String,
    },
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(error) => error.fmt(f),
            Self::Signature { tracepoint, expected, found } => {
                write!(f, "a probe of {tracepoint} has the signature `{expected}`, this one has `{found}`")
            }
        }
    }
}

impl std::error::Error for RegisterError {}

impl From<SiteSwitchError> for RegisterError {
    fn from(error: SiteSwitchError) -> Self {
        Self::Switch(error)
    }
}

/// No tracepoint has the requested name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracepointNotFound {
    pub(crate) name: String,
    pub(crate) nearest: Vec<String>,
}

impl TracepointNotFound {
    /// The most similar names, best first; at most three.
    pub fn nearest(&self) -> &[String] {
        &self.nearest
    }
}

impl fmt::Display for TracepointNotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no tracepoint is called `{}`", self.name)?;
        match self.nearest.as_slice() {
            [] => write!(f, "; names are written `provider:name`"),
            nearest => write!(f, "; did you mean {}?", nearest.join(" or ")),
        }
    }
}

impl std::error::Error for TracepointNotFound {}
