//! The messages whose payload is a JSON object: a request to a trigger to act, and a report that it has acted. Readers ignore unknown
//! members.

use super::{FIRE, MAX_PAYLOAD, Message, NOTIFICATION, header};
use crate::trigger::occurrence::Occurrence;
use crate::trigger::result::ActionResult;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tracepoint_reader::process::ProcessKey;

/// The condition of a trigger has occurred in a traced process: a request to the listener to perform the actions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FireRequest {
    /// The session.
    pub session: String,
    /// The process, if it started the session in code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessKey>,
    /// The id of the trigger.
    pub trigger: String,
    /// The occurrence.
    pub occurrence: Occurrence,
}

impl FireRequest {
    /// Creates a request for a trigger of a session.
    pub fn new(session: impl Into<String>, trigger: impl Into<String>, occurrence: Occurrence) -> Self {
        Self { session: session.into(), process: None, trigger: trigger.into(), occurrence }
    }

    /// Encodes the message: header and payload; `None` if it would be too long.
    pub fn to_message(&self) -> Option<Vec<u8>> {
        to_message(FIRE, self)
    }
}

/// The notification to subscribers when a trigger with the action `notify` acts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Notification {
    /// The session.
    pub session: String,
    /// The id of the trigger.
    pub trigger: String,
    /// The occurrence.
    pub occurrence: Occurrence,
    /// The results of the actions before `notify`.
    pub actions: Vec<ActionResult>,
    /// Number of notifications that this subscriber missed before this one, because it did not read.
    #[serde(default)]
    pub missed: u64,
}

impl Notification {
    /// Encodes the message: header and payload. If it would be too long, the details of the occurrence and the results are left out.
    pub fn to_message(&self) -> Vec<u8> {
        to_message(NOTIFICATION, self).unwrap_or_else(|| {
            let mut short = self.clone();
            short.occurrence.entries.clear();
            short.actions.clear();
            // Names of sessions, triggers and conditions are short.
            to_message(NOTIFICATION, &short).unwrap_or_default()
        })
    }
}

fn to_message(command: u32, value: &impl Serialize) -> Option<Vec<u8>> {
    let payload = serde_json::to_vec(value).ok()?;
    (payload.len() <= MAX_PAYLOAD as usize).then(|| [header(command, payload.len()), payload].concat())
}

pub(super) fn parse<T: DeserializeOwned>(command: u32, payload: &[u8], message: impl Fn(T) -> Message) -> Message {
    match serde_json::from_slice(payload) {
        Ok(value) => message(value),
        Err(error) => Message::Malformed { command, reason: error.to_string() },
    }
}
