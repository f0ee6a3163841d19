//! `tracectl dt postamble`: what stands behind the slots.

use super::{hex, settle};
use crate::failure::{self, Outcome};
use crate::{Ended, output};
use clap::Args;
use datatrace::DtReader;
use std::io::{self, Write};
use std::path::PathBuf;

/// Shows the postambles of a dt file
///
/// What they contain is the business of whoever wrote them: they are shown in hexadecimal, or written as they are.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl dt postamble ip_trace.dt
  tracectl dt postamble --raw ip_trace.dt > counters
  tracectl dt postamble --json ip_trace.dt | jq -r .hex | xxd -r -p

{}", failure::EXIT_CODES))]
pub(crate) struct Postamble {
    /// A dt file
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// Write their bytes as they are
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    /// Write one JSON object: `path`, `offset`, `length` and `hex`
    #[arg(long)]
    json: bool,
}

impl Postamble {
    pub(crate) fn run(&self) -> Ended {
        let file = DtReader::open(&self.path)?;
        let mut out = output::raw();
        let offset = file.header().postamble_location();
        if self.json {
            let path = serde_json::to_string(&self.path.to_string_lossy()).map_err(io::Error::from)?;
            let length = file.postamble_size();
            write!(out, "{{\"path\":{path},\"offset\":{offset},\"length\":{length},\"hex\":\"")?;
            hex::write_digits(&mut out, file.postambles())?;
            writeln!(out, "\"}}")?;
        } else if self.raw {
            io::copy(&mut file.postambles(), &mut out)?;
        } else {
            hex::write_lines(&mut out, file.postambles(), offset)?;
        }
        out.flush()?;
        settle(&file, &self.path, Outcome::Well)
    }
}
