//! The actions of a trigger that acts, performed in order.

use super::action_context::{ActionContext, StartedProgram};
use super::failure::ActionFailure;
use super::message::Notification;
use super::occurrence::{Detail, Occurrence};
use super::own_snapshots::OwnSnapshots;
use super::result::ActionResult;
use super::snapshot;
use super::state::{self, KeptSnapshot};
use crate::store::StoredSession;
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::private_dir::{Author, PrivateDir, refused};
use tracepoint_session_spec::{State, TriggerAction, TriggerSpec};

/// Maximum length of a variable in bytes: the kernel refuses long ones.
const MAX_VARIABLE: usize = 4096;

/// The owner of the triggers that act: a session in the run directory, or a process with a session in code.
pub(super) struct Subject<'a> {
    /// The name of the session.
    pub(super) name: String,
    /// The id of the session; for a session in code, its name and the process.
    id: String,
    /// The process, for a session in code.
    pub(super) process: Option<ProcessKey>,
    /// The directory of the session, or of the rings of the process.
    pub(super) dir: PrivateDir,
    /// `None` for a session in code.
    session: Option<StoredSession<'a>>,
    /// The author of its triggers.
    pub(super) author: Author,
    pub(super) is_active: bool,
}

impl<'a> Subject<'a> {
    pub(super) fn of_session(
        session: StoredSession<'a>,
        id: String,
        dir: PrivateDir,
        author: Author,
        is_active: bool,
    ) -> Self {
        Self { name: session.name().to_owned(), id, process: None, dir, session: Some(session), author, is_active }
    }

    pub(super) fn of_process(name: String, process: ProcessKey, dir: PrivateDir, author: Author) -> Self {
        let id = format!("{name}/{process}");
        Self { name, id, process: Some(process), dir, session: None, author, is_active: true }
    }

    /// Returns the same for triggers of this author.
    pub(super) fn with_triggers_of(self, author: Author) -> Self {
        Self { author, ..self }
    }

    fn session(&self) -> Result<&StoredSession<'a>, ActionFailure> {
        self.session.as_ref().ok_or_else(|| {
            ActionFailure::new(&"a session in code is controlled by its program", Errno::OPNOTSUPP.raw_os_error())
        })
    }
}

/// A trigger that acts on an occurrence.
pub(super) struct Act<'a> {
    subject: &'a Subject<'a>,
    trigger: &'a TriggerSpec,
    occurrence: &'a Occurrence,
    context: &'a ActionContext,
    run_dir: &'a Path,
    now: SystemTime,
    results: Vec<ActionResult>,
    temporaries: Vec<PathBuf>,
    snapshots: Vec<KeptSnapshot>,
    programs: Vec<Box<dyn StartedProgram>>,
}

impl<'a> Act<'a> {
    pub(super) const fn new(
        subject: &'a Subject<'a>,
        trigger: &'a TriggerSpec,
        occurrence: &'a Occurrence,
        context: &'a ActionContext,
        run_dir: &'a Path,
        now: SystemTime,
    ) -> Self {
        Self {
            subject,
            trigger,
            occurrence,
            context,
            run_dir,
            now,
            results: Vec::new(),
            temporaries: Vec::new(),
            snapshots: Vec::new(),
            programs: Vec::new(),
        }
    }

    /// Performs an action; a failure is in its result.
    pub(super) fn perform(&mut self, action: &TriggerAction) {
        let mut result = ActionResult::done(action);
        let performed = match action {
            action if action.opens() && self.subject.author != Author::Trusted => {
                Err(ActionFailure::new(&refused(self.subject.author), Errno::ACCESS.raw_os_error()))
            }
            TriggerAction::Snapshot(output) => self.snapshot(output).map(|path| result.output = Some(path)),
            TriggerAction::Start => self.set_state("start", State::Active),
            TriggerAction::Stop => self.set_state("stop", State::Stopped),
            TriggerAction::Rotate => self.rotate(),
            TriggerAction::Notify => self.notify(),
            TriggerAction::Run(line) => self.run(line).map(|pid| result.pid = Some(pid)),
            _ => Err(ActionFailure::new(&"this version has no such action", Errno::OPNOTSUPP.raw_os_error())),
        };
        if let Err(failure) = performed {
            result = ActionResult::failed(action, &failure);
        } else if self.trigger.after.is_some() && self.context.listening.is_none() {
            let note =
                "it did not wait for the time after the occurrence, because no `tracectl listen` runs that would";
            result.note = Some(note.to_owned());
        }
        self.results.push(result);
    }

    /// Writes the results to the state of the trigger, and writes the exit statuses of the programs there when they exit.
    pub(super) fn end(mut self) -> Vec<ActionResult> {
        let Self { subject, trigger, .. } = self;
        let own = self.own_snapshots();
        // A session that was removed meanwhile has no state either.
        let _ = state::end(&subject.dir, own, &mut self.results, &self.temporaries, self.snapshots);
        for program in self.programs {
            let (pid, id, session) = (program.pid(), trigger.id.clone(), subject.dir.path().to_owned());
            program.on_exit(Box::new(move |status, is_success| {
                // The program may outlive its session.
                if let Ok(session) = PrivateDir::open(&session) {
                    let _ = state::program_ended(&session, &id, pid, &status, is_success);
                }
            }));
        }
        self.results
    }

