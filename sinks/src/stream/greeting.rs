//! Commands of the relay protocol at the beginning of a session, whose answers are waited for.

use super::connection::Control;
use super::session::ConnectionError;
use std::io::{self, ErrorKind};
use std::time::Instant;
use tracepoint_wire::Decoded;
use tracepoint_wire::relay::{Command, Reply};

pub(super) fn no_relay(answer: &str) -> ConnectionError {
    ConnectionError::Temporary(io::Error::new(
        ErrorKind::InvalidData,
        format!("the peer is no relay: it gave {answer}"),
    ))
}

/// Sends a command of the relay protocol and waits for its answer.
pub(super) fn ask(
    control: &mut Control,
    command: &Command<'_>,
    minor: u32,
    deadline: Instant,
) -> Result<Reply, ConnectionError> {
    command.encode(minor, control.output());
    loop {
        match Reply::decode(command, control.input(), minor) {
            Err(error) => return Err(no_relay(&error.to_string())),
            Ok(Decoded::Whole(reply, size)) => {
                control.consume(size);
                return Ok(reply);
            }
            Ok(Decoded::Needs(_)) => control.exchange(deadline)?,
        }
    }
}
