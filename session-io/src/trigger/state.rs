//! The state of a trigger: `triggers/ID.json` in the session's directory.
//!
//! Several processes may act for one trigger at the same time: a listener and helpers, or 50 helpers. Each changes the state under the lock
//! on the directory, twice: `begin` counts the occurrence and decides whether to act, `end` writes the results of the actions. No lock is
//! held while the actions are performed. The file is replaced atomically, so that readers need no lock, and has a spare, so that a trigger
//! can act even if the run directory is full. A state that cannot be read starts from zero.
//!
//! In a run directory that a group shares, any member can write a state. Therefore a listed directory is removed only if it is a snapshot
//! of the trigger.

use super::own_snapshots::OwnSnapshots;
use super::result::ActionResult;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tracepoint_run_dir::json::{read_json, replace_json_with_spare};
use tracepoint_run_dir::layout::TRIGGERS;
use tracepoint_run_dir::lock::Lock;
use tracepoint_run_dir::private_dir::{DirError, PrivateDir};
use tracepoint_session_spec::TriggerSpec;

/// Maximum time to wait for the lock: its holders write a file, and remove old snapshots.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// Age in ns at which an incomplete snapshot is abandoned: its writer was killed.
const ABANDONED: u64 = 3600 * 1_000_000_000;

/// The history of a trigger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TriggerState {
    /// The time when the trigger was set, in ns since 1970; 0 if it was loaded with its session.
    pub since_ns: u64,
    /// Number of occurrences of its condition.
    pub occurred: u64,
    /// Number of times that it has acted.
    pub fired: u64,
    /// Number of times that it has not acted, because of its policy or because its session was stopped.
    pub suppressed: u64,
    /// Number of its actions that have failed.
    pub failed: u64,
    /// The time when it last acted, in ns since 1970.
    pub last_ns: Option<u64>,
    /// The results of its last actions.
    pub last: Vec<ActionResult>,
    /// Its snapshots that are kept, the oldest first.
    pub snapshots: Vec<KeptSnapshot>,
    /// Number of its snapshots that were removed to keep the others within the trigger's limits.
    pub removed: u64,
    /// Its snapshots that are being written.
    writing: Vec<UnfinishedSnapshot>,
    /// The times when it acted, as far as its limit needs them, in ns since 1970.
    recent_ns: Vec<u64>,
}

/// A snapshot that is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KeptSnapshot {
    /// Its directory.
    pub path: PathBuf,
    /// The size of its files on the disk, in bytes.
    pub bytes: u64,
}

/// A snapshot that is being written, in a directory that is renamed when it is complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct UnfinishedSnapshot {
    path: PathBuf,
    since_ns: u64,
}

/// The decision of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Act,
    /// The reason.
    Suppress(&'static str),
}

/// Makes the state of a new trigger.
pub fn create(session: &PrivateDir, id: &str) -> Result<(), DirError> {
    change(session, id, |state| *state = TriggerState { since_ns: ns(SystemTime::now()), ..TriggerState::default() })
}

/// Counts an occurrence, and decides whether the trigger acts on it. `skipped` occurrences preceded it, and are only counted: a policy that
/// would have acted on one of them acts on this one.
pub(super) fn begin(
    session: &PrivateDir,
    trigger: &TriggerSpec,
    active: bool,
    skipped: u64,
    now: SystemTime,
) -> Result<Decision, DirError> {
    change(session, &trigger.id, |state| {
        let before = state.occurred;
        state.occurred = before.saturating_add(skipped).saturating_add(1);
        state.suppressed = state.suppressed.saturating_add(skipped);
        let decision =
            if active { state.decide(trigger, before, ns(now)) } else { Decision::Suppress("the session is stopped") };
        match decision {
            Decision::Act => (state.fired, state.last_ns) = (state.fired + 1, Some(ns(now))),
            Decision::Suppress(_) => state.suppressed += 1,
        }
        decision
    })
}

