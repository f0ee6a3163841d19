//! The kinds of sinks that a program supports. Each needs a cargo feature, except the kinds that every program supports.

use tracepoint_session_spec::{SinkSpec, StreamSpec};

/// The cargo feature that a kind of sink needs.
#[derive(Debug, PartialEq, Eq)]
pub struct SinkFeature {
    kind: &'static str,
    /// Its name, in the crate `tracepoint`.
    pub name: &'static str,
    is_built: bool,
    /// The functionality that a program lacks without it.
    pub what: &'static str,
}

const FEATURES: [SinkFeature; 4] = [
    SinkFeature { kind: "dt", name: "dt", is_built: cfg!(feature = "dt"), what: "dt files" },
    SinkFeature { kind: NATS, name: "nats", is_built: cfg!(feature = "nats"), what: "NATS" },
    SinkFeature { kind: "stream", name: "stream", is_built: cfg!(feature = "stream"), what: "streaming" },
    SinkFeature { kind: "udp", name: "udp", is_built: cfg!(feature = "udp"), what: "the UDP trace server" },
];

/// The kinds that every program supports.
const ALWAYS: [&str; 2] = ["ctf", "text"];
/// A sink of the kind `stream` whose peer is a broker.
const NATS: &str = "nats";

impl SinkFeature {
    /// Returns the feature that this sink needs.
    fn of(sink: &SinkSpec) -> Option<&'static Self> {
        let is_broker = sink.stream_settings().is_some_and(StreamSpec::is_broker);
        let kind = if is_broker { NATS } else { sink.kind() };
        FEATURES.iter().find(|feature| feature.kind == kind)
    }

    /// Returns the feature that this sink needs if this program was built without it.
    pub fn missing(sink: &SinkSpec) -> Option<&'static Self> {
        Self::of(sink).filter(|feature| !feature.is_built)
    }

    /// Returns the feature that this sink needs if a program that supports these `kinds` lacks it.
    pub fn missing_in(kinds: &[String], sink: &SinkSpec) -> Option<&'static Self> {
        Self::of(sink).filter(|feature| !kinds.iter().any(|kind| kind == feature.kind))
    }

    /// Returns the message that this program cannot create a sink without the feature.
    pub fn refusal(&self) -> String {
        let Self { what, name, .. } = self;
        format!("this program was built without {what}: build it with the cargo feature `{name}` of tracepoint")
    }
}

/// Returns the kinds of sinks that this program supports.
pub fn built_sinks() -> Vec<String> {
    let chosen = FEATURES.iter().filter(|feature| feature.is_built).map(|feature| feature.kind);
    ALWAYS.into_iter().chain(chosen).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sink_needs_the_feature_of_its_kind() {
        let all = ["ctf", "dt", "nats", "stream", "text", "udp"].map(str::to_owned);
        let without = |missing: &str| all.iter().filter(|kind| *kind != missing).cloned().collect::<Vec<_>>();
        for (sink, feature) in [
            (SinkSpec::from(SinkSpec::dt("/x")), "dt"),
            (SinkSpec::stream(StreamSpec::to("nats://broker")).into(), "nats"),
            (SinkSpec::stream(StreamSpec::relay("vm")).into(), "stream"),
            (SinkSpec::udp(([127, 0, 0, 1], 0).into()).into(), "udp"),
        ] {
            let missing = |kinds: &[String]| SinkFeature::missing_in(kinds, &sink).map(|feature| feature.name);
            assert_eq!((missing(&without(feature)), missing(&all)), (Some(feature), None));
        }
        for sink in [SinkSpec::from(SinkSpec::ctf("/x")), SinkSpec::standard_error().into()] {
            assert_eq!(SinkFeature::missing_in(&[], &sink), None);
        }
        assert!(built_sinks().iter().all(|kind| all.contains(kind)));
    }
}
