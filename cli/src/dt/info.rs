//! `tracectl dt info`: what a dt file says of itself.

use super::{complain, settle};
use crate::failure::{self, Outcome};
use crate::{Ended, output};
use clap::Args;
use datatrace::{DtReader, Tagged};
use serde_json::json;
use std::io::{self, Write};
use std::path::PathBuf;

/// Shows the header of a dt file, what its slots hold, and what its postambles are
///
/// Reads the file once, and checks what can be checked: lengths, and checksums of framed slots and tagged postambles.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl dt info ip_trace.dt
  tracectl dt info --json ip_trace.dt | jq .entries_bytes

{}", failure::EXIT_CODES))]
pub(crate) struct Info {
    /// A dt file
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// Write one JSON object
    #[arg(long)]
    json: bool,
}

/// What was found beside the header.
#[derive(Default)]
struct Found {
    slots: u64,
    bytes: u64,
    oldest: Option<u32>,
    damage: Vec<String>,
    tagged: Vec<Tagged>,
    format: Option<String>,
}

impl Info {
    pub(crate) fn run(&self) -> Ended {
        let file = DtReader::open(&self.path)?;
        let mut found = Found::default();
        let mut outcome = Outcome::Well;
        for slot in file.slots() {
            match slot {
                Ok(slot) => {
                    found.slots += 1;
                    found.bytes += u64::from(slot.len());
                    found.oldest = found.oldest.or(Some(slot.index()));
                }
                Err(error) => {
                    outcome = complain(&error);
                    found.damage.push(error.to_string());
                }
            }
        }
        found.tagged = file.tagged_postambles().collect::<Result<_, _>>()?;
        match file.format() {
            Ok(format) => found.format = format.map(|format| format.to_string()),
            Err(error) => {
                outcome = complain(&error);
                found.damage.push(error.to_string());
            }
        }
        let written = if self.json { self.write_json(&file, &found) } else { Self::write_text(&file, &found) };
        written?;
        settle(&file, &self.path, outcome)
    }

    fn write_text(file: &DtReader, found: &Found) -> io::Result<()> {
        let mut out = output::raw();
        let header = file.header();
        let [version, kind] = match header.version() {
            datatrace::Version::ByteStream => ["1", "byte stream"],
            datatrace::Version::Framed => ["2", "framed"],
        };
        writeln!(out, "version            {version}, {kind}")?;
        writeln!(out, "bufferSize         {}", header.buffer_size())?;
        writeln!(out, "numberBuffers      {}", header.number_buffers())?;
        match header.last() {
            None => writeln!(out, "lastBufferIdx      -1: nothing written")?,
            Some(last) => {
                let doing = if last.size == 0 { ": being overwritten" } else { "" };
                writeln!(out, "lastBufferIdx      {}", last.index)?;
                writeln!(out, "lastBufferSize     {}{doing}", last.size)?;
            }
        }
        let oldest = found.oldest.map_or_else(String::new, |oldest| format!(", oldest first from slot {oldest}"));
        writeln!(out, "entries            {} bytes in {} slots{oldest}", found.bytes, found.slots)?;
        if let Some(format) = &found.format {
            writeln!(out, "format             {format}")?;
        }
        writeln!(out, "damaged            {}", found.damage.len())?;
        let (location, size) = (header.postamble_location(), file.postamble_size());
        writeln!(out, "postambles         {size} bytes at byte {location}")?;
        for tagged in &found.tagged {
            let (tag, length) = (tagged.tag.escape_ascii(), tagged.contents.len());
            writeln!(out, "  {tag}  {length} bytes at byte {}", tagged.offset)?;
        }
        out.flush()
    }

    fn write_json(&self, file: &DtReader, found: &Found) -> io::Result<()> {
        let mut out = output::raw();
        let header = file.header();
        let last = header.last();
        let tagged: Vec<_> = found
            .tagged
            .iter()
            .map(|tagged| {
                let tag = tagged.tag.escape_ascii().to_string();
                json!({ "tag": tag, "offset": tagged.offset, "length": tagged.contents.len() })
            })
            .collect();
        let object = json!({
            "path": self.path.to_string_lossy(),
            "file_size": file.file_size(),
            "version": header.version().number(),
            "buffer_size": header.buffer_size(),
            "number_buffers": header.number_buffers(),
            "last_buffer_idx": last.map_or(-1, |last| i64::from(last.index)),
            "last_buffer_size": last.map_or(0, |last| last.size),
            "in_progress": header.in_progress(),
            "oldest": found.oldest,
            "slots": found.slots,
            "entries_bytes": found.bytes,
            "format": found.format,
            "damage": found.damage,
            "postamble_location": header.postamble_location(),
            "postamble_size": file.postamble_size(),
            "tagged_postambles": tagged,
        });
        serde_json::to_writer(&mut out, &object)?;
        writeln!(out)?;
        out.flush()
    }
}
