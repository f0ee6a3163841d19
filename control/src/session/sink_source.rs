//! The sources of a session's sinks: objects of the program, or descriptions.

use crate::outputs::{self, Allowance, Output};
use crate::spec::SinkSpec;
use std::fmt;
use tracepoint_sinks::Sink;

/// A sink for a session: an object, such as a [`CtfSink`](tracepoint_sinks::CtfSink) or the program's own type; or a [`SinkSpec`], from
/// which the session makes a sink with the same limits as for `session.toml`.
pub struct SinkSource(Source);

enum Source {
    /// A sink with its description.
    Object(Box<dyn Sink>, SinkSpec),
    Described(SinkSpec),
}

impl<S: Sink + 'static> From<S> for SinkSource {
    fn from(mut sink: S) -> Self {
        let spec = SinkSpec::of_object(&mut sink);
        Self(Source::Object(Box::new(sink), spec))
    }
}

impl From<SinkSpec> for SinkSource {
    fn from(spec: SinkSpec) -> Self {
        Self(Source::Described(spec))
    }
}

impl fmt::Debug for SinkSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.spec(), f)
    }
}

impl SinkSource {
    pub(super) fn spec(&self) -> SinkSpec {
        match &self.0 {
            Source::Object(_, spec) | Source::Described(spec) => spec.clone(),
        }
    }

    /// Fulfils what the description asks about earlier traces; the error is the reason why it cannot be done.
    pub(super) fn prepare(&mut self) -> Result<(), String> {
        match &mut self.0 {
            Source::Object(..) => Ok(()),
            Source::Described(spec) => spec.prepare().map_err(|error| error.to_string()),
        }
    }

    /// Makes the sink, for the trace called `name`; the error is the reason why it cannot be made.
    pub(super) fn make(self, name: &str) -> Result<(Box<dyn Sink>, Output), String> {
        match self.0 {
            Source::Object(sink, _) => Ok((sink, Output::default())),
            Source::Described(spec) => outputs::make(&spec, name, Allowance::of(spec.max_size)),
        }
    }
}
