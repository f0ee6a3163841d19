//! Compares the contents of a store with the senders' accounts.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Figures, Outcome};

/// Final report of a host's recorder, taken from the account of the traced program.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct Counts {
    /// Events fired.
    pub fired: u64,
    /// Events written into rings.
    pub recorded: u64,
    /// Lost events by reason.
    pub lost: BTreeMap<String, u64>,
}

/// The events of each host, counted at each stage.
#[derive(Clone, Debug, Default)]
pub struct Balance {
    /// The senders' counts, by host.
    pub senders: BTreeMap<String, Counts>,
    /// The collectors' reports about packets.
    pub collectors: Vec<Value>,
    /// Rows in the store, by host.
    pub rows: BTreeMap<String, u64>,
    /// Events fired according to the table `account`, by host.
    pub accounts: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct StoreCounts {
    rows: BTreeMap<String, u64>,
    accounts: BTreeMap<String, u64>,
    seconds: f64,
}

impl Balance {
    /// Counts the rows of the store with `DuckDB`.
    pub(crate) fn read(&mut self, store: &Path, figures: &mut Figures) -> Outcome {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let packages = root.join("../../target/tools/duckdb");
        let mut command = Command::new("python3");
        let output = command.arg(root.join("read_store.py")).arg(store).env("PYTHONPATH", packages).output()?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("DuckDB, which scripts/setup.sh installs, cannot read the store: {errors}").into());
        }
        let found: StoreCounts = serde_json::from_slice(&output.stdout)?;
        (self.rows, self.accounts, figures.query_seconds) = (found.rows, found.accounts, found.seconds);
        Ok(())
    }

    /// Checks for each host that stored plus lost events equal fired events.
    ///
    /// # Errors
    /// If they differ, with the counts of that host.
    pub fn check(&self) -> Outcome {
        for (host, counts) in &self.senders {
            let rows = self.rows.get(host).copied().unwrap_or_default();
            let lost: u64 = counts.lost.values().sum();
            if rows + lost != counts.fired || self.accounts.get(host) != Some(&counts.fired) {
                return Err(format!("{host} does not balance: {rows} rows, {counts:?}; all: {self:?}").into());
            }
        }
        Ok(())
    }

    /// The lost events of all hosts.
    pub fn lost(&self) -> u64 {
        self.senders.values().flat_map(|counts| counts.lost.values()).sum()
    }
}
