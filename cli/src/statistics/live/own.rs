//! A temporary session that ends with this program.

use crate::failure::Failure;
use crate::message;
use crate::session::acks::{of_process, report_notices, report_silent, unsupported_rules};
use crate::session::rules::{WaitHint, add, require_matches};
use std::path::Path;
use std::time::Duration;
use tracepoint_controller::{Acknowledgements, Controller, NamedSession};
use tracepoint_run_dir::Ack;
use tracepoint_session_io::ControlError;
use tracepoint_session_io::owner::end_with_this_process;
use tracepoint_session_spec::{Rule, SessionSpec, State};

/// The session. Dropping it removes it. If this program is killed, the processes end the session themselves, and the next command removes its files.
pub(crate) struct OwnSession<'a> {
    session: NamedSession<'a>,
    timeout: Duration,
    /// True if a participating process has not applied it.
    pub(super) is_partial: bool,
}

impl<'a> OwnSession<'a> {
    /// Starts a session called `KIND-PID` with these rules. On return, the processes have applied it, or `timeout` has expired. Notes on the
    /// standard error name what they cannot do.
    ///
    /// # Errors
    ///
    /// If a rule matches no event of a running process, or if no process computes anything.
    pub(crate) fn start(
        controller: &'a Controller,
        kind: &str,
        rules: &[Rule],
        timeout: Duration,
    ) -> Result<Self, Failure> {
        let name = format!("{kind}-{}", std::process::id());
        let mut spec = SessionSpec::new();
        spec.state = State::Active;
        end_with_this_process(&mut spec);
        add(&mut spec, &name, rules)?;
        require_matches(controller, &spec, rules, WaitHint::Session)?;
        let mut own = Self { session: controller.create(&name, &spec)?, timeout, is_partial: false };
        let waited = own.session.wait(spec.generation, timeout)?;
        waited.acks.iter().for_each(report_notices);
        own.is_partial = require_computed(&waited)?;
        Ok(own)
    }

    pub(crate) fn name(&self) -> &str {
        self.session.name()
    }

    /// Changes the session. On return, the processes have applied the change, or `timeout` has expired. Returns the description and the
    /// acknowledgements.
    ///
    /// # Errors
    ///
    /// The error of `change`; or the session was removed in the meantime.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&mut SessionSpec) -> Result<(), ControlError>,
    ) -> Result<(SessionSpec, Vec<Ack>), Failure> {
        let mut changed = SessionSpec::new();
        let generation = self.session.change("change", |spec| {
            change(spec)?;
            changed.clone_from(spec);
            Ok(())
        })?;
        Ok((changed, self.session.wait(generation, self.timeout)?.acks))
    }

    /// Writes the contents of the rings into a directory.
    ///
    /// # Errors
    ///
    /// If no process has rings, or `out` cannot be written.
    pub(crate) fn snapshot(&self, out: &Path) -> Result<(), Failure> {
        self.session.snapshot(out)?;
        Ok(())
    }
}

/// Notes which processes have not applied a session with statistics, and what they cannot compute. Returns true if one has not applied it.
///
/// # Errors
///
/// If all have applied it, and none can compute anything.
pub(super) fn require_computed(waited: &Acknowledgements) -> Result<bool, Failure> {
    report_silent(&waited.silent);
    let mut problems: Vec<_> = waited.acks.iter().flat_map(unsupported_rules).collect();
    problems.extend(waited.acks.iter().filter_map(|ack| Some(of_process(ack, ack.error.as_ref()?))));
    problems.dedup();
    let computes = waited.acks.iter().any(|ack| ack.statistics > 0);
    if !computes && waited.silent.is_empty() && !problems.is_empty() {
        return Err(Failure::Refused(problems.join("\n")));
    }
    for problem in &problems {
        message::note(problem);
    }
    Ok(!waited.silent.is_empty())
}

impl Drop for OwnSession<'_> {
    fn drop(&mut self) {
        // If removal fails, the processes end the session when this program has ended.
        let _ = self.session.destroy(self.timeout, true);
    }
}
