//! What the tests of sessions share: babeltrace2, the reader's books, and a place for traces.

#![allow(dead_code, reason = "every test uses its part of this")]

use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use tracepoint_control::Summary;
use tracepoint_control::sinks::account::{Account, EventAccount};

pub(crate) type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A directory that goes away by itself.
pub(crate) fn place() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// What babeltrace2 makes of traces.
pub(crate) struct Viewed {
    /// One line for each event.
    pub(crate) lines: Vec<String>,
    /// What it complains of.
    pub(crate) warnings: String,
}

impl Viewed {
    /// How many events it says were discarded.
    pub(crate) fn discarded_events(&self) -> u64 {
        self.discarded("event")
    }

    /// How many packets it says were discarded.
    pub(crate) fn discarded_packets(&self) -> u64 {
        self.discarded("packet")
    }

    fn discarded(&self, noun: &str) -> u64 {
        let words: Vec<_> = self.warnings.split_whitespace().collect();
        words
            .windows(3)
            .filter(|w| w[0] == "discarded" && w[2].starts_with(noun))
            .filter_map(|w| w[1].parse::<u64>().ok())
            .sum()
    }

    /// How many lines have `text` in them.
    pub(crate) fn count(&self, text: &str) -> usize {
        self.lines.iter().filter(|line| line.contains(text)).count()
    }
}

/// Shows traces with babeltrace2, merged.
pub(crate) fn view(paths: &[&Path]) -> Viewed {
    let output =
        Command::new("babeltrace2").args(paths).output().expect("babeltrace2 is installed (see scripts/setup.sh)");
    let warnings = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "babeltrace2 failed: {warnings}");
    let lines = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    Viewed { lines, warnings }
}

/// The reader balances the books of the trace in `dir`.
pub(crate) fn assert_balances(dir: &Path) {
    let report = tracepoint_reader::verify(dir).expect("a trace with an account");
    let failures: Vec<_> = report.failures().collect();
    assert!(failures.is_empty(), "{failures:#?}");
}

/// The account of the event called `name`.
pub(crate) fn event<'a>(summary: &'a Summary, name: &str) -> &'a EventAccount {
    summary.events().iter().find(|event| event.name == name).unwrap_or_else(|| panic!("{name} is not in {summary:#?}"))
}

/// How often the event was lost, whatever the reason.
pub(crate) fn lost(event: &EventAccount) -> u64 {
    event.lost.values().sum()
}

/// Records of all streams that were overwritten.
pub(crate) fn overwritten(account: &Account) -> u64 {
    account.channels.iter().flat_map(|channel| &channel.streams).map(|stream| stream.overwritten).sum()
}
