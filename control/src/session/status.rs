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
    /// Of all channels, if there are several.
    together: Vec<EventAccount>,
}

impl Status {
    pub(super) fn new(sinks: Vec<SinkReport>) -> Self {
        let together = together(sinks.first().map(|sink| &sink.account));
        Self { sinks, together }
    }

    /// What became of each event up to the rings: fired, recorded, and lost by reason. Channel by channel: one that goes into several is
    /// there for each.
    pub fn events(&self) -> &[EventAccount] {
        events(self.account(), &self.together)
    }

    /// The account of the first sink; none of a session that has ended.
    pub(crate) fn account(&self) -> Option<&Account> {
        self.sinks.first().map(|sink| &sink.account)
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
    /// Of all channels, if there are several.
    together: Vec<EventAccount>,
}

impl Summary {
    /// The summary, or an error with it if a sink failed.
    pub(super) fn new(session: String, reports: Vec<SinkReport>, cut_off_pages: u64) -> Result<Self, SessionError> {
        let mut failures = Vec::new();
        let together = together(reports.first().map(|report| &report.account));
        let mut summary = Self { session, accounts: Vec::new(), bytes: 0, cut_off_pages, together };
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

    /// What became of each event up to the rings: fired, recorded, and lost by reason. Channel by channel, the default one first: one that
    /// goes into several is there for each. [`Account::channels`] tells them apart.
    pub fn events(&self) -> &[EventAccount] {
        events(self.account(), &self.together)
    }
}

/// The events of all channels one after the other; none where there is but one, which has them.
fn together(account: Option<&Account>) -> Vec<EventAccount> {
    match account {
        Some(account) if account.channels.len() > 1 => {
            account.channels.iter().flat_map(|channel| channel.events.iter().cloned()).collect()
        }
        _ => Vec::new(),
    }
}

fn events<'a>(account: Option<&'a Account>, together: &'a [EventAccount]) -> &'a [EventAccount] {
    match account.map(|account| &account.channels[..]) {
        Some([only]) => &only.events,
        _ => together,
    }
}
