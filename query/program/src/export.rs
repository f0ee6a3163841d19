//! `tracectl query export`, which is `tracectl export --parquet`.

use std::path::PathBuf;

use bytesize::ByteSize;
use clap::Args;
use serde_json::json;
use tracepoint_reader::Trace;
use tracepoint_store::{IngestOptions, IngestSummary, Store, ingest};

use crate::output::{self, Progress, counted};
use crate::{Outcome, VerbResult};

/// Writes traces into a store of Parquet files
///
/// A trace is stored completely or not at all, and only once: if the store has it already, it is refused. Losses and the account become tables next
/// to the events. Equivalent to `tracectl export --parquet STORE PATH`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl query export /srv/traces /tmp/trace
  tracectl query export --json /srv/traces /tmp/trace /var/tmp/shop.dt | jq .events
  tracectl query export s3://bucket/traces /tmp/trace
  tracectl export --parquet /srv/traces /tmp/trace")]
pub(crate) struct Export {
    /// A store, or a directory that is empty or does not exist; or `s3://BUCKET/PREFIX`, with credentials in the environment
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// A directory with one CTF trace or several below it, or a dt file. Several paths are merged
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Write one JSON object with counts: `output`, `events`, `lost_events`, `damage`, `parts`, `bytes`, …
    #[arg(long)]
    json: bool,
}

impl Export {
    pub(crate) fn run(&self) -> VerbResult {
        let trace = Trace::open_all(&self.paths)?;
        let store = Store::create(&self.store)?;
        let mut progress = Progress::new();
        let written = ingest(&store, &trace, IngestOptions::default(), &mut |done, total| progress.set(done, total))?;
        drop(progress);
        let IngestSummary { events, lost_events, losses_of_unknown_size, damage, unchecked, parts, bytes, .. } =
            written;
        let path = self.store.display();
        if self.json {
            let mut object = json!(written);
            object["output"] = path.to_string().into();
            output::json(&object)?;
        } else {
            let (events, parts, bytes) = (counted(events, "event"), counted(parts, "file"), ByteSize(bytes));
            output::line(&format!("{path}: {events} in {parts}, {bytes}"))?;
        }
        if lost_events > 0 || losses_of_unknown_size > 0 {
            let more = if losses_of_unknown_size > 0 { " or more" } else { "" };
            output::message("note", &format!("these traces have lost {}{more}", counted(lost_events, "event")));
        }
        if unchecked > 0 {
            let packets = counted(unchecked, "packet");
            output::message("note", &format!("{packets} without a checksum: changes of their bytes cannot be noticed"));
        }
        for damage in trace.metadata_damage() {
            output::message("note", &damage.to_string());
        }
        if damage > 0 {
            let (parts, are) = (counted(damage, "part"), if damage == 1 { "is" } else { "are" });
            let text = format!("{parts} of the trace {are} damaged: see the rows `damage` of the table `losses`");
            output::message("error", &text);
        }
        let gone: u64 = trace.dt_files().filter_map(|file| Some(file.summary().ok()?.gone_events)).sum();
        if gone > 0 {
            let gone = counted(gone, "event");
            output::message(
                "note",
                &format!("{gone} were overwritten in the dt file: see `overwritten` in the table `account`"),
            );
        }
        Ok(if damage > 0 { Outcome::Incomplete } else { Outcome::Success })
    }
}
