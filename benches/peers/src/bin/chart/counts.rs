//! Instruction counts from `scripts/peers.sh`.

use anyhow::{Context, Result};
use std::collections::HashMap;

/// Instructions for one event, by variant and kernel, loop included.
#[derive(Debug, Default)]
pub(crate) struct Counts(HashMap<(String, String), f64>);

impl Counts {
    /// Parses tab-separated lines of variant, kernel and instructions. A dash stands for a missing count.
    pub(crate) fn read(text: &str) -> Result<Self> {
        let mut counts = HashMap::new();
        for (number, line) in text.lines().enumerate() {
            let bad = || format!("line {} of the counts", number + 1);
            let mut fields = line.split('\t').map(str::to_owned);
            let key = fields.next().zip(fields.next()).with_context(bad)?;
            let count = fields.next().with_context(bad)?;
            if count != "-" {
                counts.insert(key, count.parse().with_context(bad)?);
            }
        }
        Ok(Self(counts))
    }

    /// The instructions that an event adds to the loop without a site.
    pub(crate) fn added(&self, variant: &str, kernel: &str) -> Option<f64> {
        let of = |variant: &str| self.0.get(&(variant.to_owned(), kernel.to_owned()));
        Some(of(variant)? - of("none")?)
    }

    /// True if there are no counts.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
