//! Handles the answers of a relay, which arrive in the order of the commands.

use super::{ASK_AGAIN, Phase, Relay, VIEWER_TIME};
use crate::stream::delivery::Count;
use crate::stream::queue::Queue;
use crate::stream::session::ConnectionError;
use crate::stream::streams::Streams;
use std::time::Instant;
use tracepoint_wire::Decoded;
use tracepoint_wire::relay::{AddStream, Command, DataPending, Reply, ReturnCode};

/// The expected answer to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpectedReply {
    /// The handle of a stream.
    Stream(usize),
    /// The handle of the metadata.
    Metadata,
    /// A return code for this.
    Code(&'static str),
    /// The answer about pending packets of a stream, up to this number.
    Pending(usize, u64),
    /// The confirmation that the relay has handled everything before it. At the end it follows the answers about pending packets.
    Quiescent,
}

impl ExpectedReply {
    /// Returns a command with the same kind of answer.
    fn command(self) -> Command<'static> {
        match self {
            Self::Stream(_) | Self::Metadata => Command::AddStream(AddStream::default()),
            Self::Code(_) | Self::Quiescent => Command::StreamsSent,
            Self::Pending(..) => Command::DataPending { handle: 0, last: 0 },
        }
    }
}

impl Relay {
    /// Handles the answers that have arrived.
    pub(super) fn handle_replies(&mut self, queue: &Queue, streams: &mut Streams) -> Result<(), ConnectionError> {
        while let Some(expected) = self.expected.front().copied() {
            let reply = match Reply::decode(&expected.command(), self.control.input(), self.minor) {
                Ok(Decoded::Whole(reply, size)) => {
                    self.control.consume(size);
                    reply
                }
                Ok(Decoded::Needs(_)) => return Ok(()),
                Err(error) => return Err(refused(error)),
            };
            self.expected.pop_front();
            self.handle(expected, &reply, queue, streams)?;
        }
        if !self.control.input().is_empty() {
            return Err(refused("it answers what was not asked"));
        }
        Ok(())
    }

    fn handle(
        &mut self,
        expected: ExpectedReply,
        reply: &Reply,
        queue: &Queue,
        streams: &mut Streams,
    ) -> Result<(), ConnectionError> {
        match (expected, reply) {
            (ExpectedReply::Code(_), Reply::Code(ReturnCode::Ok)) => {}
            (ExpectedReply::Code(what), Reply::Code(code)) => return Err(refused(format!("{what}: {code}"))),
            (ExpectedReply::Stream(number), Reply::Stream { handle, code: ReturnCode::Ok }) => {
                self.streams.entry(number).or_default().handle = Some(*handle);
            }
            (ExpectedReply::Metadata, Reply::Stream { handle, code: ReturnCode::Ok }) => self.metadata = Some(*handle),
            (ExpectedReply::Stream(number), Reply::Stream { code, .. }) => {
                let name = streams.get(number).info.file_name();
                return Err(refused(format!("the stream {name}: {code}")));
            }
            (ExpectedReply::Metadata, Reply::Stream { code, .. }) => {
                return Err(refused(format!("the metadata: {code}")));
            }
            (ExpectedReply::Pending(number, last), Reply::Pending(DataPending::No)) => {
                let unconfirmed = &mut self.streams.entry(number).or_default().unconfirmed;
                while let Some((_, events)) = unconfirmed.front().copied().filter(|(sequence, _)| *sequence <= last) {
                    unconfirmed.pop_front();
                    queue.stored(streams.get(number).info.id, Count::packet(events));
                }
            }
            (ExpectedReply::Quiescent, Reply::Code(ReturnCode::Ok)) => {
                let is_stored = self.streams.values().all(|stream| stream.unconfirmed.is_empty());
                if is_stored {
                    self.phase = Phase::Confirmed(Instant::now() + VIEWER_TIME);
                } else {
                    self.phase = Phase::Confirming(Some(Instant::now() + ASK_AGAIN));
                }
            }
            (ExpectedReply::Pending(..), _) => {}
            (expected, reply) => return Err(refused(format!("{reply:?} in answer to {expected:?}"))),
        }
        Ok(())
    }
}

fn refused(what: impl std::fmt::Display) -> ConnectionError {
    ConnectionError::Temporary(std::io::Error::other(format!("the relay refuses {what}")))
}
