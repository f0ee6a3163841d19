//! `tracectl dt info`: the header and a summary of a dt file.

use super::{finish, report_damage};
use crate::failure::{Outcome, VerbResult};
use crate::output;
use crate::table::{Table, text};
use anstyle::Style;
use clap::Args;
use datatrace::{DtReader, TaggedPostamble};
use serde_json::json;
use std::io::{self, Write};
use std::path::PathBuf;

/// Shows the header of a dt file, and summaries of its slots and postambles
///
/// Reads the file once, and checks the lengths, and the checksums of framed slots and tagged postambles.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl dt info ip_trace.dt
  tracectl dt info --json ip_trace.dt | jq .entries_bytes")]
pub(crate) struct Info {
    /// A dt file
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// Write one JSON object
    #[arg(long)]
    json: bool,
}

/// The contents of the file, without its header.
#[derive(Default)]
struct Contents {
    slots: u64,
    bytes: u64,
    oldest: Option<u32>,
    damage: Vec<String>,
    tagged: Vec<TaggedPostamble>,
    format: Option<String>,
}

impl Info {
    pub(crate) fn run(&self) -> VerbResult {
        let file = DtReader::open(&self.path)?;
        let mut contents = Contents::default();
        let mut outcome = Outcome::Success;
        let mut damaged = |error: &datatrace::ReadError, damage: &mut Vec<String>| {
            outcome = report_damage(error);
            damage.push(error.to_string());
        };
        for slot in file.slots() {
            match slot {
                Ok(slot) => {
                    contents.slots += 1;
                    contents.bytes += u64::from(slot.len());
                    contents.oldest = contents.oldest.or(Some(slot.index()));
                }
                Err(error) => damaged(&error, &mut contents.damage),
            }
        }
        contents.tagged = file.tagged_postambles().collect::<Result<_, _>>()?;
        match file.format() {
            Ok(format) => contents.format = format.map(|format| format.to_string()),
            Err(error) => damaged(&error, &mut contents.damage),
        }
        if self.json {
            self.write_json(&file, &contents)?;
        } else {
            write_text(&file, &contents)?;
        }
        finish(&file, &self.path, outcome)
    }

    fn write_json(&self, file: &DtReader, contents: &Contents) -> io::Result<()> {
        let header = file.header();
        let last = header.last();
        let tagged = contents.tagged.iter().map(|tagged| {
            let tag = tagged.tag.escape_ascii().to_string();
            json!({ "tag": tag, "offset": tagged.offset, "length": tagged.contents.len() })
        });
        output::json(&json!({
            "path": self.path.to_string_lossy(),
            "file_size": file.file_size(),
            "version": header.version().number(),
            "buffer_size": header.buffer_size(),
            "number_buffers": header.number_buffers(),
            "last_buffer_idx": last.map_or(-1, |last| i64::from(last.index)),
            "last_buffer_size": last.map_or(0, |last| last.size),
            "in_progress": header.in_progress(),
            "oldest": contents.oldest,
            "slots": contents.slots,
            "entries_bytes": contents.bytes,
            "format": contents.format,
            "damage": contents.damage,
            "postamble_location": header.postamble_location(),
            "postamble_size": file.postamble_size(),
            "tagged_postambles": tagged.collect::<Vec<_>>(),
        }))
    }
}

fn write_text(file: &DtReader, contents: &Contents) -> io::Result<()> {
    let header = file.header();
    let mut table = Table::new("");
    let mut row = |name: &str, value: String| table.row(Style::new(), [text(name), text(value)]);
    let version = match header.version() {
        datatrace::Version::ByteStream => "1, byte stream",
        datatrace::Version::Framed => "2, framed",
    };
    row("version", version.to_owned());
    row("bufferSize", header.buffer_size().to_string());
    row("numberBuffers", header.number_buffers().to_string());
    match header.last() {
        None => row("lastBufferIdx", "-1: nothing written".to_owned()),
        Some(last) => {
            let state = if last.size == 0 { ": being overwritten" } else { "" };
            row("lastBufferIdx", last.index.to_string());
            row("lastBufferSize", format!("{}{state}", last.size));
        }
    }
    let oldest = contents.oldest.map_or_else(String::new, |oldest| format!(", oldest first from slot {oldest}"));
    row("entries", format!("{} bytes in {} slots{oldest}", contents.bytes, contents.slots));
    if let Some(format) = &contents.format {
        row("format", format.clone());
    }
    row("damaged", contents.damage.len().to_string());
    row("postambles", format!("{} bytes at byte {}", file.postamble_size(), header.postamble_location()));
    let mut out = output::styled();
    table.write(&mut out)?;
    let mut tags = Table::new("  ");
    for tagged in &contents.tagged {
        let (length, offset) = (tagged.contents.len(), tagged.offset);
        let place = format!("{length} bytes at byte {offset}");
        tags.row(Style::new(), [text(tagged.tag.escape_ascii()), text(place)]);
    }
    tags.write(&mut out)?;
    out.flush()
}
