//! The outputs of a session: their sizes, and their complete chunks.

use super::DetectedCondition;
use crate::controller::NamedSession;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tracepoint_reader::account::ACCOUNT_PATH;
use tracepoint_reader::chunk_number;
use tracepoint_session_io::trigger::state::TriggerState;
use tracepoint_session_io::trigger::{Detail, Occurrence};
use tracepoint_session_spec::{TriggerCondition, TriggerSpec};

#[derive(Debug, Default)]
pub(super) struct SessionOutputs {
    /// Maximum size that each file has had, in bytes: removed chunks count as well.
    files: BTreeMap<PathBuf, u64>,
    /// The total size when the session was last started.
    at_start: u64,
    /// The triggers whose size has been reached since then.
    reached: BTreeSet<String>,
    was_looked_at: bool,
    /// The complete chunks of each trace.
    complete: BTreeMap<PathBuf, BTreeSet<u64>>,
}

impl SessionOutputs {
    /// Checks the outputs of a session with these triggers, and returns the occurrences since the last check. The first check only records
    /// the chunks that were already complete at `since`, and the sizes already reached.
    pub(super) fn look(
        &mut self,
        session: &NamedSession<'_>,
        triggers: &[(&TriggerSpec, TriggerState)],
        is_active: bool,
        since: SystemTime,
    ) -> Vec<DetectedCondition> {
        let outputs = session.outputs();
        let mut seen = Vec::new();
        let rotated_since = triggers.iter().filter(|(trigger, _)| trigger.when == TriggerCondition::Rotated);
        let set_at = |state: &TriggerState| UNIX_EPOCH + Duration::from_nanos(state.since_ns);
        if let Some(since) = rotated_since.map(|(_, state)| set_at(state).max(since)).min() {
            let new: Vec<_> = outputs.iter().flat_map(|output| self.new_chunks(output)).collect();
            let new = new.into_iter().filter(|(_, completed)| *completed >= since);
            seen.extend(new.map(|(chunk, _)| rotated(session.name(), &chunk)));
        }
        for output in &outputs {
            self.measure(output);
        }
        let total: u64 = self.files.values().sum();
        if !is_active {
            self.at_start = total;
            self.reached.clear();
            return seen;
        }
        let taken = total.saturating_sub(self.at_start);
        let is_first = !std::mem::replace(&mut self.was_looked_at, true);
        for (trigger, state) in triggers {
            let TriggerCondition::Size(size) = trigger.when else { continue };
            // An earlier watcher may have detected it.
            let is_new = !is_first || state.occurred == 0;
            if taken >= size && self.reached.insert(trigger.id.clone()) && is_new {
                let mut occurrence = Occurrence::new(&trigger.when, 0, SystemTime::now());
                occurrence.add("size_bytes", Detail::Number(taken));
                seen.push(DetectedCondition {
                    session: session.name().to_owned(),
                    when: trigger.when.clone(),
                    occurrence,
                });
            }
        }
        seen
    }

    /// Returns the chunks of a trace that were completed since the last check, and when: chunks with an account, and with a successor.
    fn new_chunks(&mut self, trace: &Path) -> Vec<(PathBuf, SystemTime)> {
        let Ok(entries) = fs::read_dir(trace) else { return Vec::new() };
        let chunks: BTreeMap<u64, PathBuf> =
            entries.flatten().filter_map(|entry| Some((chunk_number(&entry.path())?, entry.path()))).collect();
        let complete = self.complete.entry(trace.to_owned()).or_default();
        // Chunks that retention has removed do not reappear.
        complete.retain(|number| chunks.contains_key(number));
        let has_next = |number: u64| chunks.range(number + 1..).next().is_some();
        let completed = |path: &Path| fs::metadata(path.join(ACCOUNT_PATH)).ok()?.modified().ok();
        let found = chunks.iter().filter(|(number, _)| has_next(**number));
        let found: Vec<_> =
            found.filter_map(|(number, path)| Some((*number, path.clone(), completed(path)?))).collect();
        found.into_iter().filter(|(number, ..)| complete.insert(*number)).map(|(_, path, time)| (path, time)).collect()
    }

    /// Measures a file, or the files below a directory.
    fn measure(&mut self, path: &Path) {
        let Ok(metadata) = fs::symlink_metadata(path) else { return };
        if metadata.is_dir() {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            entries.for_each(|entry| self.measure(&entry.path()));
        } else if metadata.is_file() {
            let taken = metadata.size().min(metadata.blocks() * 512);
            let most = self.files.entry(path.to_owned()).or_default();
            *most = taken.max(*most);
        }
    }
}

fn rotated(session: &str, chunk: &Path) -> DetectedCondition {
    let mut occurrence = Occurrence::new(&TriggerCondition::Rotated, 0, SystemTime::now());
    occurrence.add("rotated_chunk", Detail::Text(chunk.to_string_lossy().into_owned()));
    DetectedCondition { session: session.to_owned(), when: TriggerCondition::Rotated, occurrence }
}
