//! `tracectl usdt script`: command lines for bpftrace and SystemTap that print events with the names and types of their fields.

mod bpftrace;
mod systemtap;

use super::notes::{Noted, Source};
use crate::failure::{EXIT_CODES, Failure, Outcome, VerbResult};
use crate::message;
use crate::output;
use clap::Args;
use serde_json::json;
use std::io::Write;
use std::path::Path;
use tracepoint_reader::usdt::{Note, NoteField};

/// Writes command lines for bpftrace and SystemTap that print events with their fields, one line for each event
///
/// Texts are printed as texts, floats as the bits of an `f64`, and arrays as bytes (bpftrace) or as address and length (SystemTap). The tools
/// need root, and switch the events on themselves: at once where the program has an agent, else when it calls `usdt::poll`.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl usdt script -p 4242 -e net:received | sudo bash
  tracectl usdt script ./server --tool systemtap
  tracectl usdt script -p 4242 --json | jq -r '.scripts[].program' > all.bt

{EXIT_CODES}"))]
pub(crate) struct Script {
    #[command(flatten)]
    source: Source,
    /// Only this event, by its whole name; may be repeated
    #[arg(short, long, value_name = "PROVIDER:NAME")]
    event: Vec<String>,
    /// The tool that the lines are for
    #[arg(long, value_name = "TOOL", value_enum, default_value_t)]
    tool: Tool,
    /// Write one JSON object: `scripts`, each with `event`, `program` and `command`
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Tool {
    #[default]
    Bpftrace,
    Systemtap,
}

/// A script that prints an event.
struct Printed {
    event: String,
    program: String,
    command: String,
}

impl Script {
    pub(crate) fn run(&self) -> VerbResult {
        let files = self.source.read(false)?;
        if let Some(unknown) = self.event.iter().find(|event| !events(&files).any(|note| note.full_name() == **event)) {
            return Err(Failure::Refused(format!(
                "there is no event `{unknown}` with a note; `tracectl usdt list` shows those there are"
            )));
        }
        let mut scripts = Vec::new();
        let mut outcome = Outcome::Success;
        for Noted { path, notes } in &files {
            for note in notes.iter().filter(|note| self.event.is_empty() || self.event.contains(&note.full_name())) {
                if let Some(script) = self.script(path, note) {
                    scripts.push(script);
                } else {
                    outcome = Outcome::Incomplete;
                    let (event, path) = (note.full_name(), path.display());
                    message::error(&format!(
                        "`{event}` is left out: the tools cannot name a file like {path}, or read its arguments"
                    ));
                }
            }
        }
        if self.json {
            let as_json = |Printed { event, program, command }: &Printed| json!({ "event": event, "program": program, "command": command });
            output::json(&json!({ "scripts": scripts.iter().map(as_json).collect::<Vec<_>>() }))?;
        } else {
            let mut out = output::raw();
            scripts.iter().try_for_each(|script| writeln!(out, "{}", script.command))?;
            out.flush()?;
        }
        Ok(outcome)
    }

    fn script(&self, path: &Path, note: &Note) -> Option<Printed> {
        let path = path.to_str().filter(|path| !path.contains(['"', '\\', ':', '\'', '\n']))?;
        let words = Words::of(note)?;
        let (program, tool) = match self.tool {
            Tool::Bpftrace => (bpftrace::program(path, note, words)?, "bpftrace"),
            Tool::Systemtap => (systemtap::program(path, note, words), "stap"),
        };
        let process = match (self.source.pid, self.tool) {
            (Some(pid), Tool::Bpftrace) => format!(" -p {pid}"),
            (Some(pid), Tool::Systemtap) => format!(" -x {pid}"),
            (None, _) => String::new(),
        };
        let command = format!("{tool}{process} -e '{program}'");
        Some(Printed { event: note.full_name(), program, command })
    }
}

fn events(files: &[Noted]) -> impl Iterator<Item = &Note> {
    files.iter().flat_map(|file| &file.notes)
}

/// A field, and the number of its first word.
type Placed<'n> = (&'n NoteField, usize);

/// The fields of an event with their words.
struct Words<'n> {
    fields: Vec<Placed<'n>>,
    by_address: bool,
}

impl<'n> Words<'n> {
    fn of(note: &'n Note) -> Option<Self> {
        let mut at = 0;
        let fields = note.fields.as_ref()?.iter().map(|field| {
            let first = at;
            at += field.words();
            (field, first)
        });
        Some(Self { fields: fields.collect(), by_address: note.is_by_address() })
    }
}

/// What the words of a field hold.
enum Shape<'n> {
    /// A number, and behind `true` whether there is one in the word before.
    Number { optional: bool, ty: &'n str },
    /// Address and length.
    Text,
    /// Address and number of elements, with the size of each in bytes.
    Elements(u32),
}

impl<'n> Shape<'n> {
    fn of(field: &'n NoteField) -> Self {
        let ty = field.optional().unwrap_or(&field.ty);
        match ty {
            "str" | "path" => Self::Text,
            _ if ty.starts_with('[') => Self::Elements(size(ty.trim_matches(['[', ']']))),
            _ => Self::Number { optional: field.optional().is_some(), ty },
        }
    }
}

/// The type of a number without `hex` and `enum`.
fn integer(ty: &str) -> &str {
    ty.rsplit(' ').next().unwrap_or(ty)
}

/// The size of a number in bytes, in memory.
fn size(ty: &str) -> u32 {
    match integer(ty) {
        "u8" | "i8" | "bool" => 1,
        "u16" | "i16" => 2,
        "u32" | "i32" | "f32" => 4,
        _ => 8,
    }
}
