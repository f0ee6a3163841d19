//! `tracectl usdt script`: command lines for bpftrace and SystemTap that print events with the names and types of their fields.
//!
//! The command lines are run as root, but the author of the file controls the contents of a note. Scripts therefore contain only names and paths made
//! of [plain characters](is_plain): no text in a file can become a part of a program or of a command line.

mod bpftrace;
mod systemtap;

use super::notes::{NotedFile, Source};
use crate::failure::{Failure, Outcome, VerbResult};
use crate::message;
use crate::output;
use clap::Args;
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use tracepoint_reader::usdt::{Note, NoteField};

/// Writes command lines for bpftrace and SystemTap that print events with their fields, one line for each event
///
/// Texts are printed as texts, floats as the bits of an `f64`, and arrays as bytes (bpftrace) or as address and length (SystemTap). The tools
/// need root, and switch the events on themselves: at once where the program has an agent, else when it calls `usdt::poll`. An event is left out
/// if a name in its note, or the path of its file, has characters that the shell or a tool could take for code.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl usdt script -p 4242 -e net:received | sudo bash
  tracectl usdt script ./server --tool systemtap
  tracectl usdt script -p 4242 --json | jq -r '.scripts[].program' > all.bt")]
pub(crate) struct Script {
    #[command(flatten)]
    source: Source,
    /// Only this event, by its whole name; may be repeated
    #[arg(short, long, value_name = "PROVIDER:NAME")]
    event: Vec<String>,
    /// The tool that the lines are for
    #[arg(long, value_name = "TOOL", value_enum, default_value_t)]
    tool: Tool,
    /// Write one JSON object: `scripts`, each with `event`, `program` and `command`, and `left_out`, each with `event` and `reason`
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Tool {
    #[default]
    Bpftrace,
    Systemtap,
}

struct EventScript {
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
        let (mut scripts, mut left_out) = (Vec::new(), Vec::new());
        for NotedFile { path, notes } in &files {
            for note in notes.iter().filter(|note| self.event.is_empty() || self.event.contains(&note.full_name())) {
                match self.script(path, note) {
                    Ok(script) => scripts.push(script),
                    Err(reason) => {
                        let (event, path) = (note.full_name(), path.to_string_lossy());
                        message::error(&output::in_line(&format!("`{event}` of {path} is left out: {reason}")));
                        left_out.push((event, reason));
                    }
                }
            }
        }
        if self.json {
            let script = |EventScript { event, program, command }: &EventScript| json!({ "event": event, "program": program, "command": command });
            let left_out = left_out.iter().map(|(event, reason)| json!({ "event": event, "reason": reason }));
            let scripts: Vec<_> = scripts.iter().map(script).collect();
            output::json(&json!({ "scripts": scripts, "left_out": left_out.collect::<Vec<_>>() }))?;
        } else {
            let mut out = output::raw();
            scripts.iter().try_for_each(|script| writeln!(out, "{}", script.command))?;
            out.flush()?;
        }
        Ok(if left_out.is_empty() { Outcome::Success } else { Outcome::Incomplete })
    }

    /// The script, or the reason why there is none.
    fn script(&self, path: &Path, note: &Note) -> Result<EventScript, &'static str> {
        let fields = note.fields.iter().flatten().map(|field| (&*field.name, ""));
        let names = [(&*note.provider, "-."), (&*note.name, "")];
        if !names.into_iter().chain(fields).all(|(name, more)| is_plain(name, more)) {
            return Err("a name in its note has characters that no name of an event or a field has");
        }
        let path = path.to_str().filter(|path| is_plain(path, "/.-+")).ok_or(
            "the path of its file has other characters than letters, digits and `/._-+`; copy the file to a plain path",
        )?;
        let (program, tool, process) = match self.tool {
            Tool::Bpftrace => (bpftrace::program(path, note), "bpftrace", "-p"),
            Tool::Systemtap => (systemtap::program(path, note), "stap", "-x"),
        };
        let program = program.ok_or("the tool has no name for the register of its arguments")?;
        let process = self.source.pid.map_or_else(String::new, |pid| format!(" {process} {pid}"));
        let command = format!("{tool}{process} -e '{program}'");
        Ok(EventScript { event: note.full_name(), program, command })
    }
}

/// True if a text consists of ASCII letters, digits, `_` and the characters of `more`.
fn is_plain(text: &str, more: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || more.contains(c))
}

fn events(files: &[NotedFile]) -> impl Iterator<Item = &Note> {
    files.iter().flat_map(|file| &file.notes)
}

/// The representation of a field in its words.
enum Shape<'n> {
    /// A number of this type.
    Number(&'n str),
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
            _ => Self::Number(ty),
        }
    }
}

/// The call that prints an event with its fields. `value` returns the conversion and the arguments for a shape that starts at the given word, or
/// `None` if the shape is not supported.
fn printf(note: &Note, value: impl Fn(Shape<'_>, usize) -> Option<(&'static str, String)>) -> Option<String> {
    let (mut format, mut arguments, mut at) = (note.full_name(), String::new(), 0);
    let mut add = |name: &str, shape, at| {
        let (conversion, values) = value(shape, at)?;
        // Writing to a string cannot fail.
        let _ = (write!(format, " {name}={conversion}"), write!(arguments, ", {values}"));
        Some(())
    };
    for field in note.fields.iter().flatten() {
        let name = &field.name;
        match Shape::of(field) {
            Shape::Number(ty) if field.optional().is_some() => {
                add(&format!("{name}?"), Shape::Number("bool"), at)?;
                add(name, Shape::Number(ty), at + 1)?;
            }
            shape => add(name, shape, at)?,
        }
        at += field.words();
    }
    Some(format!("printf(\"{format}\\n\"{arguments})"))
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
