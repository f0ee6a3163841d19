//! Status and final summary of a session.

use std::fmt;
use tracepoint_run_dir::ack::Counters;
use tracepoint_sinks::account::{Account, EventAccount};
use tracepoint_sinks::consumer_loop::DrainCounters;
use tracepoint_sinks::{SinkError, SinkReport};

/// Status of a running session.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Status {
    /// Each sink, with its own view of the account.
    pub sinks: Vec<SinkReport>,
    /// Number of times that the session's thread has drained the rings, and that an event has woken it.
    pub drain: DrainCounters,
    /// The events of all channels, if there are several.
    together: Vec<EventAccount>,
}

impl Status {
    pub(super) fn new(sinks: Vec<SinkReport>, drain: DrainCounters) -> Self {
        let together = together(SinkReport::of_most(&sinks).map(|sink| &sink.account));
        Self { sinks, drain, together }
    }

    /// Returns the counters of each event up to the rings: fired, recorded, and lost by reason. An event in several channels is listed for
    /// each.
    pub fn events(&self) -> &[EventAccount] {
        events(self.account(), &self.together)
    }

    /// The account of the sink that stores most of the events; `None` for a session that has ended.
    pub(crate) fn account(&self) -> Option<&Account> {
        SinkReport::of_most(&self.sinks).map(|sink| &sink.account)
    }

    /// Returns the sum of the bytes that all sinks have written.
    pub fn bytes(&self) -> u64 {
        self.sinks.iter().map(|sink| sink.bytes).sum()
    }
}

/// A sink that failed.
#[derive(Debug, thiserror::Error)]
#[error("{sink}: {error}{}", if *refused > 0 { format!(" ({refused} packets were lost)") } else { String::new() })]
#[non_exhaustive]
pub struct SinkFailure {
    /// Its name.
    pub sink: String,
    /// Its first error.
    #[source]
    pub error: SinkError,
    /// Number of packets that it did not accept. Its account counts their events as lost, under `sink`.
    pub refused: u64,
}

/// Final summary of a session.
#[derive(Debug)]
#[non_exhaustive]
pub struct Summary {
    /// The session's name.
    pub session: String,
    /// The name and the account of each sink. The accounts agree in all counters up to the rings.
    pub accounts: Vec<(String, Account)>,
    /// Sum of the bytes that all sinks have written.
    pub bytes: u64,
    /// Number of pages lost because ring files were truncated while the session ran, if it
    /// [survives](super::SessionBuilder::survive_cut_off_rings) that. If it is not 0, the accounts are incomplete.
    pub cut_off_pages: u64,
    /// The events of all channels, if there are several.
    together: Vec<EventAccount>,
    /// Index of the account that decides which events were recorded.
    of_most: usize,
}

impl Summary {
    /// Creates the summary; returns an error that contains it if a sink failed.
    pub(super) fn new(
        session: String,
        reports: Vec<SinkReport>,
        cut_off_pages: u64,
    ) -> Result<Self, (Vec<SinkFailure>, Self)> {
        let mut failures = Vec::new();
        let most = SinkReport::of_most(&reports);
        let of_most =
            reports.iter().position(|report| most.is_some_and(|most| most.id == report.id)).unwrap_or_default();
        let together = together(most.map(|report| &report.account));
        let mut summary = Self { session, accounts: Vec::new(), bytes: 0, cut_off_pages, together, of_most };
        for report in reports {
            summary.bytes += report.bytes;
            summary.accounts.push((report.name.clone(), report.account));
            if let Some(error) = report.error {
                failures.push(SinkFailure { sink: report.name, error, refused: report.refused });
            }
        }
        if failures.is_empty() { Ok(summary) } else { Err((failures, summary)) }
    }

    /// The account of the sink that stores most of the events; a session has at least one.
    pub fn account(&self) -> Option<&Account> {
        self.accounts.get(self.of_most).map(|(_, account)| account)
    }

    /// Returns the counters of each event up to the rings: fired, recorded, and lost by reason. Listed by channel, the default one first:
    /// an event in several channels is listed for each. [`Account::channels`] has them per channel.
    pub fn events(&self) -> &[EventAccount] {
        events(self.account(), &self.together)
    }

    /// Returns the sums over all events, with the lost events by reason: before the rings, in them (`overwritten`), and by the sink that
    /// stores most (`sink`).
    pub fn counters(&self) -> Counters {
        let mut counters = Counters::default();
        if let Some(account) = self.account() {
            counters.add_account(account, self.bytes);
        }
        counters
    }
}

/// As in `flight: 301970 recorded, of which 282797 overwritten`.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.session, self.counters())
    }
}

/// Returns the events of all channels in order; empty if there is only one channel, whose own list is used.
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
