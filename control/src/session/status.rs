//! How a session fares, and how it ended.

use super::{SessionError, SinkFailure};
use tracepoint_sinks::SinkReport;
use tracepoint_sinks::account::{Account, EventAccount};

/// How a running session fares.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Status {
    /// Each sink, with the account as it sees it.
    pub sinks: Vec<SinkReport>,
}

impl Status {
    pub(super) const fn new(sinks: Vec<SinkReport>) -> Self {
        Self { sinks }
    }

    /// What became of each event up to the rings: fired, recorded, and lost by reason.
    pub fn events(&self) -> &[EventAccount] {
        events(self.sinks.first().map(|sink| &sink.account))
    }

    /// Bytes that all sinks together took.
    pub fn bytes(&self) -> u64 {
        self.sinks.iter().map(|sink| sink.bytes).sum()
    }
}

/// How a session ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Summary {
    /// The session's name.
    pub session: String,
    /// Each sink: its name, and its account. Up to the rings all accounts say the same.
    pub accounts: Vec<(String, Account)>,
    /// Bytes that all sinks together took.
    pub bytes: u64,
    /// Pages of ring files that were cut off while the session ran, where that is
    /// [survived](super::SessionBuilder::survive_cut_off_rings). If there were any, the accounts are not complete.
    pub cut_off_pages: u64,
}

impl Summary {
    /// The summary, or an error with it if a sink failed.
    pub(super) fn new(session: String, reports: Vec<SinkReport>, cut_off_pages: u64) -> Result<Self, SessionError> {
        let mut failures = Vec::new();
        let mut summary = Self { session, accounts: Vec::new(), bytes: 0, cut_off_pages };
        for report in reports {
            summary.bytes += report.bytes;
            summary.accounts.push((report.name.clone(), report.account));
            if let Some(error) = report.error {
                failures.push(SinkFailure { sink: report.name, error, refused: report.refused });
            }
        }
        if failures.is_empty() {
            Ok(summary)
        } else {
            Err(SessionError::Sinks { failures, summary: Box::new(summary) })
        }
    }

    /// The account of the first sink; a session has at least one.
    pub fn account(&self) -> Option<&Account> {
        self.accounts.first().map(|(_, account)| account)
    }

    /// What became of each event up to the rings: fired, recorded, and lost by reason.
    pub fn events(&self) -> &[EventAccount] {
        events(self.account())
    }
}

fn events(account: Option<&Account>) -> &[EventAccount] {
    account.and_then(|account| account.channels.first()).map_or(&[], |channel| &channel.events)
}
