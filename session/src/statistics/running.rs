//! The statistics of one session in this process.

use super::plan::{Part, PlannedStatistic};
use super::segment::{self, StatisticMemory};
use super::{KEPT, MAX};
use crate::memory::ProcessMemory;
use crate::session_dirs::SessionDirs;
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::process;
use std::sync::{Arc, Weak};
use tracepoint_core::Marker;
use tracepoint_core::marker::{Subscriber, Subscription};
use tracepoint_probes::{Statistic, subscribers};
use tracepoint_run_dir::layout::STATISTICS;
use tracepoint_run_dir::private_dir::{DirError, PrivateDir};
use tracepoint_run_dir::session_dir::TRIES;
use tracepoint_session_io::statistics::StatisticResult;
use tracepoint_session_io::statistics::index::{self, Entry, Index};
use tracepoint_session_spec::Rule;

/// The statistics of a session in this process. Dropping it ends them; the files stay.
#[derive(Debug, Default)]
pub(crate) struct RunningStatistics {
    /// The process that they belong to.
    process: u32,
    /// The directory of the files, and the name of the process in it. Kept while there are files, even if the session is stopped.
    files: Option<(Arc<PrivateDir>, String)>,
    memory: Option<Arc<ProcessMemory>>,
    running: BTreeMap<Key, RunningStatistic>,
    /// The number of the next file.
    next: u64,
    /// True if the list is out of date because it could not be written.
    is_list_old: bool,
}

/// A running statistic, as seen by a trigger.
#[derive(Clone, Debug)]
pub(crate) struct LiveStatistic {
    /// The key of the rule: several rules may compute the same statistic of the same event.
    pub(crate) rule: String,
    /// The text of the statistic in rules.
    pub(crate) text: String,
    pub(crate) event: String,
    pub(crate) statistic: Weak<Statistic>,
}

/// A rule, and an event.
type Key = (String, String);

#[derive(Debug)]
struct RunningStatistic {
    rule: Rule,
    statistic: Arc<Statistic>,
    place: StatisticMemory,
    is_duration: bool,
    subscriptions: Vec<(&'static Marker, Subscription)>,
}

impl RunningStatistics {
    /// Returns the number of statistics.
    pub(crate) fn len(&self) -> usize {
        self.running.len()
    }

    /// Returns their memory, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.memory.as_ref().map_or(0, |memory| memory.used())
    }

    /// Computes exactly `planned` from now on, in files if the session has directories. Their memory is a part of `ring_memory`, the limit on
    /// the session's rings in this process. Statistics that are already running continue. Returns the errors of rules that cannot be
    /// computed.
    pub(crate) fn follow(
        &mut self,
        dirs: Option<&SessionDirs>,
        ring_memory: u64,
        planned: Vec<PlannedStatistic>,
    ) -> Vec<String> {
        if self.running.is_empty() && planned.is_empty() || !self.is_ours() {
            return Vec::new();
        }
        let key = |planned: &PlannedStatistic| (planned.key.clone(), planned.event.clone());
        let wanted: HashSet<Key> = planned.iter().map(key).collect();
        let gone: Vec<Key> = self.running.keys().filter(|key| !wanted.contains(*key)).cloned().collect();
        self.drop_all(&gone);
        let mut errors = Vec::new();
        // Those of a rule follow each other.
        let mut by_rule: Vec<Vec<PlannedStatistic>> = Vec::new();
        // Running statistics may get further events; the others are new.
        let (mut more, mut new) = (Vec::new(), Vec::new());
        for planned in planned {
            if self.running.contains_key(&key(&planned)) {
                more.push(planned);
            } else {
                match by_rule.last_mut().filter(|rule| rule[0].key == planned.key) {
                    Some(rule) => rule.push(planned),
                    None => by_rule.push(vec![planned]),
                }
            }
        }
        if self.running.is_empty() {
            self.forget_former();
            self.process = process::id();
        }
        for planned in by_rule {
            let spec = planned[0].spec.to_string();
            match self.start(dirs, ring_memory, &planned) {
                Ok(()) => new.extend(planned),
                Err(error) => errors.push(format!("`{spec}` of `{}` is not computed: {error}", planned[0].rule.event)),
            }
        }
        // The list is written before the first event, so that the files of a killed process are found. Without a new list no statistic is
        // added.
        let is_listed = new.is_empty() && gone.is_empty() && !self.is_list_old;
        let listed = if is_listed { Ok(()) } else { self.list() };
        self.is_list_old = listed.is_err();
        if let Err(error) = listed {
            for planned in new.drain(..) {
                errors.push(format!("`{}` of `{}` is not computed: {error}", planned.spec, planned.event));
                self.drop_all(&[key(&planned)]);
            }
        }
        for planned in more.into_iter().chain(new) {
            if let Err(error) = self.subscribe(&planned) {
                errors.push(format!("`{}` of `{}` is not computed: {error}", planned.spec, planned.event));
                if self.running.get(&key(&planned)).is_some_and(|running| running.subscriptions.is_empty()) {
                    self.drop_all(&[key(&planned)]);
                }
            }
        }
        errors
    }

