//! The sources of a session's sinks: objects of the program, or descriptions.

use super::{CtfSinkSpec, DtSinkSpec, SinkSpec, StreamSinkSpec, TextSinkSpec, UdpSinkSpec};
use std::fmt;
use tracepoint_sinks::Sink;

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

/// Converts descriptions.
macro_rules! from_description {
    ($($description:ty),*) => {$(
        impl From<$description> for SinkSource {
            fn from(spec: $description) -> Self {
                Self { object: None, spec: spec.into() }
            }
        }
    )*};
}

from_description!(SinkSpec, CtfSinkSpec, DtSinkSpec, TextSinkSpec, UdpSinkSpec, StreamSinkSpec);

impl fmt::Debug for SinkSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.spec, f)
    }
}

#[doc(hidden)]
impl SinkSource {
    /// Returns its description.
    pub fn spec(&self) -> SinkSpec {
        self.spec.clone()
    }

    /// The description of a sink that will be created; `None` for an object.
    pub fn description_mut(&mut self) -> Option<&mut SinkSpec> {
        self.object.is_none().then_some(&mut self.spec)
    }

    /// Returns the object, if it is one, and the description.
    pub fn into_parts(self) -> (Option<Box<dyn Sink>>, SinkSpec) {
        (self.object, self.spec)
    }
}
