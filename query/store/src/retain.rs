//! Removes the oldest days.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::days;
use crate::error::StoreError;
use crate::files::parts;
use crate::store::Store;

/// What stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Retention {
    /// Today and so many days before it, in UTC.
    Days(u32),
    /// The newest days that take at most so many bytes together; the newest one in any case.
    Bytes(u64),
}

/// What was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Retained {
    /// The days that were removed, as `2026-11-23`.
    pub removed_days: Vec<String>,
    /// Their files.
    pub removed_files: u64,
    /// Their size, in bytes.
    pub removed_bytes: u64,
    /// The size of what stays, in bytes.
    pub bytes: u64,
}

/// The files of one day, in all tables.
#[derive(Default)]
struct Day {
    directories: Vec<PathBuf>,
    files: u64,
    bytes: u64,
}

/// Removes the oldest days, of all tables: all or, after an error, none of them. Events without a time are in no day, and stay. Waits for another
/// process that compacts or removes, and has processes that complete a trace wait.
///
/// # Errors
/// [`StoreError::Io`].
pub fn retain(store: &Store, retention: Retention) -> Result<Retained, StoreError> {
    let _alone = store.maintain()?;
    // From the first look to the last change: a trace that is written meanwhile is removed as a whole, or not at all.
    let locked = store.lock()?;
    store.recover(&locked)?;
    let mut all: BTreeMap<String, Day> = BTreeMap::new();
    for (directory, files) in parts(store.path())? {
        let relative = directory.strip_prefix(store.path()).unwrap_or(&directory);
        let mut keys = relative.components().enumerate();
        let day = keys.find_map(|(at, key)| Some((at, key.as_os_str().to_str()?.strip_prefix("day=")?.to_owned())));
        let Some((at, day)) = day.filter(|(_, day)| day.starts_with(|digit: char| digit.is_ascii_digit())) else {
            continue;
        };
        let day = all.entry(day).or_default();
        let upper: PathBuf = relative.components().take(at + 1).collect();
        if !day.directories.contains(&upper) {
            day.directories.push(upper);
        }
        day.files += files.len() as u64;
        day.bytes += files.iter().map(|file| file.bytes).sum::<u64>();
    }
    let mut retained = Retained { bytes: all.values().map(|day| day.bytes).sum(), ..Retained::default() };
    let newest = all.keys().next_back().cloned().unwrap_or_default();
    let first = first_day(retention);
    let mut change = store.begin(&locked)?;
    for (name, day) in all {
        let stays = match retention {
            Retention::Days(_) => name >= first,
            Retention::Bytes(bytes) => retained.bytes <= bytes || name == newest,
        };
        if stays {
            break;
        }
        day.directories.into_iter().for_each(|directory| change.remove(directory));
        (retained.removed_files, retained.removed_bytes) =
            (retained.removed_files + day.files, retained.removed_bytes + day.bytes);
        retained.bytes -= day.bytes;
        retained.removed_days.push(name);
    }
    if retained.removed_days.is_empty() {
        change.abandon();
        return Ok(retained);
    }
    // A trace that is gone as a whole may be stored again.
    let begin = retained.removed_days.last().map(|day| format!("{day}~")).unwrap_or_default();
    store.traces_before(&begin)?.into_iter().for_each(|trace| change.remove(trace));
    store.commit(&locked, change)?;
    Ok(retained)
}

/// The first day that stays.
fn first_day(retention: Retention) -> String {
    let Retention::Days(days) = retention else { return String::new() };
    let today = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400).cast_signed();
    days::text(today - i64::from(days))
}
