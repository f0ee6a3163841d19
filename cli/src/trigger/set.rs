//! `tracectl trigger`: sets a trigger on a session.

use super::{SessionOption, unwatched};
use crate::failure::{Failure, Outcome, VerbResult};
use crate::session::acks::{of_process, report_silent};
use crate::session::rules::add;
use crate::session::{WaitArguments, controller};
use crate::state_dir::state_dir;
use crate::{message, output, units};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::env;
use std::path::PathBuf;
use std::time::Duration;
use tracepoint_controller::trigger::{TriggerOptions, Watchers, trigger_remove, trigger_set};
use tracepoint_controller::{Controller, NamedSession};
use tracepoint_run_dir::{Ack, TriggerAck};
use tracepoint_session_spec::{Limit, Rule, SessionSpec, TriggerAction, TriggerCondition, TriggerPartError};

/// A kind of condition on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// A process of this system dumps core, and a helper started by the kernel reports it
    #[value(name = "OnAnyCoreDump")]
    CoreDump,
    /// An event fires and matches: `event 'shop:*' --filter 'status >= 500'`
    Event,
    /// A ring has at least this fill level: `ring-full 80%`
    RingFull,
    /// A process begins to lose events
    Lost,
    /// A value of a statistic of the session crosses a limit: `statistic 'p99 of hist(size) > 4096 for 1s'`
    Statistic,
    /// The outputs of the session have received this number of bytes: `size 512M`
    Size,
    /// The traces of the session continue in new chunks
    Rotated,
    /// A thread of a process panics
    Panic,
    /// A process gets a signal: `signal USR2`; also `USR1` and `RTMIN+N`
    Signal,
    /// A process ends by `exit`, or because `main` returns
    Exit,
    /// A process is killed without a core dump, for example by SIGKILL
    Killed,
}

/// Sets a trigger: actions on a session under a condition
///
/// Actions are performed in the given order; a failed action does not prevent the next one:
///
/// `snapshot`: write the contents of the session's rings into a new directory `TIME-PID`, with a trace of each process
///
/// `start`, `stop`: start or stop the session
///
/// `rotate`: continue its traces in new chunks
///
/// `notify`: send a message to the subscribers of the notification socket
///
/// `run PROGRAM ARG…`: run a program, without a shell. It is the last action; put `--` before arguments that begin with `-`
///
/// A trigger of a stopped session acts only if it has the action `start`.
#[derive(Debug, Args)]
#[command(
    override_usage = "tracectl trigger [OPTIONS] <WHAT> [VALUE] <ACTION>...",
    after_help = "\
Examples:
  tracectl trigger -s flight OnAnyCoreDump snapshot
  tracectl trigger -s flight event 'shop:paid' --filter 'status >= 500' snapshot --before 10s --after 5s
  tracectl trigger -s flight panic snapshot --output /var/tmp/crashes
  tracectl trigger -s flight signal USR2 snapshot notify
  tracectl trigger -s flight killed snapshot run -- /usr/local/bin/page --urgent
  tracectl trigger -s web ring-full 80% notify --limit 1/10min
  tracectl trigger -s web lost snapshot stop
  tracectl trigger -s web statistic 'p99 of latency(shop:asked, shop:answered by id) > 5ms for 1s' snapshot
  tracectl trigger -s web size 512M rotate
  tracectl trigger OnAnyCoreDump snapshot --limit 5/h --keep 20 --max-size 4G"
)]
pub(crate) struct Trigger {
    #[command(flatten)]
    session: SessionOption,
    /// The condition
    #[arg(value_name = "WHAT")]
    when: Kind,
    /// The value of `event`, `ring-full`, `statistic`, `size` or `signal`, then the actions: `snapshot`, `start`, `stop`, `rotate`, `notify`, `run PROGRAM ARG…`
    #[arg(value_name = "ACTION", required = true)]
    words: Vec<String>,
    /// With `event`: only events whose fields satisfy this expression, such as `size > 4096 && comm == "postgres*"`
    #[arg(long, help_heading = "Events", value_name = "EXPR")]
    filter: Option<String>,
    /// With `event`: only events of these levels: `<=info`, `warn`, `==err`, `>=debug`
    #[arg(long, help_heading = "Events", value_name = "LEVEL")]
    level: Option<String>,
    /// With `event`: only in programs whose path, or its last component, matches this pattern
    #[arg(long, help_heading = "Events", value_name = "PATTERN")]
    exe: Option<String>,
    /// Directory for snapshots [default: `$XDG_STATE_HOME/tracepoint/snapshots/NAME`, or below `~/.local/state`]
    #[arg(short, long, help_heading = "Snapshots", value_name = "DIR")]
    output: Option<PathBuf>,
    /// Leave out of snapshots the events that are older than this at the occurrence
    #[arg(long, help_heading = "Snapshots", value_name = "TIME", value_parser = units::duration)]
    before: Option<Duration>,
    /// Take snapshots this long after the occurrence
    #[arg(long, help_heading = "Snapshots", value_name = "TIME", value_parser = units::duration)]
    after: Option<Duration>,
    /// A name for the trigger: letters, digits, `-` and `_` [default: the first of t1, t2 … that is free]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Act on each Nth occurrence only
    #[arg(long, help_heading = "How often", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    every: Option<u64>,
    /// Act once, on the Nth occurrence
    #[arg(long, help_heading = "How often", value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "every")]
    once_after: Option<u64>,
    /// Limit the rate of actions: `5/h`, `1/10min`
    #[arg(long, help_heading = "How often", value_name = "N/TIME")]
    limit: Option<Limit>,
    /// Keep the newest N snapshots [default: 10]
    #[arg(long, help_heading = "Snapshots", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// Keep snapshots up to this total size [default: 1G]
    #[arg(long, help_heading = "Snapshots", value_name = "SIZE", value_parser = units::size)]
    max_size: Option<u64>,
    /// With `event`: accept a trigger that no running process can notice: its pattern matches no event, or its filter does not fit
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    answer: WaitArguments,
    /// Write one JSON object: `session`, `trigger`, `when` and `actions`
    #[arg(long)]
    json: bool,
}