/// Stores the directory in which a snapshot is being written, so that it is removed later if this process is killed.
pub(super) fn writing(
    session: &PrivateDir,
    own: OwnSnapshots<'_>,
    path: PathBuf,
    now: SystemTime,
) -> Result<(), DirError> {
    change(session, &own.trigger.id, |state| {
        let since_ns = ns(now);
        let (abandoned, others) = std::mem::take(&mut state.writing)
            .into_iter()
            .partition(|old| since_ns.saturating_sub(old.since_ns) > ABANDONED);
        state.writing = others;
        for UnfinishedSnapshot { path, .. } in abandoned {
            own.remove(&path);
        }
        state.writing.push(UnfinishedSnapshot { path, since_ns });
    })
}

/// Stores the results of the actions and the snapshots, which were written in the directories `temporaries`; removes the oldest snapshots
/// beyond the trigger's limits. A snapshot that exceeds the limits alone is removed as well, and its result becomes a failure.
pub(super) fn end(
    session: &PrivateDir,
    own: OwnSnapshots<'_>,
    results: &mut [ActionResult],
    temporaries: &[PathBuf],
    snapshots: Vec<KeptSnapshot>,
) -> Result<(), DirError> {
    let trigger = own.trigger;
    change(session, &trigger.id, |state| {
        state.writing.retain(|writing| !temporaries.contains(&writing.path));
        state.snapshots.extend(snapshots);
        for gone in state.retain(trigger) {
            let too_large = results.iter_mut().find(|result| result.output.as_ref() == Some(&gone.path));
            if let Some(result) = too_large {
                result.error = Some(format!(
                    "the snapshot took {} bytes, and all of this trigger may take {} (`--max-size`); it was removed",
                    gone.bytes, trigger.max_size
                ));
                (result.output, result.errno) = (None, Some(rustix::io::Errno::FBIG.raw_os_error()));
            }
            own.remove(&gone.path);
        }
        state.failed += results.iter().filter(|result| result.error.is_some()).count() as u64;
        state.last = results.to_vec();
    })
}

/// Stores the exit status of a program that the action `run` has started. A failed program counts as a failed action.
pub(super) fn program_ended(
    session: &PrivateDir,
    id: &str,
    pid: u32,
    how: &str,
    is_success: bool,
) -> Result<(), DirError> {
    // The trigger may have been removed.
    session.open_subdir(TRIGGERS)?.file_len(&file(id)).map_err(|error| session.failed("read", TRIGGERS, error))?;
    change(session, id, |state| {
        state.failed += u64::from(!is_success);
        // The trigger may have acted again meanwhile.
        if let Some(result) = state.last.iter_mut().find(|result| result.pid == Some(pid) && result.ended.is_none()) {
            result.ended = Some(how.to_owned());
            result.error = (!is_success).then(|| format!("its program ended with {how}"));
        }
    })
}

/// Reads the state of a trigger; returns that of a new one if it cannot be read.
pub fn read(session: &PrivateDir, id: &str) -> TriggerState {
    session.open_subdir(TRIGGERS).ok().and_then(|dir| read_json(&dir, &file(id)).ok()).unwrap_or_default()
}

/// Removes the state of a trigger; its snapshots stay.
pub fn remove(session: &PrivateDir, id: &str) {
    if let Ok(dir) = session.open_subdir(TRIGGERS) {
        for name in [file(id), PrivateDir::spare(&file(id))] {
            dir.remove_file(&name);
        }
    }
}

fn change<R>(session: &PrivateDir, id: &str, change: impl FnOnce(&mut TriggerState) -> R) -> Result<R, DirError> {
    let dir = session.subdir(TRIGGERS)?;
    let _lock = Lock::take_within(&dir, LOCK_TIMEOUT).map_err(|error| dir.failed("lock", "", error))?;
    let name = file(id);
    let mut state: TriggerState = read_json(&dir, &name).unwrap_or_default();
    let result = change(&mut state);
    replace_json_with_spare(&dir, &name, &state).map_err(|error| dir.failed("write", &name, error))?;
    Ok(result)
}

fn file(id: &str) -> String {
    format!("{id}.json")
}

