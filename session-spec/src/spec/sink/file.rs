//! Sinks that are files.

use super::default_size;
use crate::spec::SpecError;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// Default number of packets in a dt file.
const SLOTS: u32 = 256;

/// The treatment of earlier CTF traces in the path of a sink, when the session is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExistingTraces {
    /// They are removed.
    Replace,
    /// Traces are written to a new directory in the path that is named by the time, such as `20261123T162431Z`.
    Dated,
}

/// A directory in which each process makes a directory with its CTF trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CtfSinkSpec {
    /// An absolute path.
    #[serde(default)]
    pub path: PathBuf,
    /// Maximum number of bytes that a process writes; further events are lost and counted.
    #[serde(default = "default_size")]
    pub max_size: u64,
    /// Size in bytes at which the trace continues in a new chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotate_size: Option<u64>,
    /// Age in milliseconds at which the trace continues in a new chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotate_every_ms: Option<u64>,
    /// Number of chunks that each process keeps: the newest, within `max_size`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<u32>,
    /// The treatment of earlier traces in the path when the session is created. By default each process uses a free name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub existing: Option<ExistingTraces>,
}

impl CtfSinkSpec {
    pub(super) const fn new(path: PathBuf) -> Self {
        Self { path, max_size: default_size(), rotate_size: None, rotate_every_ms: None, keep: None, existing: None }
    }

    /// Limits the bytes written in each process; the events of further packets are lost and counted. The default is 1 GiB.
    #[must_use]
    pub const fn max_size(mut self, bytes: u64) -> Self {
        self.max_size = bytes;
        self
    }

    /// Sets the size in bytes at which the trace continues in a new chunk.
    #[must_use]
    pub const fn rotate_size(mut self, bytes: u64) -> Self {
        self.rotate_size = Some(bytes);
        self
    }

    /// Sets the age at which the trace continues in a new chunk.
    #[must_use]
    pub fn rotate_every(mut self, age: Duration) -> Self {
        self.rotate_every_ms = Some(u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Sets the number of chunks that are kept, the newest.
    #[must_use]
    pub const fn keep(mut self, chunks: u32) -> Self {
        self.keep = Some(chunks);
        self
    }

    /// Replaces the CTF traces that are in the directory when the session starts.
    #[must_use]
    pub const fn replace(mut self) -> Self {
        self.existing = Some(ExistingTraces::Replace);
        self
    }

    /// Writes the traces to a new directory in the path, named by the time when the session starts.
    #[must_use]
    pub const fn dated(mut self) -> Self {
        self.existing = Some(ExistingTraces::Dated);
        self
    }

    pub(super) fn check(&self) -> Result<(), SpecError> {
        if self.rotate_size == Some(0) || self.rotate_every_ms == Some(0) {
            return Err(SpecError::invalid("the size and the age of a chunk must be more than 0"));
        }
        if self.keep.is_some_and(|keep| keep < 2) {
            return Err(SpecError::invalid("`keep` must be at least 2: the current chunk, and a finished one"));
        }
        Ok(())
    }
}

/// A circular file with the newest packets of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DtSinkSpec {
    /// An absolute path of a file, used by one process, with files for other processes next to it; or a directory in which each process
    /// makes a file.
    #[serde(default)]
    pub path: PathBuf,
    /// Maximum size of the file.
    #[serde(default = "default_size")]
    pub max_size: u64,
    /// Number of packets in the file; the default is 256.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
}

impl DtSinkSpec {
    pub(super) const fn new(path: PathBuf) -> Self {
        Self { path, max_size: default_size(), slots: None }
    }

    /// Limits the size of the file. The default is 1 GiB.
    #[must_use]
    pub const fn max_size(mut self, bytes: u64) -> Self {
        self.max_size = bytes;
        self
    }

    /// Sets the number of packets in the file.
    #[must_use]
    pub const fn slots(mut self, slots: u32) -> Self {
        self.slots = Some(slots);
        self
    }

    /// The number of packets in the file: that which is set, or the default.
    pub fn packets(&self) -> u32 {
        self.slots.unwrap_or(SLOTS)
    }

    pub(super) fn check(&self) -> Result<(), SpecError> {
        match self.slots {
            Some(slots) if slots == 0 || slots > i32::MAX as u32 => {
                let most = i32::MAX;
                Err(SpecError::invalid(format!("the slots of a dt file must be from 1 to {most}, not {slots}")))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn check_room(&self, packet_size: usize) -> Result<(), SpecError> {
        let (slots, most) = (self.packets(), self.max_size);
        if (packet_size as u64).saturating_mul(slots.into()) <= most {
            return Ok(());
        }
        Err(SpecError::invalid(format!(
            "a dt file of {slots} packets of {packet_size} bytes exceeds the maximum of {most} bytes (`max_size`); give it fewer slots, \
             give the threads smaller rings, or raise `max_size`"
        )))
    }
}

/// Lines of text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TextSinkSpec {
    /// An absolute path, as of a [dt file](DtSinkSpec::path); `None` for the standard error of each process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Maximum number of bytes that a process writes into a file; further events are lost and counted.
    #[serde(default = "default_size")]
    pub max_size: u64,
}

impl TextSinkSpec {
    pub(super) const fn new(path: Option<PathBuf>) -> Self {
        Self { path, max_size: default_size() }
    }

    /// Limits the bytes written in each process; the events of further packets are lost and counted. The default is 1 GiB.
    #[must_use]
    pub const fn max_size(mut self, bytes: u64) -> Self {
        self.max_size = bytes;
        self
    }
}
