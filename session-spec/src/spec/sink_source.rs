//! The sources of a session's sinks: objects of the program, or descriptions.

use super::SinkSpec;
use std::fmt;
use tracepoint_sinks::Sink;

/// A sink for a session: an object, such as a [`CtfSink`](tracepoint_sinks::CtfSink) or the program's own type; or a [`SinkSpec`], from
/// which the session makes a sink with the same limits as for `session.toml`.
pub enum SinkSource {
    /// An object, with its description.
    Object(Box<dyn Sink>, SinkSpec),
    /// The description of a sink to create.
    Described(SinkSpec),
}

impl<S: Sink + 'static> From<S> for SinkSource {
    fn from(mut sink: S) -> Self {
        let spec = SinkSpec::of_object(&mut sink);
        Self::Object(Box::new(sink), spec)
    }
}

impl From<SinkSpec> for SinkSource {
    fn from(spec: SinkSpec) -> Self {
        Self::Described(spec)
    }
}

impl fmt::Debug for SinkSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.spec(), f)
    }
}

impl SinkSource {
    /// Returns its description.
    pub fn spec(&self) -> SinkSpec {
        match self {
            Self::Object(_, spec) | Self::Described(spec) => spec.clone(),
        }
    }
}