    /// Starts the new statistics of one rule.
    fn start(&mut self, dirs: Option<&SessionDirs>, ring_memory: u64, planned: &[PlannedStatistic]) -> io::Result<()> {
        if self.running.len() + planned.len() > MAX {
            let text = format!("a session computes at most {MAX} statistics in a process; select fewer events");
            return Err(io::Error::other(text));
        }
        let mut made = self.make(dirs, ring_memory, planned);
        for _ in 1..TRIES {
            // Another process may have removed the directory while it was empty.
            if dirs.is_none() || !matches!(&made, Err(error) if error.kind() == io::ErrorKind::NotFound) {
                break;
            }
            self.files = None;
            made = self.make(dirs, ring_memory, planned);
        }
        for (planned, (statistic, place)) in planned.iter().zip(made?) {
            let (rule, statistic) = (planned.rule.clone(), Arc::new(statistic));
            let is_duration = planned.is_duration;
            let running = RunningStatistic { rule, statistic, place, is_duration, subscriptions: Vec::new() };
            self.running.insert((planned.key.clone(), planned.event.clone()), running);
        }
        Ok(())
    }

    fn make(
        &mut self,
        dirs: Option<&SessionDirs>,
        ring_memory: u64,
        planned: &[PlannedStatistic],
    ) -> io::Result<Vec<(Statistic, StatisticMemory)>> {
        if let (None, Some(dirs)) = (&self.files, dirs) {
            let dir = PrivateDir::open(&dirs.session)
                .and_then(|session| session.subdir(STATISTICS))
                .map_err(|error| into_io(&error))?;
            index::remove(&dir, &dirs.process);
            index::prune(&dir, KEPT);
            (self.files, self.memory) = (Some((Arc::new(dir), dirs.process.clone())), None);
        }
        let dir = self.files.as_ref().map(|(dir, _)| Arc::clone(dir));
        // A quarter of the limit on the rings.
        let memory = self.memory.get_or_insert_with(|| ProcessMemory::new("statistics", ring_memory / 4, dir));
        let file = self.files.as_ref().map(|(dir, process)| (&**dir, format!("{process}.{}.stat", self.next)));
        self.next += 1;
        segment::make(planned, file, memory)
    }

