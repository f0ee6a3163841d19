//! The directories of a trace that a sink may have split into chunks.

use crate::chunk::chunk_number;
use std::fs;
use std::path::{Path, PathBuf};

/// The directory and the chunks in it, in order. While a trace is being split for the first time, its files are in both.
pub(super) fn of(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut chunks: Vec<_> = entries.filter_map(|path| Some((chunk_number(&path)?, path))).collect();
    chunks.retain(|(_, path)| path.is_dir());
    chunks.sort();
    std::iter::once(directory.to_owned()).chain(chunks.into_iter().map(|(_, path)| path)).collect()
}