impl Trigger {
    pub(crate) fn run(&self) -> VerbResult {
        let controller = controller(self.session.pid)?;
        let session = self.session.session(&controller)?;
        let (when, words) = self.when()?;
        let mut actions = self.actions(words, session.name())?;
        let all: Vec<_> = actions.iter().map(ToString::to_string).collect();
        let first = actions.remove(0);
        let mut options = TriggerOptions::default();
        options.then = actions;
        options.id.clone_from(&self.id);
        (options.every, options.once_after) = (self.every, self.once_after);
        options.limit = self.limit;
        (options.before, options.after) = (self.before, self.after);
        (options.keep, options.max_size) = (self.keep, self.max_size);
        let described = when.to_string();
        let event = if let TriggerCondition::Event(rule) = &when { Some(rule.clone()) } else { None };
        let event = event.filter(|_| !self.wait);
        if let Some(rule) = &event {
            require_event(&controller, &session, rule)?;
        }
        let before = session.triggers()?.len();
        let id = trigger_set(&session, when, first, &options)?;
        if event.is_some()
            && let Err(failure) = self.require_fit(&session, &id)
        {
            // An existing equal trigger is left unchanged.
            if session.triggers()?.len() > before {
                trigger_remove(&session, &id)?;
            }
            return Err(failure);
        }
        if self.json {
            let object = json!({ "session": session.name(), "trigger": id, "when": described, "actions": all });
            output::json(&object)?;
        }
        message::summary(&format!("trigger {id} of {}: {described}: {}", session.name(), all.join(", then ")));
        let set = session.triggers()?.into_iter().find(|trigger| trigger.spec.id == id);
        let watchers = Watchers::of(controller.path());
        if let Some(note) = set.and_then(|trigger| unwatched(&watchers, session.name(), &trigger)) {
            message::note(&note);
        }
        Ok(Outcome::Success)
    }

    /// Fails if the processes report that the filter of an event trigger fits none of their events.
    fn require_fit(&self, session: &NamedSession<'_>, id: &str) -> Result<(), Failure> {
        let generation = session.spec()?.generation;
        let waited = session.wait(generation, self.answer.timeout)?;
        report_silent(&waited.silent);
        let answers: Vec<_> = waited.acks.iter().filter(|ack| ack.generation >= generation).collect();
        let watches = |ack: &&Ack| matches!(ack.triggers.get(id), Some(TriggerAck::Watched | TriggerAck::Events(1..)));
        let unsupported = answers.iter().filter_map(|ack| match ack.triggers.get(id)? {
            TriggerAck::Unsupported(reason) => {
                Some(of_process(ack, format_args!("the trigger would never act: {reason}")))
            }
            _ => None,
        });
        let reasons: Vec<_> = unsupported.collect();
        if reasons.is_empty() {
            return Ok(());
        }
        let text = reasons.join("\n");
        if answers.iter().any(watches) {
            message::note(&text);
            return Ok(());
        }
        let mend = "correct the filter, or set the trigger for later processes with `--wait`";
        Err(Failure::Refused(format!("{text}\n{mend}")))
    }

