//! The end of a recording: report and outcome.

use super::report::Report;
use super::{Record, command};
use crate::failure::{Outcome, VerbResult};
use crate::{message, units};
use std::path::Path;
use std::process::Child;

/// The note that a recording has reached its maximum size, which is a regular end.
pub(super) fn stopped_at(max_size: u64) -> String {
    format!("stopped at `--max-size` ({})", units::bytes(max_size))
}

impl Record {
    /// Writes the report. The outcome is that of the command, if there is one.
    pub(super) fn conclude(&self, report: &Report, out: Option<&Path>, child: Option<Child>) -> VerbResult {
        // The outcome is that of the recording. An error of the standard output is reported separately, at the end.
        drop(self.rights.as_self(|| if self.json { report.write_json(out) } else { report.write_text(out) }));
        if report.is_full {
            let at = stopped_at(self.max_size);
            message::note(&format!("{at}; what was in the rings then is counted as lost, for the reason `sink`"));
        }
        let lossy = self.fail_on_loss && report.any_lost();
        let mut outcome = report.outcome().max(if lossy { Outcome::Lossy } else { Outcome::Success });
        if let Some(mut child) = child {
            if report.processes() == 0 && !self.is_kernel_alone() {
                message::error(
                    "no process took part: the command has no agent, or no event that matches; a program becomes traceable with \
                     `let _agent = tracepoint::Agent::start();` in its `main`, and `tracectl list` shows its events while it runs",
                );
                outcome = outcome.max(Outcome::Failed);
            }
            match child.try_wait()? {
                Some(status) => outcome = outcome.max(command::status_of(status)),
                None => message::note(&format!("the command is still running, as process {}", child.id())),
            }
        } else if report.died {
            outcome = Outcome::Killed;
        } else if report.processes() == 0 && report.unrecorded.is_empty() && !self.is_kernel_alone() {
            let text =
                "no process took part: `tracectl list` shows the processes that can be recorded now, and their events";
            if self.wait {
                message::note(text);
            } else {
                message::error(text);
                outcome = outcome.max(Outcome::Failed);
            }
        }
        Ok(outcome)
    }
}
