//! `tracectl remote`: the part of `record --on` that runs on each host.
//!
//! ```text
//!   record --on                        remote
//!     RSH HOST tracectl remote  ─────▶   starts
//!                               ◀─────   Ready, a line on its standard output
//!     Request, a line           ─────▶   records, and streams to the collector of `record --on`
//!     end of the standard input ─────▶   ends the recording, as Ctrl-C does
//!                               ◀─────   the report of `record --json`, a line, unless it has failed; EndReport, a line
//! ```
//!
//! The arguments are sent as data, so that they need no quoting for any shell. If the connection breaks, the standard input ends, and the recording
//! with it.

use crate::failure::{self, Failure, Outcome, VerbResult};
use crate::{Arguments, Verb, output};
use clap::{Args, Parser};
use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};
use std::env;
use std::fs::{File, Permissions};
use std::io::{BufRead, Read, Write, stdin};
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;

/// The version of this protocol.
pub(super) const FORMAT: u32 = 2;
/// Set by sshd: the client's address and port as seen by the server, followed by the server's.
const SSH_CONNECTION: &str = "SSH_CONNECTION";

/// Records for `record --on`, which starts this verb on each host
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct Remote {}

/// Where a recording runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Side {
    /// On the host of its user.
    #[default]
    Own,
    /// On a host of `record --on`, whose dialogue has the standard input and output.
    Remote,
}

/// The first line sent by the remote side.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ready {
    /// [`FORMAT`].
    pub(super) remote: u32,
    /// The version of the program, for messages.
    pub(super) version: String,
    /// The address at which the host sees the other side, if known.
    pub(super) seen_as: Option<IpAddr>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    /// The arguments of `tracectl`, from `record` on.
    pub(super) arguments: Vec<String>,
    /// The shared key of the collector.
    pub(super) key: String,
}

/// The last line of the remote side. Child processes of the command may keep the connection open for longer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EndReport {
    /// The exit code of `record`.
    pub(super) exit_code: u8,
}

impl Remote {
    #[expect(clippy::unused_self, reason = "every verb has it")]
    pub(crate) fn run(&self) -> VerbResult {
        let seen_as = env::var(SSH_CONNECTION).ok().and_then(|text| text.split(' ').next()?.parse().ok());
        output::json(&Ready { remote: FORMAT, version: env!("CARGO_PKG_VERSION").to_owned(), seen_as })?;
        let outcome = failure::outcome(Self::record());
        output::json(&EndReport { exit_code: outcome.code() })?;
        Ok(outcome)
    }

    fn record() -> VerbResult {
        let mut line = String::new();
        if stdin().lock().read_line(&mut line)? == 0 {
            // Another host cannot take part; the other side has reported it.
            return Ok(Outcome::Success);
        }
        let request: Request = serde_json::from_str(&line).map_err(|_| {
            Failure::Refused("no request came: this verb is started by `tracectl record --on`".to_owned())
        })?;
        // The key is in no named file, which might stay behind, and not in the arguments, which other users can see.
        let file = in_memory(&request.key)?;
        let key_file = format!("--key-file=/proc/self/fd/{}", file.as_raw_fd());
        let mut arguments = vec!["tracectl"];
        arguments.extend(request.arguments.iter().map(String::as_str));
        // Directly after the verb, because a command to record may follow.
        arguments.insert(2.min(arguments.len()), &key_file);
        let parsed = Arguments::try_parse_from(arguments).map_err(|error| Failure::Usage(error.to_string()))?;
        let Verb::Record(mut record) = parsed.verb else {
            return Err(Failure::Usage("only `record` can be requested".to_owned()));
        };
        record.side = Side::Remote;
        record.run()
    }
}

/// An anonymous file that only its owner can use.
fn in_memory(text: &str) -> Result<File, Failure> {
    let mut file = File::from(memfd_create("key", MemfdFlags::CLOEXEC).map_err(std::io::Error::from)?);
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

/// Waits until the other side closes the standard input or disappears.
pub(super) fn wait_for_the_end() {
    let mut bytes = [0; 64];
    while stdin().lock().read(&mut bytes).is_ok_and(|count| count > 0) {}
}
