//! What some sinks do beyond taking packets.

use crate::account::Account;
use crate::error::SinkError;
use std::path::PathBuf;

/// Where a sink keeps what it gets, so that it can be found without the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The format, in one word: `ctf`.
    pub format: &'static str,
    /// The absolute path.
    pub path: PathBuf,
}

/// When a sink shall go on in its next chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// If the size or the age that it was given for a chunk is reached.
    IfDue,
    /// Now, if anything was written to the present chunk.
    Now,
}

/// What a sink can do beyond [`Sink`](super::Sink). Each method does nothing unless it is written.
///
/// This is not a public interface: it changes as the sinks of the tracepoint crates need.
#[doc(hidden)]
pub trait SinkExtension {
    /// Where it keeps whole packets in a format that can be read back. What a process had passed on before it was killed is looked for
    /// there.
    fn output(&self) -> Option<Output> {
        None
    }

    /// Corrects the account by what the drain cannot know: the files of streams, and records in packets that the sink took and has not
    /// kept. Called for each account that the sink or a reader of reports gets.
    fn adjust_account(&self, account: &mut Account) {
        let _ = account;
    }

    /// Whether [`checkpoint`](Self::checkpoint) is to be called.
    fn wants_checkpoints(&self) -> bool {
        false
    }

    /// The account so far, for sinks that keep it while the trace goes on. Called when events were described, and every 500 ms while
    /// packets come.
    ///
    /// # Errors
    ///
    /// If it could not be written. The first error of a sink is reported at the end.
    fn checkpoint(&mut self, account: &Account) -> Result<(), SinkError> {
        let _ = account;
        Ok(())
    }

    /// Whether it can close what it has as a trace by itself, and go on in another place.
    fn can_rotate(&self) -> bool {
        false
    }

    /// Closes the present chunk, and goes on in the next: the path of the closed chunk, or `None` if none was closed.
    ///
    /// # Errors
    ///
    /// If the next chunk cannot be begun. The sink then goes on in the present one.
    fn rotate(&mut self, when: Rotation) -> Result<Option<PathBuf>, SinkError> {
        let _ = when;
        Ok(None)
    }

    /// The drain has polled all rings, and the sink got what they held. The next round ends within 200 ms, whether packets come or not.
    fn round_ended(&mut self) {}
}
