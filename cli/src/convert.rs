//! `tracectl convert`: between dt files and CTF directories.

use crate::failure::{Outcome, VerbResult};
use crate::message::{self, counted};
use crate::output;
use crate::progress::Bar;
use clap::Args;
use serde_json::json;
use std::io::{self, Write};
use std::path::PathBuf;
use tracepoint_reader::convert::{ConversionSummary, ConvertOptions, convert};

/// Converts between dt files and CTF directories
///
/// `babeltrace2` and Trace Compass read the directory. Packets that were overwritten in the dt file are reported as lost. A dt file has one
/// slot for each packet; with fewer slots (`--dt-slots`) it keeps the newest packets. PATH is not changed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl convert /var/tmp/shop.dt -o /tmp/shop && babeltrace2 /tmp/shop
  tracectl convert /tmp/trace -o /tmp/newest.dt --dt-slots 64
  tracectl convert --json /var/tmp/shop.dt -o /tmp/shop | jq .packets")]
pub(crate) struct Convert {
    /// A dt file of a session, or a directory with one CTF trace
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// The output: a directory that is empty or does not exist, or a file that does not exist
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Number of slots of the dt file, which keeps the newest N packets [default: the number of packets]
    #[arg(long, value_name = "N")]
    dt_slots: Option<u32>,
    /// Size of a slot of the dt file, in bytes [default: enough for the largest packet]
    #[arg(long, value_name = "BYTES")]
    slot_size: Option<u32>,
    /// Write one JSON object: `path`, `output`, `streams`, `packets`, `bytes`, `dropped`, `damage` and `changed`
    #[arg(long)]
    json: bool,
}

impl Convert {
    pub(crate) fn run(&self) -> VerbResult {
        let mut options = ConvertOptions::default();
        (options.slots, options.slot_size) = (self.dt_slots, self.slot_size);
        let mut bar = Bar::new();
        let converted = convert(&self.path, &self.output, options, |progress| {
            bar.set("converting", progress.done, progress.total);
        })?;
        drop(bar);
        if self.json {
            self.write_json(&converted)?;
        } else {
            self.write_text(&converted)?;
        }
        message::note_dropped(converted.dropped);
        if converted.changed {
            let path = self.path.display();
            message::note(&format!(
                "{path} changed during the conversion; packets that were overwritten then are missing"
            ));
        }
        for damage in &converted.damage {
            message::error(damage);
        }
        Ok(if converted.damage.is_empty() { Outcome::Success } else { Outcome::Incomplete })
    }

    fn write_text(&self, converted: &ConversionSummary) -> io::Result<()> {
        let ConversionSummary { streams, packets, bytes, .. } = converted;
        let mut out = output::styled();
        let (packets, streams) = (counted(*packets, "packet"), counted(*streams, "stream"));
        writeln!(out, "{}: {packets} of {streams}, {}", self.output.display(), counted(*bytes, "byte"))?;
        out.flush()
    }

    fn write_json(&self, converted: &ConversionSummary) -> io::Result<()> {
        let mut object = json!(converted);
        object["path"] = self.path.to_string_lossy().into();
        object["output"] = self.output.to_string_lossy().into();
        output::json(&object)
    }
}