    fn own_snapshots(&self) -> OwnSnapshots<'a> {
        OwnSnapshots { trigger: self.trigger, author: self.subject.author, session: &self.subject.id }
    }

    fn snapshot(&mut self, output: &Path) -> Result<PathBuf, ActionFailure> {
        let own = self.own_snapshots();
        let reserved = snapshot::reserve(own, output, self.occurrence, self.now)?;
        self.temporaries.push(reserved.temporary.clone());
        // If this cannot be written and the process is killed now, the directory stays.
        let _ = state::writing(&self.subject.dir, own, reserved.temporary.clone(), self.now);
        let kept = reserved.write(self.subject.dir.path(), self.occurrence, self.since())?;
        self.snapshots.push(kept.clone());
        Ok(kept.path)
    }

    /// Returns the time of the first events in a snapshot, in ns of the clock of the traces, `CLOCK_MONOTONIC`.
    fn since(&self) -> u64 {
        let Some(before) = self.trigger.before else { return 0 };
        let now = clock_gettime(ClockId::Monotonic);
        let now = Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0));
        let elapsed = SystemTime::now().duration_since(self.occurrence.time).unwrap_or_default();
        u64::try_from(now.saturating_sub(elapsed).saturating_sub(before).as_nanos()).unwrap_or(0)
    }

    fn set_state(&self, verb: &str, state: State) -> Result<(), ActionFailure> {
        let changed = self.subject.session()?.change(&format!("{verb} by trigger {}", self.trigger.id), |spec| {
            spec.state = state;
            Ok(())
        });
        changed.map(drop).map_err(|error| ActionFailure::from(&error))
    }

    fn rotate(&self) -> Result<(), ActionFailure> {
        self.subject.session()?.rotate().map(drop).map_err(|error| ActionFailure::from(&error))
    }

    fn notify(&self) -> Result<(), ActionFailure> {
        let notification = || Notification {
            session: self.subject.name.clone(),
            trigger: self.trigger.id.clone(),
            occurrence: self.occurrence.clone(),
            actions: self.results.clone(),
            missed: 0,
        };
        if self.context.listening.as_ref().is_some_and(|listening| listening.notify(notification())) {
            return Ok(());
        }
        Err(ActionFailure::new(
            &"no `tracectl listen` runs, which passes notifications on to subscribers",
            Errno::NOTCONN.raw_os_error(),
        ))
    }

    fn run(&mut self, line: &[String]) -> Result<u32, ActionFailure> {
        let programs = self.context.programs.as_ref().ok_or_else(|| {
            ActionFailure::new(
                &"this process starts no programs; run `tracectl listen`, which does",
                Errno::OPNOTSUPP.raw_os_error(),
            )
        })?;
        let program = programs.start(line, self.variables())?;
        let pid = program.pid();
        self.programs.push(program);
        Ok(pid)
    }

    /// Returns the environment variables of a program: the occurrence, and the results of the previous actions.
    fn variables(&self) -> Vec<(String, String)> {
        let Self { subject, trigger, occurrence, .. } = self;
        let named = |name: &str, value: &str| (format!("TRACEPOINT_TRIGGER_{name}"), variable(value));
        let mut variables = vec![
            ("TRACEPOINT_RUN_DIR".to_owned(), self.run_dir.to_string_lossy().into_owned()),
            named("SESSION", &subject.name),
            named("ID", &trigger.id),
            named("CONDITION", &occurrence.condition),
            named("TIME", &Detail::time(occurrence.time).to_string()),
        ];
        if occurrence.pid != 0 {
            variables.push(named("PID", &occurrence.pid.to_string()));
        }
        if let Some(snapshot) = self.snapshots.last() {
            variables.push(named("SNAPSHOT", &snapshot.path.to_string_lossy()));
        }
        let details = occurrence.entries.iter().filter(|(name, _)| !name.starts_with("trigger_"));
        variables.extend(details.map(|(name, detail)| named(&name.to_ascii_uppercase(), &detail.to_string())));
        variables
    }
}

/// Returns a value that fits into an environment: without a NUL, and not too long.
fn variable(value: &str) -> String {
    let value = value.replace('\0', "\u{FFFD}");
    let end = (0..=value.len().min(MAX_VARIABLE)).rev().find(|end| value.is_char_boundary(*end)).unwrap_or(0);
    value[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_have_no_nul_and_are_bounded() {
        assert_eq!(variable("a\0b"), "a\u{FFFD}b");
        let long = "\u{FFFD}".repeat(MAX_VARIABLE);
        let cut = variable(&long);
        assert!(long.starts_with(&cut) && cut.len() <= MAX_VARIABLE && cut.len() > MAX_VARIABLE - 3);
    }
}
