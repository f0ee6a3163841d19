//! `tracectl load`: makes a session as it was written down.

use super::{Reach, controller, settle};
use crate::Ended;
use crate::failure::{self, Failure};
use clap::Args;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use tracepoint_control::SessionSpec;

/// Makes a session of a file that `tracectl save` wrote, active if that one was
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl load flight flight.toml
  sed s/1048576/65536/ flight.toml | tracectl load small -

{}", failure::EXIT_CODES))]
pub(crate) struct Load {
    /// The name of the session
    #[arg(value_name = "NAME")]
    name: String,
    /// The file; `-` is the standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Use the run directory of this process, as it sees it
    #[arg(short, long, value_name = "PID")]
    pid: Option<u32>,
    #[command(flatten)]
    reach: Reach,
}

impl Load {
    pub(crate) fn run(&self) -> Ended {
        let file = self.file.display();
        let bytes = self.read().map_err(|error| Failure::Senseless(format!("cannot read {file}: {error}")))?;
        let read = SessionSpec::parse_strictly(&bytes);
        let read = read.map_err(|error| Failure::Senseless(format!("{file} is no session: {error}")))?;
        let controller = controller(self.pid)?;
        let spec = read.another();
        let session = controller.create(&self.name, &spec)?;
        settle(&session, spec.generation, self.reach.timeout)
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        if self.file.as_os_str() != "-" {
            return read(File::open(&self.file)?);
        }
        read(io::stdin().lock())
    }
}

/// All of it, or more than a session may have: `/dev/zero` has no end.
fn read(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(SessionSpec::MAX_SIZE + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
