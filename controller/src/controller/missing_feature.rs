//! Finds the processes of a session whose programs were built without what the session needs: its sinks, or events that wait for a recorder.

use super::{Application, ControlError, Controller};
use std::fmt;
use tracepoint_reader::process::ProcessKey;
use tracepoint_session_io::sink_features::SinkFeature;
use tracepoint_session_spec::selection::select;
use tracepoint_session_spec::{DrainedBy, SessionSpec};

/// The functionality that programs lack whose rings a recorder can drain under the policy `discard` alone.
const WAITS: &str = "events that wait for a recorder";
/// Maximum number of processes in a message.
const MAX_NAMED: usize = 8;

/// A feature of the library that a session needs, and the processes that were built without it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingFeature {
    /// The cargo feature, in the crate `tracepoint`; `None` if the library has it in every build of this version.
    pub feature: Option<&'static str>,
    /// The functionality that the programs lack.
    pub what: &'static str,
    /// The processes with their names; at least one.
    pub processes: Vec<(ProcessKey, String)>,
    /// Number of processes of the session that have the feature.
    pub others: usize,
}

impl fmt::Display for MissingFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { feature, what, processes, .. } = self;
        let named = processes.iter().take(MAX_NAMED).map(|(key, name)| format!("{} ({name})", key.pid));
        let named = named.collect::<Vec<_>>().join(", ");
        match processes.len() {
            1 => write!(f, "process {named} was")?,
            count if count <= MAX_NAMED => write!(f, "processes {named} were")?,
            count => write!(f, "processes {named} and {} others were", count - MAX_NAMED)?,
        }
        let them = if processes.len() == 1 { "it" } else { "them" };
        write!(f, " built without {what}: build {them} with ")?;
        match feature {
            Some(feature) => write!(f, "the cargo feature `{feature}` of tracepoint"),
            None => write!(f, "tracepoint {} or later", env!("CARGO_PKG_VERSION")),
        }
    }
}

impl Controller {
    /// Returns the features that the session needs, and that processes whose events it records lack. A process whose library does not
    /// report its kinds of sinks is assumed to have all.
    ///
    /// # Errors
    ///
    /// If the run directory cannot be read.
    pub fn unbuilt(&self, spec: &SessionSpec) -> Result<Vec<MissingFeature>, ControlError> {
        let mut found: Vec<MissingFeature> = Vec::new();
        let waits =
            spec.drain == DrainedBy::Recorder && spec.all_channels().any(|channel| channel.max_wait().is_some());
        if spec.sinks.is_empty() && !waits {
            return Ok(found);
        }
        let mut recorded = 0;
        for process in self.processes()?.iter().filter(|process| is_recorded(process, spec)) {
            recorded += 1;
            let info = process.info();
            let kinds = info.sinks.iter();
            let missing =
                kinds.flat_map(|kinds| spec.sinks.iter().filter_map(|sink| SinkFeature::missing_in(kinds, sink)));
            let missing = missing.map(|SinkFeature { name, what, .. }| (Some(*name), *what));
            for (feature, what) in missing.chain((waits && !info.waits_for_recorder).then_some((None, WAITS))) {
                let process = (info.key(), info.name.clone());
                match found.iter_mut().find(|found| found.feature == feature) {
                    Some(found) if !found.processes.contains(&process) => found.processes.push(process),
                    Some(_) => {}
                    None => found.push(MissingFeature { feature, what, processes: vec![process], others: 0 }),
                }
            }
        }
        for unbuilt in &mut found {
            unbuilt.others = recorded - unbuilt.processes.len();
        }
        Ok(found)
    }
}

/// Returns whether the session records events of the process.
fn is_recorded(process: &Application, spec: &SessionSpec) -> bool {
    let info = process.info();
    let records = || select(spec, info.key(), &info.executable, &process.candidates()).records_any();
    spec.is_for(info.tag.as_deref()) && records()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_the_feature_and_the_processes() {
        let unbuilt = |count: u32| {
            let processes = (1..=count).map(|pid| (ProcessKey::new(pid, 7), format!("p{pid}"))).collect();
            MissingFeature { feature: Some("stream"), what: "streaming", processes, others: 0 }.to_string()
        };
        let one = "process 1 (p1) was built without streaming: build it with the cargo feature `stream` of tracepoint";
        assert_eq!(unbuilt(1), one);
        let processes = vec![(ProcessKey::new(1, 7), "p1".to_owned())];
        let old = MissingFeature { feature: None, what: WAITS, processes, others: 0 }.to_string();
        let version = env!("CARGO_PKG_VERSION");
        assert!(old.ends_with(&format!("built without {WAITS}: build it with tracepoint {version} or later")), "{old}");
        assert!(unbuilt(2).starts_with("processes 1 (p1), 2 (p2) were built without streaming: build them with"));
        assert!(unbuilt(10).contains("8 (p8) and 2 others were built"));
    }
}
