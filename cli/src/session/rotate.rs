//! `tracectl rotate`: closes the current chunks of a session's traces.

use super::acks::{of_process, report_silent};
use super::{SessionArguments, WaitArguments, controller};
use crate::failure::{Outcome, VerbResult};
use crate::{message, output};
use clap::Args;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use tracepoint_session_io::store::Rotation;

/// Closes the current chunk of each CTF trace
///
/// The closed chunk can be read, moved or removed. Each process continues in the next chunk, `chunk-000002` and so on in the directory of its trace;
/// every event is in exactly one chunk. Prints the directories that were closed, one per line.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl rotate errors
  tracectl rotate errors | xargs -r tracectl view
  tracectl rotate --json errors | jq '.chunks[]'")]
pub(crate) struct Rotate {
    #[command(flatten)]
    session: SessionArguments,
    /// Write one JSON object: `chunks`, `failures` and `not_acknowledged`
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    wait: WaitArguments,
}

impl Rotate {
    pub(crate) fn run(&self) -> VerbResult {
        let controller = controller(self.session.pid)?;
        let session = controller.session(&self.session.name)?;
        let Rotation { generation, number, .. } = session.rotate()?;
        let waited = session.wait(generation, self.wait.timeout)?;
        report_silent(&waited.silent);
        let (mut chunks, mut failures): (Vec<PathBuf>, Vec<String>) = (Vec::new(), Vec::new());
        for ack in &waited.acks {
            let Some(rotated) = ack.rotated.as_ref().filter(|rotated| rotated.number >= number) else { continue };
            chunks.extend(rotated.chunks.iter().cloned());
            failures.extend(rotated.error.as_ref().map(|error| of_process(ack, error)));
        }
        for failure in &failures {
            message::note(failure);
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
        let complete = failures.is_empty() && waited.silent.is_empty();
        Ok(if complete { Outcome::Success } else { Outcome::Incomplete })
    }
}
