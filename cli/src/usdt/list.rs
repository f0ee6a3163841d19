//! `tracectl usdt list`: the notes of a program or a process.

use super::notes::{NotedFile, Source};
use crate::failure::{Outcome, VerbResult};
use crate::output;
use crate::table::{Table, text};
use anstyle::Style;
use clap::Args;
use serde_json::{Value, json};
use std::io::Write;
use tracepoint_reader::usdt::Note;

/// Shows the notes of a program or a process: events with the names and types of their fields
///
/// VIA is how tools get the values: as `arguments`, or, for events with more than 12 words, through the `address` of all words. Each number is a word
/// of 8 bytes; a text, a path and an array take two, address and length; an `Option` of a number takes two, 0 or 1 and the number.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl usdt list ./server
  tracectl usdt list -p 4242 --json | jq -r '.files[].notes[].event'")]
pub(crate) struct List {
    #[command(flatten)]
    source: Source,
    /// Include notes of other libraries, such as the C library, whose arguments have no names
    #[arg(long)]
    all: bool,
    /// Write one JSON object: `files`, each with `path` and `notes`
    #[arg(long)]
    json: bool,
}

impl List {
    pub(crate) fn run(&self) -> VerbResult {
        let files = self.source.read(self.all)?;
        if self.json {
            let files: Vec<_> = files.iter().map(as_json).collect();
            output::json(&json!({ "files": files }))?;
            return Ok(Outcome::Success);
        }
        let mut out = output::styled();
        for NotedFile { path, notes } in &files {
            writeln!(out, "{}", path.display())?;
            let mut table = Table::new("  ");
            table.heading(["EVENT", "VIA", "FIELDS"].map(text));
            for note in notes {
                table.row(Style::new(), [text(note.full_name()), text(via(note)), text(fields(note))]);
            }
            table.write(&mut out)?;
        }
        out.flush()?;
        Ok(Outcome::Success)
    }
}

fn via(note: &Note) -> &'static str {
    if note.is_by_address() { "address" } else { "arguments" }
}

fn fields(note: &Note) -> String {
    let Some(fields) = &note.fields else { return note.arguments.join(" ") };
    let fields: Vec<_> = fields.iter().map(|field| format!("{}: {}", field.name, field.ty)).collect();
    fields.join(", ")
}

fn as_json(file: &NotedFile) -> Value {
    let note = |note: &Note| {
        let fields = note.fields.as_ref().map(|fields| {
            fields.iter().map(|field| json!({ "name": field.name, "type": field.ty, "words": field.words() })).collect()
        });
        json!({
            "event": note.full_name(),
            "provider": note.provider,
            "name": note.name,
            "location": note.location,
            "semaphore": note.semaphore,
            "arguments": note.arguments,
            "by_address": note.is_by_address(),
            "fields": fields.unwrap_or(Value::Null),
        })
    };
    json!({ "path": file.path.to_string_lossy(), "notes": file.notes.iter().map(note).collect::<Vec<_>>() })
}
