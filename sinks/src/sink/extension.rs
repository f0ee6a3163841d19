//! The extension of the sink trait for the sinks of the tracepoint crates.

use crate::account::Account;
use crate::bandwidth::Bandwidth;
use crate::error::SinkError;
use crate::stream_stats::StreamWatch;
use std::path::PathBuf;
use std::time::Duration;

/// The place of a sink's packets, for recovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The format, in one word: `ctf`.
    pub format: &'static str,
    /// The absolute path.
    pub path: PathBuf,
}

/// When a sink is to begin its next chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// If the current chunk has reached its maximum size or age.
    IfDue,
    /// Now, if anything was written to the current chunk.
    Now,
}

/// Optional capabilities of a sink in addition to [`Sink`](super::Sink). The default methods do nothing.
///
/// This is not a public interface: it changes as the sinks of the tracepoint crates require.
#[doc(hidden)]
#[expect(unused_variables, reason = "parameters of methods that do nothing by default")]
pub trait SinkExtension {
    /// Returns the place of its packets, if it writes them in a format that can be read back. Recovery of a killed process looks for packets there.
    fn output(&self) -> Option<Output> {
        None
    }

    /// Adds to the account what the drain cannot know: the files of streams, and records in packets that the sink took and did not keep. Called for
    /// every account that the sink or a caller gets.
    fn adjust_account(&self, account: &mut Account) {}

    /// Returns whether [`checkpoint`](Self::checkpoint) is to be called.
    fn wants_checkpoints(&self) -> bool {
        false
    }

    /// Writes the account so far. Called when events were described, and every 500 ms while packets arrive.
    ///
    /// # Errors
    ///
    /// If it could not be written. The first error of a sink is reported at the end.
    fn checkpoint(&mut self, account: &Account) -> Result<(), SinkError> {
        Ok(())
    }

    /// Returns whether it can close the current chunk as a complete trace and begin another one.
    fn can_rotate(&self) -> bool {
        false
    }

    /// Closes the current chunk and begins the next. Returns the path of the closed one, or `None` if none was closed.
    ///
    /// # Errors
    ///
    /// If the next chunk cannot be begun. The sink continues in the current one.
    fn rotate(&mut self, when: Rotation) -> Result<Option<PathBuf>, SinkError> {
        Ok(None)
    }

    /// Returns whether packets should stay in the rings for now. The drain then takes none, for any sink, and checks again in the next round.
    fn is_full(&self) -> bool {
        false
    }

    /// Returns the age at which open packets are to be closed for this sink, if that is less than the default. Called before the sink begins.
    fn flush_age(&self) -> Option<Duration> {
        None
    }

    /// Notifies the sink that the drain has polled all rings and moved their packets. The next round ends within 200 ms, with or without packets. All
    /// packets with a record that were opened before `flushed` have been moved; `None` if that is unknown.
    fn round_ended(&mut self, flushed: Option<u64>) {}

    /// Returns the bandwidth caps of a sink that sends over a network, to be shared with other senders before it begins.
    fn bandwidth(&mut self) -> Option<&mut Bandwidth> {
        None
    }

    /// Returns the statistics of a sink that sends over a network, for recovery.
    fn stream(&self) -> Option<StreamWatch> {
        None
    }

    /// Returns whether packets are stored: by the sink itself, or by a peer that acknowledges them. Otherwise the reports of other sinks are
    /// preferred.
    fn stores(&self) -> bool {
        true
    }

    /// Returns whether the packets that it takes count towards the bytes of the session.
    fn keeps_packets(&self) -> bool {
        true
    }

    /// Closes files until the next call, if it can: many sinks of this process share few descriptors.
    fn close_files(&mut self) {}
}
