//! `tracectl load`: creates a session from a saved description.

use super::{ChangeArguments, SessionArguments, acks, controller};
use crate::failure::{Failure, VerbResult};
use clap::Args;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use tracepoint_session_spec::SessionSpec;

/// Creates a session from a saved description
///
/// The session is active if it was active when `tracectl save` wrote the file.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl load flight flight.toml
  sed s/1048576/65536/ flight.toml | tracectl load small -")]
pub(crate) struct Load {
    #[command(flatten)]
    session: SessionArguments,
    /// The file; `-` is the standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    reply: ChangeArguments,
}

impl Load {
    pub(crate) fn run(&self) -> VerbResult {
        let file = self.file.display();
        let bytes = self.read().map_err(|error| Failure::Refused(format!("cannot read {file}: {error}")))?;
        let saved = SessionSpec::parse_strictly(&bytes);
        let saved = saved.map_err(|error| {
            Failure::Refused(format!("{file} is not a session: {error}; `tracectl save NAME FILE` writes one"))
        })?;
        let controller = controller(self.session.pid)?;
        let spec = saved.another();
        let session = controller.create(&self.session.name, &spec)?;
        acks::wait(&session, spec.generation, &self.reply)
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        if self.file.as_os_str() == "-" { read(io::stdin().lock()) } else { read(File::open(&self.file)?) }
    }
}

/// Reads the file up to the maximum size of a description: `/dev/zero` has no end.
fn read(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(SessionSpec::MAX_SIZE + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
