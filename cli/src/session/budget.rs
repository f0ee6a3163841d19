//! The budget of a session.

use crate::units;
use clap::Args;
use tracepoint_session_spec::{BudgetSpec, CpuPercent};

/// The limits on the cost of a session in each process.
#[derive(Debug, Args)]
#[command(next_help_heading = "Budget")]
pub(crate) struct BudgetArguments {
    /// Share of one core that each process may spend on the session, by estimate: `1%`. Over it, the most frequent event is switched off
    #[arg(long, value_name = "PERCENT")]
    budget_cpu: Option<CpuPercent>,
    /// Bytes per second that each process may record: `10M/s`. Over it, the most frequent event is switched off
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    budget_bytes: Option<u64>,
}

impl BudgetArguments {
    pub(crate) fn spec(&self) -> Option<BudgetSpec> {
        let is_given = self.budget_cpu.is_some() || self.budget_bytes.is_some();
        is_given.then(|| BudgetSpec::new(self.budget_cpu, self.budget_bytes))
    }
}
