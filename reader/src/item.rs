//! The items of a merged trace.

use crate::event::Event;
use crate::loss::{Damage, Loss};
use serde::Serialize;

/// An item of a merged trace.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Item {
    /// An event.
    Event(Event),
    /// Events or packets are missing here.
    Loss(Loss),
    /// Reading of a stream ended here.
    Damage(Damage),
}
