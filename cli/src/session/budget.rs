//! What a session may cost.

use crate::units;
use clap::Args;
use tracepoint_control::{BudgetSpec, CpuPercent};

/// A budget for each process.
#[derive(Debug, Args)]
pub(crate) struct BudgetArguments {
    /// How much of one core a process spends on it, as far as can be told: `1%`; over it, the hottest event is switched off
    #[arg(long, value_name = "PERCENT")]
    budget_cpu: Option<CpuPercent>,
    /// How many bytes a process records in a second: `10M/s`; over it, the hottest event is switched off
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    budget_bytes: Option<u64>,
}

impl BudgetArguments {
    /// What stands in the session's file.
    pub(crate) fn spec(&self) -> Option<BudgetSpec> {
        let is_given = self.budget_cpu.is_some() || self.budget_bytes.is_some();
        is_given.then(|| BudgetSpec::new(self.budget_cpu, self.budget_bytes))
    }
}
