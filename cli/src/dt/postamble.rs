//! `tracectl dt postamble`: the bytes after the slots.

use super::{finish, hex};
use crate::failure::{EXIT_CODES, Outcome, VerbResult};
use crate::output;
use clap::Args;
use datatrace::DtReader;
use std::io::{self, Write};
use std::path::PathBuf;

/// Shows the postambles of a dt file
///
/// The program that wrote the file defines their contents; they are shown in hexadecimal, or written unchanged.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl dt postamble ip_trace.dt
  tracectl dt postamble --raw ip_trace.dt > counters
  tracectl dt postamble --json ip_trace.dt | jq -r .hex | xxd -r -p

{EXIT_CODES}"))]
pub(crate) struct Postamble {
    /// A dt file
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// Write their bytes unchanged
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    /// Write one JSON object: `path`, `offset`, `length` and `hex`
    #[arg(long)]
    json: bool,
}

impl Postamble {
    pub(crate) fn run(&self) -> VerbResult {
        let file = DtReader::open(&self.path)?;
        let mut out = output::raw();
        let offset = file.header().postamble_location();
        if self.json {
            let (path, length) = (self.path.to_string_lossy(), file.postamble_size());
            let members = [("path", path.into()), ("offset", offset.into()), ("length", length.into())];
            hex::write_json(&mut out, &members, file.postambles())?;
        } else if self.raw {
            io::copy(&mut file.postambles(), &mut out)?;
        } else {
            hex::write_lines(&mut out, file.postambles(), offset)?;
        }
        out.flush()?;
        finish(&file, &self.path, Outcome::Success)
    }
}
