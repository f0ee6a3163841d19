//! `tracectl dt postamble`: the bytes after the slots.

use super::{finish, hex};
use crate::failure::{Failure, Outcome, VerbResult};
use crate::output;
use clap::Args;
use datatrace::DtReader;
use std::io::{self, Read, Write};
use std::path::PathBuf;

/// Shows the postambles of a dt file
///
/// The program that wrote the file defines their contents; they are shown in hexadecimal, or written unchanged.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl dt postamble ip_trace.dt
  tracectl dt postamble --raw ip_trace.dt > counters
  tracectl dt postamble --tag args --raw shop.dt          (one that a session's program has added)
  tracectl dt postamble --json ip_trace.dt | jq -r .hex | xxd -r -p")]
pub(crate) struct Postamble {
    /// A dt file
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// Show only the newest contents of the postamble with this tag of four characters, as set by the program of the session
    #[arg(long, value_name = "TAG", value_parser = tag)]
    tag: Option<[u8; 4]>,
    /// Write their bytes unchanged
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    /// Write one JSON object: `path`, `offset` (with --tag: null), `length` and `hex`
    #[arg(long)]
    json: bool,
}

impl Postamble {
    pub(crate) fn run(&self) -> VerbResult {
        let file = DtReader::open(&self.path)?;
        if let Some(tag) = self.tag {
            let Some(newest) = file.tagged_postamble(tag)? else {
                let (path, tag) = (self.path.display(), tag.escape_ascii());
                return Err(Failure::Refused(format!("{path}: there is no postamble with the tag `{tag}`")));
            };
            return self.show(&file, None, newest.contents.len() as u64, newest.contents.as_slice());
        }
        let offset = file.header().postamble_location();
        self.show(&file, Some(offset), file.postamble_size(), file.postambles())
    }

    fn show(&self, file: &DtReader, offset: Option<u64>, length: u64, mut bytes: impl Read) -> VerbResult {
        let mut out = output::raw();
        if self.json {
            let path = self.path.to_string_lossy();
            let members = [("path", path.into()), ("offset", offset.into()), ("length", length.into())];
            hex::write_json(&mut out, &members, bytes)?;
        } else if self.raw {
            io::copy(&mut bytes, &mut out)?;
        } else {
            hex::write_lines(&mut out, bytes, offset.unwrap_or(0))?;
        }
        out.flush()?;
        finish(file, &self.path, Outcome::Success)
    }
}

fn tag(text: &str) -> Result<[u8; 4], String> {
    text.as_bytes().try_into().map_err(|_| "a tag has four bytes".to_owned())
}