    /// The condition, and the words after it.
    fn when(&self) -> Result<(TriggerCondition, &[String]), Failure> {
        let kind = self.when.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let takes_value =
            matches!(self.when, Kind::Event | Kind::RingFull | Kind::Size | Kind::Signal | Kind::Statistic);
        let (value, actions) = if takes_value { self.words.split_at(1) } else { self.words.split_at(0) };
        let invalid = |reason: String| Failure::Usage(format!("the condition `{kind}` cannot be used: {reason}"));
        let mut when = match (self.when, value) {
            (Kind::Size, [size]) => {
                TriggerCondition::Size(units::size(size).map_err(|error| invalid(error.to_string()))?)
            }
            (_, value) => [std::slice::from_ref(&kind), value]
                .concat()
                .join(" ")
                .parse()
                .map_err(|error: TriggerPartError| invalid(error.to_string()))?,
        };
        if let TriggerCondition::Event(rule) = &mut when {
            let with_level = self.level.iter().fold(rule.clone(), Rule::level);
            let with_exe = self.exe.iter().fold(with_level, Rule::exe);
            *rule = self.filter.iter().fold(with_exe, Rule::filter);
        } else if self.filter.is_some() || self.level.is_some() || self.exe.is_some() {
            return Err(Failure::Usage(format!("`--filter`, `--level` and `--exe` are for `event`, not for `{kind}`")));
        }
        Ok((when, actions))
    }

    /// The actions named by the words; at least one.
    fn actions(&self, mut words: &[String], session: &str) -> Result<Vec<TriggerAction>, Failure> {
        let mut actions = Vec::new();
        while let [word, rest @ ..] = words {
            words = rest;
            actions.push(match word.as_str() {
                "snapshot" => TriggerAction::Snapshot(match &self.output {
                    Some(output) => std::path::absolute(output)?,
                    None => default_output(session)?,
                }),
                "start" => TriggerAction::Start,
                "stop" => TriggerAction::Stop,
                "rotate" => TriggerAction::Rotate,
                "notify" => TriggerAction::Notify,
                "run" => {
                    let [program, arguments @ ..] = std::mem::take(&mut words) else {
                        return Err(Failure::Usage("`run` takes a program: `run PROGRAM ARG…`".to_owned()));
                    };
                    let program = find_program(program)?;
                    TriggerAction::Run(std::iter::once(program).chain(arguments.iter().cloned()).collect())
                }
                other => {
                    return Err(Failure::Usage(format!(
                        "there is no action `{other}`; there are `snapshot`, `start`, `stop`, `rotate`, `notify` and `run PROGRAM ARG…`"
                    )));
                }
            });
        }
        if actions.is_empty() {
            return Err(Failure::Usage("what is to be done? For example `snapshot`".to_owned()));
        }
        Ok(actions)
    }
}

/// Fails if the session applies to running processes but none of their events matches the rule of a trigger, or if the rule names a program that
/// has no process.
fn require_event(controller: &Controller, session: &NamedSession<'_>, rule: &Rule) -> Result<(), Failure> {
    let mut spec = SessionSpec::new();
    spec.tag = session.spec()?.tag;
    add(&mut spec, session.name(), std::slice::from_ref(rule))?;
    match controller.unmatched(&spec)?.first() {
        Some(unmatched) if unmatched.processes > 0 || rule.exe.is_some() => Err(Failure::Refused(format!(
            "{unmatched}; `tracectl list` shows the events that exist; with `--wait` the trigger may be for events of later processes"
        ))),
        _ => Ok(()),
    }
}

/// The absolute path of a program. It is resolved when the trigger is set, because the process that runs it later can have another `PATH` and
/// working directory.
fn find_program(name: &str) -> Result<String, Failure> {
    let found = if name.contains('/') {
        Some(std::path::absolute(name)?)
    } else {
        let paths = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&paths).map(|dir| dir.join(name)).find(|path| path.is_absolute() && path.is_file())
    };
    let missing = || Failure::Refused(format!("the program `{name}` is not in `PATH`; name it by its path"));
    let path = found.ok_or_else(missing)?;
    path.into_os_string()
        .into_string()
        .map_err(|path| Failure::Refused(format!("the path of the program is not UTF-8: {}", path.to_string_lossy())))
}

/// The default directory for the snapshots of a session. It is determined now, because a helper started by the kernel has no environment.
fn default_output(session: &str) -> Result<PathBuf, Failure> {
    let mend = "name a place with `--output DIR`";
    let state = state_dir(mend)?;
    state
        .map(|state| state.join("tracepoint/snapshots").join(session))
        .ok_or_else(|| Failure::Refused(format!("there is no home directory for the snapshots; {mend}")))
}
