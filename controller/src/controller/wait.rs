//! Waits for processes to acknowledge.

use super::{Application, ControlError, Controller, NamedSession, acks};
use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tracepoint_run_dir::ack::{Ack, AckState};
use tracepoint_run_dir::bell::RingResult;
use tracepoint_session_spec::{SessionSpec, random_id};

/// Minimum and maximum interval between two checks. The first intervals are short because most processes answer at once.
const MIN_INTERVAL: Duration = Duration::from_micros(200);
const MAX_INTERVAL: Duration = Duration::from_millis(10);
/// Time without an answer after which an agent's bell is rung again.
const RING_AGAIN: Duration = Duration::from_millis(250);
/// Minimum ratio of the interval after a check to the duration of the check.
const PAUSE_SHARE: u32 = 9;
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// The processes that have acknowledged, and those that have not.
#[derive(Debug)]
#[non_exhaustive]
pub struct Acknowledgements {
    /// The acknowledgements, including those of processes that have ended.
    pub acks: Vec<Ack>,
    /// Processes that have not acknowledged yet because they are stopped or slow. They apply the session when they continue.
    pub silent: Vec<Application>,
}

impl NamedSession<'_> {
    /// Waits until all participating processes have acknowledged this generation, or a later one, and have finished their endings, for at
    /// most `timeout`. A process takes part if a rule applies to it or if it records for the session.
    ///
    /// # Errors
    ///
    /// If the session is removed meanwhile, or if the run directory cannot be read.
    pub fn wait(&self, generation: u64, timeout: Duration) -> Result<Acknowledgements, ControlError> {
        let spec = self.spec()?;
        let mut silent = self.participants(&spec)?;
        let is_of_it = |ack: &Ack| ack.id == spec.id && ack.generation >= generation;
        // The sinks of an ending recording may still finish within the timeout.
        let is_done = |ack: &Ack| is_of_it(ack) && ack.state != AckState::Ending;
        poll_until(timeout, || {
            let dir = self.dir()?;
            silent.retain(|process| {
                !acks::last(&dir, process.name()).as_ref().is_some_and(is_done) && process.is_alive()
            });
            Ok(silent.is_empty())
        })?;
        let acks = self.acks()?;
        let answered: BTreeSet<_> = acks.iter().filter(|ack| is_of_it(ack)).map(|ack| ack.process).collect();
        silent.retain(|process| !answered.contains(&process.info().key()));
        Ok(Acknowledgements { acks, silent })
    }

    /// Makes the participating processes update their acknowledgements. Returns those that have not done so within `timeout`.
    ///
    /// # Errors
    ///
    /// As [`NamedSession::wait`].
    pub fn refresh(&self, timeout: Duration) -> Result<Vec<Application>, ControlError> {
        self.controller.refresh_processes(self.participants(&self.spec()?)?, timeout)
    }

    /// The living processes that the session is for, or that record for it.
    fn participants(&self, spec: &SessionSpec) -> Result<Vec<Application>, ControlError> {
        let mut processes = self.controller.processes()?;
        // A recording holds rings even if all its events are disabled, and its trace is not complete.
        let has_some = |ack: &Ack| ack.rings.is_some() || matches!(ack.state, AckState::Recording | AckState::Ending);
        let mut acks = self.acks()?;
        acks.retain(|ack| ack.id == spec.id && has_some(ack));
        let recording: BTreeSet<_> = acks.iter().map(|ack| ack.process).collect();
        processes.retain(|process| {
            let info = process.info();
            spec.concerns(info.tag.as_deref(), info.key(), &info.executable) || recording.contains(&info.key())
        });
        Ok(processes)
    }
}

impl Controller {
    /// Makes all processes update their status and their acknowledgements. Returns those that have not done so within `timeout`.
    ///
    /// # Errors
    ///
    /// If the run directory cannot be read.
    pub fn refresh(&self, timeout: Duration) -> Result<Vec<Application>, ControlError> {
        self.refresh_processes(self.processes()?, timeout)
    }

    /// The same for these processes.
    ///
    /// # Errors
    ///
    /// As [`Controller::refresh`].
    pub fn refresh_processes(
        &self,
        mut silent: Vec<Application>,
        timeout: Duration,
    ) -> Result<Vec<Application>, ControlError> {
        let token = format!("{:032x}", u128::from_be_bytes(random_id()));
        // An agent whose descriptors the program has closed will create another bell.
        let is_unsent = |name: &String| self.store.ring_one(name, &token) != RingResult::Queued;
        let mut unsent: Vec<_> = silent.iter().map(|process| process.name().to_owned()).filter(is_unsent).collect();
        let mut again = Some(Instant::now() + RING_AGAIN);
        poll_until(timeout, || {
            // Send the token again where the queue was full, and once more in case the former bell received it.
            unsent.retain(is_unsent);
            if again.take_if(|time| Instant::now() >= *time).is_some() {
                for process in &silent {
                    self.store.ring_one(process.name(), &token);
                }
            }
            let has = |process: &Application| process.status().is_ok_and(|status| status.answered.contains(&token));
            silent.retain(|process| !has(process) && process.is_alive());
            Ok(silent.is_empty())
        })?;
        Ok(silent)
    }
}

/// Calls `is_done` at least once, and until it returns `true` or the timeout has passed. With many processes the calls take at most a tenth
/// of the time, because the processes need the processors to answer.
pub(super) fn poll_until(
    timeout: Duration,
    mut is_done: impl FnMut() -> Result<bool, ControlError>,
) -> Result<(), ControlError> {
    let began = Instant::now();
    let mut pause = MIN_INTERVAL;
    loop {
        let looked = Instant::now();
        if is_done()? || began.elapsed() >= timeout {
            return Ok(());
        }
        let share = (looked.elapsed() * PAUSE_SHARE).min(LONGEST_PAUSE);
        sleep(pause.max(share).min(timeout.saturating_sub(began.elapsed())));
        pause = (pause * 2).min(MAX_INTERVAL);
    }
}
