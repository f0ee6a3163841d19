//! `tracectl convert`: a dt file to a directory, and a directory to a dt file.

use crate::failure::{self, Outcome};
use crate::output::counted;
use crate::progress::Bar;
use crate::{Ended, output};
use clap::Args;
use serde_json::json;
use std::io::{self, Write};
use std::path::PathBuf;
use tracepoint_reader::convert::{ConvertOptions, Converted, convert};

/// Converts a trace: of a dt file it makes a CTF directory, of a CTF directory a dt file
///
/// The directory is read by `babeltrace2` and Trace Compass. What was overwritten in the dt file is lost, and told as that. A dt file has one slot
/// for each packet, so that it takes all of them, unless it is to have fewer: then it keeps the newest. Nothing in PATH is changed.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl convert /var/tmp/shop.dt -o /tmp/shop && babeltrace2 /tmp/shop
  tracectl convert /tmp/trace -o /tmp/newest.dt --dt-slots 64
  tracectl convert --json /var/tmp/shop.dt -o /tmp/shop | jq .packets

{}", failure::EXIT_CODES))]
pub(crate) struct Convert {
    /// A dt file of a session, or a directory with one CTF trace
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Where the trace goes: a directory that is empty or does not exist, or a file that does not exist
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// How many slots a dt file has: it keeps the newest N packets [default: as many as there are packets]
    #[arg(long, value_name = "N")]
    dt_slots: Option<u32>,
    /// Bytes of a slot of a dt file [default: what the largest packet needs]
    #[arg(long, value_name = "BYTES")]
    slot_size: Option<u32>,
    /// Write one JSON object: `path`, `output`, `streams`, `packets`, `bytes`, `dropped`, `damage` and `changed`
    #[arg(long)]
    json: bool,
}

impl Convert {
    pub(crate) fn run(&self) -> Ended {
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
        if converted.dropped > 0 {
            output::note(&format!("{} found no slot, the oldest", counted(converted.dropped, "packet")));
        }
        if converted.changed {
            let path = self.path.display();
            output::note(&format!("{path} was written to meanwhile; packets that were overwritten then are not in it"));
        }
        for damage in &converted.damage {
            failure::say_error(&format!("{damage}; not converted"));
        }
        Ok(if converted.damage.is_empty() { Outcome::Well } else { Outcome::Wanting })
    }

    fn write_text(&self, converted: &Converted) -> io::Result<()> {
        let Converted { streams, packets, bytes, .. } = converted;
        let mut out = output::coloured();
        let (packets, streams) = (counted(*packets, "packet"), counted(*streams, "stream"));
        writeln!(out, "{}: {packets} of {streams}, {}", self.output.display(), counted(*bytes, "byte"))?;
        out.flush()
    }

    fn write_json(&self, converted: &Converted) -> io::Result<()> {
        let mut out = output::raw();
        let mut object = json!(converted);
        object["path"] = self.path.to_string_lossy().into();
        object["output"] = self.output.to_string_lossy().into();
        serde_json::to_writer(&mut out, &object)?;
        writeln!(out)?;
        out.flush()
    }
}
