//! The run directory of a process that may leave the root directory in which it found the run directory (`chroot`, `pivot_root`, `setns`).
//!
//! After that, paths below the run directory do not exist, or lead to a directory of the same name that no controller reads. They are
//! therefore opened relative to a descriptor that the process keeps. The same is done where a group shares the run directory, because a
//! member could replace any directory by a symbolic link.

use super::{DirError, OPEN_DIR, PrivateDir};
use crate::group::group;
use fileguard::ReopenableFd;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

static KEPT: OnceLock<KeptDirectory> = OnceLock::new();

struct KeptDirectory {
    root: (u64, u64),
    path: PathBuf,
    fd: ReopenableFd<OwnedFd>,
}

/// The root directory of this process.
fn root() -> Option<(u64, u64)> {
    std::fs::metadata("/").ok().map(|root| (root.dev(), root.ino()))
}

impl PrivateDir {
    /// Keeps this directory for the paths below it. Only the first call in a process has an effect.
    pub fn keep(&self) {
        let (Some(root), Ok(path), Ok(fd)) = (root(), std::path::absolute(&self.path), self.again()) else {
            return;
        };
        let _ = KEPT.set(KeptDirectory { root, path, fd });
    }

    fn again(&self) -> std::io::Result<ReopenableFd<OwnedFd>> {
        ReopenableFd::keeping(self.open.directory(".")?, &self.path, OPEN_DIR)
    }

    /// Opens the kept directory again if the program has closed its descriptor, while the path still leads there.
    pub fn keep_open() {
        let _ = KEPT.get().map(|kept| kept.fd.get());
    }

    /// Opens the directory at `path`, calling `step` for each component, if it is below the kept directory, and this process has another
    /// root directory by now, or a group shares the kept directory.
    pub(super) fn kept(path: &Path, step: fn(&Self, &str) -> Result<Self, DirError>) -> Option<Result<Self, DirError>> {
        let kept = KEPT.get()?;
        let below = path.strip_prefix(&kept.path).ok().filter(|_| group().is_some() || root() != Some(kept.root))?;
        let open = || Self::of(kept.path.clone(), kept.fd.directory(".")?);
        let failed = |source| DirError::Io { action: "open", path: kept.path.clone(), source };
        let first = open().map_err(failed).and_then(Self::checked);
        let names = below.components().filter_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        });
        Some(names.fold(first, |dir, name| step(&dir?, name)))
    }

    /// Returns whether this process has left the root directory in which it [kept](Self::keep) its run directory.
    pub fn has_left_root() -> bool {
        KEPT.get().is_some_and(|kept| root() != Some(kept.root))
    }
}
