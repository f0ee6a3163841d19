//! `tracectl query compact` and `retain`.

use std::path::PathBuf;

use bytesize::ByteSize;
use clap::{ArgGroup, Args};
use tracepoint_store::{CompactionSummary, Retention, RetentionSummary, Store, compact, retain};

use crate::output::{self, counted};
use crate::{Outcome, VerbResult};

/// Merges small files into few large ones
///
/// In each partition, replaces files that are smaller than the target by files of about that size with the same rows. A query that runs meanwhile may
/// see rows of one partition twice.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl query compact /srv/traces
  tracectl query compact /srv/traces --target 32MiB --json")]
pub(crate) struct Compact {
    /// The store: a directory, or `s3://BUCKET/PREFIX`
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// Files of at least this size stay unchanged, such as 32MiB
    #[arg(long, value_name = "SIZE", default_value = "128MiB")]
    target: ByteSize,
    /// Write one JSON object: `partitions`, `files_before`, `files_after`, `bytes_before`, `bytes_after`
    #[arg(long)]
    json: bool,
}

impl Compact {
    pub(crate) fn run(&self) -> VerbResult {
        let compacted = compact(&Store::open(&self.store)?, self.target.as_u64())?;
        if self.json {
            output::json(&compacted)?;
        } else {
            let CompactionSummary { partitions, files_before, files_after, bytes_before, bytes_after, .. } = compacted;
            let (before, after) = (ByteSize(bytes_before), ByteSize(bytes_after));
            let files = counted(files_before, "file");
            let partitions = counted(partitions, "partition");
            output::line(&format!("{partitions}: {files} of {before} replaced by {files_after} of {after}"))?;
        }
        Ok(Outcome::Success)
    }
}

/// Removes the oldest days
///
/// A day is a UTC day. Its events, losses and accounts are removed together. Events without a time belong to no day, and stay.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("retention").required(true), after_help = "\
Examples:
  tracectl query retain /srv/traces --days 30
  tracectl query retain /srv/traces --size 500GiB --json")]
pub(crate) struct Retain {
    /// The store: a directory, or `s3://BUCKET/PREFIX`
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// Keep today and the N days before it
    #[arg(long, value_name = "N", group = "retention")]
    days: Option<u32>,
    /// Keep the newest days whose total size does not exceed this, and at least one day: 500GiB
    #[arg(long, value_name = "SIZE", group = "retention")]
    size: Option<ByteSize>,
    /// Write one JSON object: `removed_days`, `removed_files`, `removed_bytes`, `bytes`
    #[arg(long)]
    json: bool,
}

impl Retain {
    pub(crate) fn run(&self) -> VerbResult {
        let retention = match (self.days, self.size) {
            (Some(days), _) => Retention::Days(days),
            (None, size) => Retention::Bytes(size.unwrap_or_default().as_u64()),
        };
        let retained = retain(&Store::open(&self.store)?, retention)?;
        if self.json {
            output::json(&retained)?;
        } else {
            let RetentionSummary { removed_days, removed_files, removed_bytes, bytes, .. } = &retained;
            let days = counted(removed_days.len() as u64, "day");
            let (files, size) = (counted(*removed_files, "file"), ByteSize(*removed_bytes));
            output::line(&format!("{days} removed ({files}, {size}); {} stay", ByteSize(*bytes)))?;
        }
        Ok(Outcome::Success)
    }
}