    /// Enables those events of a running statistic that are not enabled yet.
    fn subscribe(&mut self, planned: &PlannedStatistic) -> Result<(), String> {
        let Some(running) = self.running.get_mut(&(planned.key.clone(), planned.event.clone())) else { return Ok(()) };
        let mut new: Vec<(&'static Marker, Subscriber)> = Vec::new();
        for Part { markers, filter, .. } in &planned.parts {
            let is_off =
                |marker: &&&'static Marker| !running.subscriptions.iter().any(|(on, _)| std::ptr::eq(*on, **marker));
            for marker in markers.iter().filter(is_off) {
                for subscriber in subscribers(&running.statistic, marker).map_err(|error| error.to_string())? {
                    let filtered = match filter {
                        Some(filter) => subscriber.filter(Arc::clone(filter) as _),
                        None => subscriber,
                    };
                    new.push((*marker, filtered));
                }
            }
        }
        let markers: Vec<_> = new.iter().map(|(marker, _)| *marker).collect();
        let started = Subscription::start_all(new).map_err(|error| error.to_string())?;
        running.subscriptions.extend(markers.into_iter().zip(started));
        Ok(())
    }

    /// Ends statistics, and removes files without other statistics.
    fn drop_all(&mut self, keys: &[Key]) {
        let gone: Vec<_> = keys.iter().filter_map(|key| self.running.remove(key)).collect();
        if gone.is_empty() {
            return;
        }
        let mut subscriptions = Vec::new();
        let mut places = Vec::new();
        for running in gone {
            subscriptions.extend(running.subscriptions.into_iter().map(|(_, subscription)| subscription));
            places.push(running.place);
        }
        Subscription::end_all(subscriptions);
        // On a full file system the old list stays, and names files that do not exist.
        let _ = self.list();
        let Some((dir, _)) = &self.files else { return };
        for place in places {
            let StatisticMemory::File(segment, _) = place else { continue };
            let is_used = |other: &RunningStatistic| matches!(&other.place, StatisticMemory::File(other, _) if Arc::ptr_eq(other, &segment));
            if !self.running.values().any(is_used) {
                dir.remove_file(&segment.file);
            }
        }
    }

    /// Writes the list of statistics.
    fn list(&self) -> io::Result<()> {
        let Some((dir, process)) = &self.files else { return Ok(()) };
        let entry = |((_, event), running): (&Key, &RunningStatistic)| match &running.place {
            StatisticMemory::File(segment, words) => Some(Entry {
                file: segment.file.clone(),
                offset: words.start,
                words: words.len(),
                event: event.clone(),
                rule: running.rule.clone(),
                is_duration: running.is_duration,
            }),
            StatisticMemory::Heap { .. } => None,
        };
        Index::new(self.running.iter().filter_map(entry).collect()).write(dir, process)
    }

    /// Returns the running statistics.
    pub(crate) fn live(&self) -> Vec<LiveStatistic> {
        let live = |((rule, event), running): (&Key, &RunningStatistic)| LiveStatistic {
            rule: rule.clone(),
            text: running.statistic.spec().to_string(),
            event: event.clone(),
            statistic: Arc::downgrade(&running.statistic),
        };
        self.running.iter().map(live).collect()
    }

    /// Returns the results so far.
    pub(crate) fn results(&self) -> Vec<StatisticResult> {
        let result = |((_, event), running): (&Key, &RunningStatistic)| {
            let (rule, snapshot) = (running.rule.clone(), running.statistic.snapshot());
            StatisticResult::new(rule, event.clone(), running.is_duration, snapshot)
        };
        if self.is_ours() { self.running.iter().map(result).collect() } else { Vec::new() }
    }

    /// Ends all statistics, and releases their memory. Their files stay for readers.
    pub(crate) fn stop(&mut self) {
        let running = std::mem::take(&mut self.running);
        if self.is_ours() {
            let subscriptions = running.into_values().flat_map(|running| running.subscriptions);
            Subscription::end_all(subscriptions.map(|(_, subscription)| subscription).collect());
        } else {
            // They belong to the parent.
            std::mem::forget(running);
        }
    }

    /// Ends all statistics, and removes their files.
    pub(crate) fn remove(&mut self) {
        self.stop();
        self.forget_former();
    }

    /// Removes the files of statistics that have ended.
    fn forget_former(&mut self) {
        let is_ours = self.is_ours();
        if let Some((dir, process)) = self.files.take().filter(|_| is_ours) {
            index::remove(&dir, &process);
            // Succeeds only if it is empty.
            let _ = std::fs::remove_dir(dir.path());
        }
    }

    fn is_ours(&self) -> bool {
        self.process == process::id() || self.process == 0
    }
}

impl Drop for RunningStatistics {
    fn drop(&mut self) {
        self.stop();
    }
}

fn into_io(error: &DirError) -> io::Error {
    match error {
        DirError::Io { source, .. } => io::Error::new(source.kind(), error.to_string()),
        _ => io::Error::other(error.to_string()),
    }
}
