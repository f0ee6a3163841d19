//! Waiting for the processes.

use super::{Application, ControlError, Controller, NamedSession};
use crate::ack::Ack;
use crate::agent::Rung;
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
    /// Waits until all processes that take part have acknowledged this generation, or a later one, for `timeout` at most.
    ///
    /// # Errors
    ///
    /// If the session is removed meanwhile, or the run directory cannot be read.
    pub fn wait(&self, generation: u64, timeout: Duration) -> Result<Acknowledged, ControlError> {
        let (id, tag) = {
            let spec = self.spec()?;
            (spec.id, spec.tag)
        };
        let mut silent = self.controller.processes()?;
        silent.retain(|process| tag.is_none() || process.info().tag == tag);
        let mut acks = Vec::new();
        within(timeout, || {
            acks = self.acks()?;
            let has = |process: &Application| {
                let key = process.info().key();
                acks.iter().any(|ack| ack.process == key && ack.id == id && ack.generation >= generation)
            };
            silent.retain(|process| !has(process) && process.is_alive());
            Ok(silent.is_empty())
        })?;
        Ok(Acknowledged { acks, silent })
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
        let mut silent = self.processes()?;
        let token = Uuid::new_v4().simple().to_string();
        let mut deaf: Vec<_> = self.ring_all(&token);
        within(timeout, || {
            // Where the queue was full, the token was not in it.
            deaf.retain(|name| self.ring_one(name, &token) == Rung::Full);
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
