//! `tracectl dt dump`: the entries of a dt file.

use super::{finish, hex, report_damage};
use crate::failure::{Failure, Outcome, VerbResult};
use crate::{message, output};
use clap::Args;
use datatrace::{DtReader, EntryBytes, FieldValue, Format, ReadError, Slot};
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::path::PathBuf;

/// Shows the entries of a dt file, oldest first
///
/// With a format, given by `--format` or in the file's postambles, one entry per line; without one, slot by slot in hexadecimal.
#[derive(Debug, Args)]
#[command(after_help = "\
Formats name the fields of an entry in order, NAME:TYPE or TYPE, followed by /x for hexadecimal.
Types are u8 to u128, i8 to i128, f32, f64, bool, and [N] for N bytes.

Examples:
  tracectl dt dump ip_trace.dt
  tracectl dt dump --format 'src:u32/x len:u16 proto:u8' ip_trace.dt
  tracectl dt dump --json --slot 2 ip_trace.dt | jq .fields")]
pub(crate) struct Dump {
    /// A dt file
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// The format of an entry; overrides the format in the file
    #[arg(short, long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Show hexadecimal bytes, even if the file has a format
    #[arg(long, conflicts_with = "format")]
    hex: bool,
    /// Show only this slot, or the entries that begin in it
    #[arg(long, value_name = "N")]
    slot: Option<u32>,
    /// Skip the first bytes of the oldest slot [default: up to its first whole entry]
    #[arg(long, value_name = "BYTES", conflicts_with = "hex")]
    skip: Option<u64>,
    /// Write one JSON object per line: an entry, or a slot
    #[arg(long)]
    json: bool,
}

impl Dump {
    pub(crate) fn run(&self) -> VerbResult {
        let file = DtReader::open(&self.path)?;
        if let Some(index) = self.slot {
            self.require_slot(&file, index)?;
        }
        let mut outcome = Outcome::Success;
        let format = match &self.format {
            Some(format) => Some(format.clone()),
            None if self.hex => None,
            None => file.format().unwrap_or_else(|error| {
                outcome = report_damage(&error);
                None
            }),
        };
        let shown = match format {
            Some(format) => self.show_entries(&file, &format)?,
            None => self.show_slots(&file)?,
        };
        finish(&file, &self.path, if shown == Outcome::Success { outcome } else { shown })
    }

    fn require_slot(&self, file: &DtReader, index: u32) -> Result<(), Failure> {
        let mut count = 0;
        for slot in file.slots() {
            count += 1;
            // Damaged slots are reported when they are shown.
            if slot.map_or(true, |slot| slot.index() == index) {
                return Ok(());
            }
        }
        let path = self.path.display();
        Err(Failure::Refused(format!(
            "{path} has no slot {index}: it has {count}, and `tracectl dt info {path}` shows them"
        )))
    }

    fn show_entries(&self, file: &DtReader, format: &Format) -> VerbResult {
        let size = format.size();
        let first = self.skip.or_else(|| file.first_entry(size));
        if first.is_none() {
            message::note("the file was not closed, and its oldest slot may begin within an entry: see --skip");
        }
        let mut entries = file.entries(size, first.unwrap_or(0));
        let write = |out: &mut _, entry: &EntryBytes| self.write_entry(out, format, entry);
        let outcome = self.show_each(&mut entries, |entry| entry.slot, write)?;
        if entries.rest() > 0 {
            message::note(&format!("the last {} bytes are not a whole entry of {size} bytes", entries.rest()));
        }
        Ok(outcome)
    }

    fn write_entry(&self, out: &mut impl Write, format: &Format, entry: &EntryBytes) -> io::Result<()> {
        if self.json {
            let fields: Map<String, Value> =
                format.values(&entry.bytes).map(|(field, value)| (field.name.clone(), in_json(&value))).collect();
            let object = json!({ "slot": entry.slot, "offset": entry.offset, "fields": fields });
            return output::json_line(out, &object);
        }
        let mut separator = "";
        for (field, value) in format.values(&entry.bytes) {
            write!(out, "{separator}{} = {value}", field.name)?;
            separator = ", ";
        }
        writeln!(out)
    }

    fn show_slots(&self, file: &DtReader) -> VerbResult {
        self.show_each(file.slots(), Slot::index, |out, slot| self.write_slot(out, slot))
    }

    /// Shows the parts that lie in the chosen slot.
    fn show_each<T>(
        &self,
        parts: impl Iterator<Item = Result<T, ReadError>>,
        slot: impl Fn(&T) -> u32,
        mut write: impl FnMut(&mut output::Raw, &T) -> io::Result<()>,
    ) -> VerbResult {
        let mut out = output::raw();
        let mut outcome = Outcome::Success;
        for part in parts {
            match part {
                Ok(part) if self.slot.is_none_or(|only| only == slot(&part)) => write(&mut out, &part)?,
                Ok(_) => {}
                Err(error) => {
                    out.flush()?;
                    outcome = report_damage(&error);
                }
            }
        }
        out.flush()?;
        Ok(outcome)
    }

    fn write_slot(&self, out: &mut impl Write, slot: &Slot) -> io::Result<()> {
        let (index, offset, length) = (slot.index(), slot.offset(), slot.len());
        if self.json {
            let members = [("slot", index.into()), ("offset", offset.into()), ("length", length.into())];
            return hex::write_json(out, &members, slot.reader());
        }
        writeln!(out, "slot {index}: {length} bytes at byte {offset}")?;
        hex::write_lines(out, slot.reader(), offset)
    }
}

/// Numbers that JSON readers represent exactly become numbers, all others text.
fn in_json(value: &FieldValue) -> Value {
    match value {
        FieldValue::Unsigned(number, false) => {
            u64::try_from(*number).map_or_else(|_| number.to_string().into(), Value::from)
        }
        FieldValue::Signed(number) => i64::try_from(*number).map_or_else(|_| number.to_string().into(), Value::from),
        FieldValue::Float32(number) if number.is_finite() => f64::from(*number).into(),
        FieldValue::Float64(number) if number.is_finite() => (*number).into(),
        FieldValue::Bool(value) => (*value).into(),
        other => other.to_string().into(),
    }
}
