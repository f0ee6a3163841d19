//! The sources of a session's sinks: objects of the program, or descriptions.

use super::SinkSpec;
use std::fmt;
use tracepoint_sinks::{CtfError, Sink};

/// A sink for a session: an object, such as a [`CtfSink`](tracepoint_sinks::CtfSink) or the program's own type; or a [`SinkSpec`], from
/// which the session makes a sink with the same limits as for `session.toml`.
pub struct SinkSource {
    /// `None` if the session creates the sink from the description.
    object: Option<Box<dyn Sink>>,
    spec: SinkSpec,
}

impl<S: Sink + 'static> From<S> for SinkSource {
    fn from(mut sink: S) -> Self {
        let spec = SinkSpec::of_object(&mut sink);
        Self { object: Some(Box::new(sink)), spec }
    }
}

impl From<SinkSpec> for SinkSource {
    fn from(spec: SinkSpec) -> Self {
        Self { object: None, spec }
    }
}

impl fmt::Debug for SinkSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.spec, f)
    }
}

impl SinkSource {
    /// Returns its description.
    pub fn spec(&self) -> SinkSpec {
        self.spec.clone()
    }

    /// Prepares the output of a sink that will be created, as [`SinkSpec::prepare`]; an object has its output already.
    ///
    /// # Errors
    ///
    /// As [`SinkSpec::prepare`].
    pub fn prepare(&mut self) -> Result<(), CtfError> {
        if self.object.is_none() { self.spec.prepare() } else { Ok(()) }
    }

    /// Returns the object, if it is one, and the description.
    pub fn into_parts(self) -> (Option<Box<dyn Sink>>, SinkSpec) {
        (self.object, self.spec)
    }
}
