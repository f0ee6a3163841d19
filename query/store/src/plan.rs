//! Selects the days to keep and to remove.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use tracepoint_tables::days;

use crate::files::Parts;

/// The data to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Retention {
    /// Today and this number of days before it, in UTC.
    Days(u32),
    /// The newest days up to this total size in bytes, and at least the newest one.
    Bytes(u64),
}

/// The result of a removal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RetentionSummary {
    /// The removed days, as `2026-11-23`.
    pub removed_days: Vec<String>,
    /// Number of removed files.
    pub removed_files: u64,
    /// Total size of the removed files in bytes.
    pub removed_bytes: u64,
    /// Total size of the remaining files in bytes.
    pub bytes: u64,
}

/// The data to remove.
pub(crate) struct Plan {
    /// The directories of days in all tables.
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) retained: RetentionSummary,
}

impl Plan {
    /// A text that sorts after the last removed day and before the remaining ones.
    pub(crate) fn end(&self) -> Option<String> {
        self.retained.removed_days.last().map(|day| format!("{day}~"))
    }
}

/// The files of one day, in all tables.
#[derive(Default)]
struct Day {
    directories: Vec<PathBuf>,
    files: u64,
    bytes: u64,
}

/// The directory of a day that contains a path in the store, and the day.
pub(crate) fn day_of(path: &Path) -> Option<(PathBuf, &str)> {
    let mut keys = path.components().enumerate();
    let (at, day) = keys.find_map(|(at, key)| Some((at, key.as_os_str().to_str()?.strip_prefix("day=")?)))?;
    day.starts_with(|digit: char| digit.is_ascii_digit()).then(|| (path.components().take(at + 1).collect(), day))
}

/// Selects the files to remove.
pub(crate) fn plan(parts: &Parts, retention: Retention) -> Plan {
    let mut all: BTreeMap<&str, Day> = BTreeMap::new();
    for (directory, files) in parts {
        let Some((upper, day)) = day_of(directory) else { continue };
        let day = all.entry(day).or_default();
        if !day.directories.contains(&upper) {
            day.directories.push(upper);
        }
        day.files += files.len() as u64;
        day.bytes += files.iter().map(|file| file.bytes).sum::<u64>();
    }
    let mut retained =
        RetentionSummary { bytes: all.values().map(|day| day.bytes).sum(), ..RetentionSummary::default() };
    let newest = all.keys().next_back().copied().unwrap_or_default();
    let first = first_day(retention);
    let mut directories = Vec::new();
    for (name, day) in &all {
        let stays = match retention {
            Retention::Days(_) => **name >= *first,
            Retention::Bytes(bytes) => retained.bytes <= bytes || *name == newest,
        };
        if stays {
            break;
        }
        directories.extend_from_slice(&day.directories);
        (retained.removed_files, retained.removed_bytes) =
            (retained.removed_files + day.files, retained.removed_bytes + day.bytes);
        retained.bytes -= day.bytes;
        retained.removed_days.push((*name).to_owned());
    }
    Plan { directories, retained }
}

/// The first day to keep.
fn first_day(retention: Retention) -> String {
    let Retention::Days(days) = retention else { return String::new() };
    let today = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400).cast_signed();
    days::text(today - i64::from(days))
}
