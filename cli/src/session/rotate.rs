//! `tracectl rotate`: closes what was written so far as a trace by itself.

use super::{Reach, controller, tell_silent};
use crate::failure::{self, Outcome};
use crate::{Ended, output};
use clap::Args;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use tracepoint_control::Rotation;

/// Closes the CTF traces of a session that goes on as chunks that can be looked at, moved or removed
///
/// Each process goes on in the next chunk, `chunk-000002` and so on in the directory of its trace; no event is in two chunks, or in none.
/// Writes the directories that were closed, one per line.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl rotate errors
  tracectl rotate errors | xargs -r tracectl view
  tracectl rotate --json errors | jq '.chunks[]'

{}", failure::EXIT_CODES))]
pub(crate) struct Rotate {
    /// The session
    #[arg(value_name = "NAME")]
    name: String,
    /// Write one JSON object: `chunks`, `failures` and `not_acknowledged`
    #[arg(long)]
    json: bool,
    /// Use the run directory of this process, as it sees it
    #[arg(short, long, value_name = "PID")]
    pid: Option<u32>,
    #[command(flatten)]
    reach: Reach,
}

impl Rotate {
    pub(crate) fn run(&self) -> Ended {
        let controller = controller(self.pid)?;
        let session = controller.session(&self.name)?;
        let Rotation { generation, number, .. } = session.rotate()?;
        let waited = session.wait(generation, self.reach.timeout)?;
        tell_silent(&waited.silent);
        let (mut chunks, mut failures): (Vec<PathBuf>, Vec<String>) = (Vec::new(), Vec::new());
        for ack in &waited.acks {
            let Some(rotated) = ack.rotated.as_ref().filter(|rotated| rotated.number >= number) else { continue };
            chunks.extend(rotated.chunks.iter().cloned());
            let failed = rotated.error.as_ref();
            failures.extend(failed.map(|error| format!("process {} ({}): {error}", ack.process.pid, ack.name)));
        }
        for failure in &failures {
            output::note(failure);
        }
        if self.json {
            let chunks: Vec<_> = chunks.iter().map(|chunk| chunk.to_string_lossy()).collect();
            let silent: Vec<_> = waited.silent.iter().map(|process| process.info().pid).collect();
            output::json(&json!({ "chunks": chunks, "failures": failures, "not_acknowledged": silent }))?;
        } else {
            let mut out = output::raw();
            chunks.iter().try_for_each(|chunk| writeln!(out, "{}", chunk.display()))?;
            out.flush()?;
        }
        let well = failures.is_empty() && waited.silent.is_empty();
        Ok(if well { Outcome::Well } else { Outcome::Wanting })
    }
}
