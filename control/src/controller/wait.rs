//! Waiting for the processes.

use super::{Application, ControlError, Controller, NamedSession};
use crate::ack::{Ack, AckState};
use crate::bell::Rung;
use crate::spec::SessionSpec;
use std::thread::sleep;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// The pauses between two looks: the first ones are short, most answer at once.
const SHORTEST: Duration = Duration::from_micros(200);
const LONGEST: Duration = Duration::from_millis(10);

/// Who has answered, and who has not.
#[derive(Debug)]
#[non_exhaustive]
pub struct Acknowledged {
    /// What the processes did, those included that ended before.
    pub acks: Vec<Ack>,
    /// Processes that have not answered yet: stopped, or slow. They do what is wanted when they go on.
    pub silent: Vec<Application>,
}

impl NamedSession<'_> {
    /// Waits until all processes that take part have acknowledged this generation, or a later one, and have ended what they end for it, for
    /// `timeout` at most. Those take part of which a rule speaks, and those that record for it.
    ///
    /// # Errors
    ///
    /// If the session is removed meanwhile, or the run directory cannot be read.
    pub fn wait(&self, generation: u64, timeout: Duration) -> Result<Acknowledged, ControlError> {
        let spec = self.spec()?;
        let mut silent = self.participants(&spec)?;
        let mut acks = Vec::new();
        let answer = |acks: &[Ack], process: &Application| {
            let key = process.info().key();
            let is_its = |ack: &&Ack| ack.process == key && ack.id == spec.id && ack.generation >= generation;
            acks.iter().find(is_its).map(|ack| ack.state)
        };
        // Its sinks may come to their end yet.
        let is_done = |state: AckState| state != AckState::Ending;
        within(timeout, || {
            acks = self.acks()?;
            silent.retain(|process| !answer(&acks, process).is_some_and(is_done) && process.is_alive());
            Ok(silent.is_empty())
        })?;
        silent.retain(|process| answer(&acks, process).is_none());
        Ok(Acknowledged { acks, silent })
    }

    /// Has the processes that take part say anew what was recorded: those that have not within `timeout`.
    ///
    /// # Errors
    ///
    /// As [`NamedSession::wait`].
    pub fn refresh(&self, timeout: Duration) -> Result<Vec<Application>, ControlError> {
        self.controller.ask(self.participants(&self.spec()?)?, timeout)
    }

    /// The processes that live and have something to do for it, or something that they do.
    fn participants(&self, spec: &SessionSpec) -> Result<Vec<Application>, ControlError> {
        let mut processes = self.controller.processes()?;
        let acks = self.acks()?;
        processes.retain(|process| {
            let info = process.info();
            // It has rings, too, where all events of a recording are off, and a trace that is not complete.
            let has_some =
                |ack: &Ack| ack.rings.is_some() || matches!(ack.state, AckState::Recording | AckState::Ending);
            let does = |ack: &Ack| ack.process == info.key() && ack.id == spec.id && has_some(ack);
            spec.concerns(info.tag.as_deref(), info.key(), &info.executable) || acks.iter().any(does)
        });
        Ok(processes)
    }
}

impl Controller {
    /// Has all processes say anew what is on in them, and in all acknowledgements what was recorded; those that have not within
    /// `timeout`.
    ///
    /// # Errors
    ///
    /// If the run directory cannot be read.
    pub fn refresh(&self, timeout: Duration) -> Result<Vec<Application>, ControlError> {
        self.ask(self.processes()?, timeout)
    }

    /// The same of these.
    ///
    /// # Errors
    ///
    /// As [`Controller::refresh`].
    pub fn ask(&self, mut silent: Vec<Application>, timeout: Duration) -> Result<Vec<Application>, ControlError> {
        let token = Uuid::new_v4().simple().to_string();
        let is_deaf = |name: &String| self.ring_one(name, &token) == Rung::Full;
        let mut deaf: Vec<_> = silent.iter().map(|process| process.name().to_owned()).filter(is_deaf).collect();
        within(timeout, || {
            // Where the queue was full, the token was not in it.
            deaf.retain(is_deaf);
            let has = |process: &Application| process.status().is_ok_and(|status| status.answered.contains(&token));
            silent.retain(|process| !has(process) && process.is_alive());
            Ok(silent.is_empty())
        })?;
        Ok(silent)
    }
}

/// Looks again and again until it is done, or the time is over. Looks once at least.
fn within(timeout: Duration, mut is_done: impl FnMut() -> Result<bool, ControlError>) -> Result<(), ControlError> {
    let began = Instant::now();
    let mut pause = SHORTEST;
    while !is_done()? && began.elapsed() < timeout {
        sleep(pause);
        pause = (pause * 2).min(LONGEST);
    }
    Ok(())
}