fn ns(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

impl TriggerState {
    /// Decides whether to act on the last counted occurrence; `before` is the count at the previous decision.
    fn decide(&mut self, trigger: &TriggerSpec, before: u64, now: u64) -> Decision {
        if trigger.every.is_some_and(|nth| self.occurred / nth == before / nth) {
            return Decision::Suppress("it acts on each Nth occurrence only");
        }
        if trigger.once_after.is_some_and(|nth| self.occurred < nth || self.fired > 0) {
            return Decision::Suppress("it acts once, on the Nth occurrence");
        }
        if let Some((most, period)) = trigger.at_most() {
            let period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
            // A time in the future was stored before the clock was set back.
            self.recent_ns.retain(|time| now.checked_sub(*time).is_some_and(|age| age < period));
            if self.recent_ns.len() >= most {
                return Decision::Suppress("its limit is reached");
            }
            self.recent_ns.push(now);
        }
        Decision::Act
    }

    /// Removes the snapshots beyond the limits from the list, the oldest first, and returns them.
    fn retain(&mut self, trigger: &TriggerSpec) -> Vec<KeptSnapshot> {
        let mut bytes = 0_u64;
        let fits = |snapshot: &&KeptSnapshot| {
            bytes = bytes.saturating_add(snapshot.bytes);
            bytes <= trigger.max_size
        };
        let kept = self.snapshots.iter().rev().take(trigger.keep as usize).take_while(fits).count();
        let gone: Vec<_> = self.snapshots.drain(..self.snapshots.len() - kept).collect();
        self.removed += gone.len() as u64;
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::DirBuilder;
    use std::os::unix::fs::DirBuilderExt;
    use std::path::Path;
    use tracepoint_run_dir::private_dir::Author;
    use tracepoint_session_spec::{TriggerAction, TriggerCondition};

    fn trigger() -> TriggerSpec {
        TriggerSpec::new(TriggerCondition::CoreDump, TriggerAction::Stop).named("t1")
    }

    /// Returns for each of the occurrences, at these seconds, whether the trigger acts on it.
    fn acts(trigger: &TriggerSpec, seconds: &[u64]) -> Vec<bool> {
        let temp = tempfile::tempdir().expect("a directory");
        let session = PrivateDir::at(temp.path()).expect("a directory");
        let decide = |second: &u64| {
            let now = UNIX_EPOCH + Duration::from_secs(1_700_000_000 + second);
            begin(&session, trigger, true, 0, now).expect("written") == Decision::Act
        };
        let acts: Vec<_> = seconds.iter().map(decide).collect();
        let state = read(&session, &trigger.id);
        let fired = acts.iter().filter(|acts| **acts).count() as u64;
        assert_eq!(
            (state.occurred, state.fired, state.suppressed),
            (acts.len() as u64, fired, acts.len() as u64 - fired)
        );
        acts
    }

    #[test]
    fn policies_decide_over_all_occurrences() {
        let (yes, no) = (true, false);
        assert_eq!(acts(&trigger(), &[0, 0, 0]), [yes, yes, yes]);
        assert_eq!(acts(&trigger().every(3), &[0, 1, 2, 3, 4, 5, 6]), [no, no, yes, no, no, yes, no]);
        assert_eq!(acts(&trigger().once_after(2), &[0, 1, 2, 3]), [no, yes, no, no]);
        assert_eq!(acts(&trigger().limit("2/10s"), &[0, 4, 9, 10, 13, 14]), [yes, yes, no, yes, no, yes]);
        // The clock was set back.
        assert_eq!(acts(&trigger().limit("1/10s"), &[100, 3, 4]), [yes, yes, no]);
    }

    /// Occurrences that were only counted make policies act at most once, as if a decision had been made for each.
    #[test]
    fn skipped_occurrences_count() -> Result<(), DirError> {
        let temp = tempfile::tempdir().expect("a directory");
        let session = PrivateDir::at(temp.path())?;
        let (every, once) = (trigger().every(10).named("e"), trigger().once_after(5).named("o"));
        for (skipped, acts) in [(7, false), (0, false), (3, true), (5, false), (30, true)] {
            let decision = begin(&session, &every, true, skipped, SystemTime::now())?;
            assert_eq!(decision == Decision::Act, acts, "{skipped}");
        }
        for (skipped, acts) in [(3, false), (1, true), (9, false)] {
            let decision = begin(&session, &once, true, skipped, SystemTime::now())?;
            assert_eq!(decision == Decision::Act, acts, "{skipped}");
        }
        let state = read(&session, "e");
        assert_eq!((state.occurred, state.fired, state.suppressed), (50, 2, 48));
        Ok(())
    }

    #[test]
    fn a_stopped_session_suppresses() -> Result<(), DirError> {
        let temp = tempfile::tempdir().expect("a directory");
        let session = PrivateDir::at(temp.path())?;
        assert!(matches!(begin(&session, &trigger(), false, 0, SystemTime::now())?, Decision::Suppress(_)));
        assert_eq!(begin(&session, &trigger().once_after(2), true, 0, SystemTime::now())?, Decision::Act);
        Ok(())
    }

    #[test]
    fn the_oldest_snapshots_are_removed_first() {
        let mut state = TriggerState::default();
        let kept = |bytes| KeptSnapshot { path: format!("/{bytes}").into(), bytes };
        state.snapshots = [5, 4, 3, 2].map(kept).to_vec();
        assert_eq!(state.retain(&trigger().keep(3)), [kept(5)]);
        assert_eq!(state.retain(&trigger().max_size(5)), [kept(4)]);
        assert_eq!(state.retain(&trigger().max_size(1)), [kept(3), kept(2)]);
        assert_eq!((state.removed, state.snapshots.len()), (4, 0));
    }

    /// A state written by another user may list directories that are not snapshots of the trigger.
    #[test]
    fn directories_that_are_no_snapshots_stay() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let session = PrivateDir::at(&temp.path().join("session"))?;
        let trigger = TriggerSpec::new(TriggerCondition::CoreDump, TriggerAction::Snapshot(temp.path().into()))
            .named("t1")
            .keep(1);
        let own = OwnSnapshots { trigger: &trigger, author: Author::Trusted, session: "id" };
        let [forged, abandoned, first] =
            ["2026-11-23T005317.123Z-1", ".2026-11-23T005317.123Z-2.new", "2026-11-23T005317.123Z-3"]
                .map(|name| temp.path().join(name));
        for path in [&forged, &abandoned, &first] {
            DirBuilder::new().mode(0o700).create(path)?;
        }
        own.mark(&first)?;
        let kept = |path: &Path| KeptSnapshot { path: path.to_owned(), bytes: 1 };
        change(&session, "t1", |state| {
            state.snapshots = vec![kept(&forged), kept(&first)];
            state.writing = vec![UnfinishedSnapshot { path: abandoned.clone(), since_ns: 1 }];
        })?;
        let second = temp.path().join("2026-11-23T005317.123Z-4");
        writing(&session, own, second.clone(), SystemTime::now())?;
        end(&session, own, &mut [], &[], vec![kept(&second)])?;
        assert_eq!(read(&session, "t1").snapshots, [kept(&second)]);
        assert!(forged.exists() && abandoned.exists() && !first.exists());
        Ok(())
    }

    /// A damaged file or a state of a newer version does not keep a trigger from acting.
    #[test]
    fn a_damaged_state_begins_anew() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let session = PrivateDir::at(temp.path())?;
        session.subdir(TRIGGERS)?.put_whole("t1.json", b"{\"occurred\": 7, \"newer\": [1]}")?;
        assert_eq!(read(&session, "t1").occurred, 7);
        session.subdir(TRIGGERS)?.replace("t1.json", b"\xff{")?;
        assert_eq!(begin(&session, &trigger(), true, 0, SystemTime::now())?, Decision::Act);
        assert_eq!(read(&session, "t1").occurred, 1);
        Ok(())
    }
}
