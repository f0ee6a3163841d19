//! Finds the processes of a session whose programs were built without the sinks that the session needs.

use super::{ControlError, Controller};
use std::fmt;
use tracepoint_reader::process::ProcessKey;
use tracepoint_session_io::sink_features::SinkFeature;
use tracepoint_session_spec::SessionSpec;
use tracepoint_session_spec::selection::select;

/// Maximum number of processes in a message.
const MAX_NAMED: usize = 8;

/// A cargo feature that a session needs for a sink, and the processes that were built without it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingFeature {
    /// The feature, in the crate `tracepoint`.
    pub feature: &'static str,
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
        write!(f, " built without {what}: build {them} with the cargo feature `{feature}` of tracepoint")
    }
}

impl Controller {
    /// Returns the features that the session's sinks need, and that processes whose events it records lack. A process whose library does
    /// not report its features is assumed to have all.
    ///
    /// # Errors
    ///
    /// If the run directory cannot be read.
    pub fn unbuilt(&self, spec: &SessionSpec) -> Result<Vec<MissingFeature>, ControlError> {
        let mut found: Vec<MissingFeature> = Vec::new();
        if spec.sinks.is_empty() {
            return Ok(found);
        }
        let mut recorded = 0;
        for process in self.processes()? {
            let info = process.info();
            let records = || select(spec, info.key(), &info.executable, &process.candidates()).records_any();
            if !spec.is_for(info.tag.as_deref()) || !records() {
                continue;
            }
            recorded += 1;
            let Some(kinds) = &info.sinks else { continue };
            let mut missing: Vec<_> =
                spec.sinks.iter().filter_map(|sink| SinkFeature::missing_in(kinds, sink)).collect();
            missing.dedup();
            for SinkFeature { name: feature, what, .. } in missing {
                let process = (info.key(), info.name.clone());
                match found.iter_mut().find(|found| found.feature == *feature) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_the_feature_and_the_processes() {
        let unbuilt = |count: u32| {
            let processes = (1..=count).map(|pid| (ProcessKey::new(pid, 7), format!("p{pid}"))).collect();
            MissingFeature { feature: "stream", what: "streaming", processes, others: 0 }.to_string()
        };
        let one = "process 1 (p1) was built without streaming: build it with the cargo feature `stream` of tracepoint";
        assert_eq!(unbuilt(1), one);
        assert!(unbuilt(2).starts_with("processes 1 (p1), 2 (p2) were built without streaming: build them with"));
        assert!(unbuilt(10).contains("8 (p8) and 2 others were built"));
    }
}
