//! `tracectl stat` and `hist` of running programs: statistics of a named session, or of a temporary session made by this program.
//!
//! The temporary session has rules with a statistic, which record nothing. The session has this process as its owner, so it ends with this program
//! even if that is killed ([`end_with_this_process`](tracepoint_session_io::owner::end_with_this_process)). Its numbers count
//! from the start of this program; those of a named session count from the session's start.

mod combine;
pub(super) mod heat_map;
pub(super) mod hist;
pub(super) mod metrics;
pub(crate) mod own;
mod screen;
pub(super) mod stat;

use super::groups::Cells;
use super::listen;
use crate::failure::{Failure, Outcome, VerbResult};
use crate::interrupt::WaitingInterrupt;
use crate::message;
use crate::selection::EventSelection;
use crate::session::controller;
use crate::units;
use clap::Args;
use metrics::Scope;
use own::OwnSession;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tracepoint_controller::{Application, Controller};
use tracepoint_probes::StatisticSpec;
use tracepoint_session_io::statistics::SessionStatistics;
use tracepoint_session_spec::{Rule, State};

/// Running programs in place of traces.
#[derive(Debug, Args)]
#[command(next_help_heading = "Running programs")]
pub(crate) struct LiveArguments {
    #[command(flatten)]
    pub(super) programs: ProgramArguments,
    /// Show the numbers of a session (`-s`) repeatedly, until Ctrl-C; without `-s` they always are
    #[arg(long)]
    watch: bool,
    /// End after showing the numbers N times [default: at Ctrl-C]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Show the numbers once, after `--interval`; those of a session are shown immediately, and once unless `--watch` or `--count` is given
    #[arg(long, conflicts_with_all = ["count", "watch"])]
    once: bool,
}

/// The running programs, and the interval.
#[derive(Debug, Args)]
#[command(next_help_heading = "Running programs")]
pub(crate) struct ProgramArguments {
    /// Show the statistics of this session; `top`: the events selected by its rules
    #[arg(short, long, value_name = "SESSION")]
    session: Option<String>,
    /// Only in this process, until it ends
    #[arg(short, long, value_name = "PID")]
    pub(crate) pid: Option<u32>,
    /// Only in programs whose path, or its last component, matches
    #[arg(long, value_name = "PATTERN", alias = "name")]
    exe: Option<String>,
    /// Interval between updates of the numbers
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "1s")]
    pub(crate) interval: Duration,
    /// How long to wait for processes that do not answer
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "2s")]
    pub(crate) timeout: Duration,
}

pub(crate) enum Target {
    /// An existing session.
    Session(String),
    /// A temporary session with these rules, once they have a statistic.
    Rules(Vec<Rule>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Json,
    Csv(Cells),
}

impl ProgramArguments {
    /// True if an option asks for running programs.
    pub(super) const fn is_given(&self) -> bool {
        self.session.is_some() || self.pid.is_some() || self.exe.is_some()
    }

    /// The live target, if the operands are patterns of events or absent, not traces. Events selected without a trace are those of running programs.
    /// All events are selected if that is the default, as for a statistic that names its events.
    pub(crate) fn target(
        &self,
        operands: &[PathBuf],
        selection: &EventSelection,
        is_default: bool,
    ) -> Result<Option<Target>, Failure> {
        let patterns: Option<Vec<&str>> = operands.iter().map(|operand| pattern(operand)).collect();
        let is_live = self.is_given();
        let Some(patterns) = patterns else {
            let text = "a trace has neither sessions nor processes: leave out its path, or `-s`, `--pid` and `--exe`";
            return if is_live { Err(Failure::Usage(text.to_owned())) } else { Ok(None) };
        };
        let mut rules = selection.rules(&patterns);
        if let Some(session) = &self.session {
            let text = "a session has its own rules: leave out the events, `--level`, `--filter` and `--exe`";
            let is_plain = rules.is_empty() && !selection.has_conditions() && self.exe.is_none();
            return if is_plain {
                Ok(Some(Target::Session(session.clone())))
            } else {
                Err(Failure::Usage(text.to_owned()))
            };
        }
        if rules.iter().all(Rule::excludes) {
            if !is_live && !is_default {
                let text = "give the PATH of a trace, events of running programs such as 'shop:*', or `-s SESSION`";
                return Err(Failure::Usage(text.to_owned()));
            }
            rules.extend(selection.rules(&["*"]).pop());
        }
        if let Some(exe) = &self.exe {
            rules = rules.into_iter().map(|rule| rule.exe(exe)).collect();
        }
        Ok(Some(Target::Rules(rules)))
    }

    /// The rules with a statistic, limited to the given process if any.
    pub(crate) fn with_statistic(
        &self,
        controller: &Controller,
        rules: Vec<Rule>,
        statistic: &StatisticSpec,
    ) -> Result<Vec<Rule>, Failure> {
        let process = self.pid.map(|pid| controller.process(pid)).transpose()?.map(|process| process.info().key());
        let rules = rules.into_iter().map(|mut rule| {
            rule.process = rule.process.or(process);
            if rule.excludes() { rule } else { rule.statistic(statistic.clone()) }
        });
        Ok(rules.collect())
    }
}

impl LiveArguments {
    /// True if the numbers of a session are shown more than once.
    const fn is_repeated(&self) -> bool {
        self.watch || self.count.is_some()
    }

    /// Starts a session that computes `statistic` of the rules, or attaches to the existing session.
    fn start<'a>(
        &self,
        controller: &'a Controller,
        target: Target,
        statistic: &StatisticSpec,
    ) -> Result<StatisticSession<'a>, Failure> {
        match target {
            Target::Session(name) => {
                let is_partial = require_statistic(controller, &name, self.programs.timeout)?;
                Ok(StatisticSession { own: None, name, is_partial })
            }
            Target::Rules(rules) => {
                let rules = self.programs.with_statistic(controller, rules, statistic)?;
                let own = OwnSession::start(controller, "stat", &rules, self.programs.timeout)?;
                let (name, is_partial) = (own.name().to_owned(), own.is_partial);
                Ok(StatisticSession { own: Some(own), name, is_partial })
            }
        }
    }

    /// Serves the statistics of a session, or `statistic` of the rules, as metrics until Ctrl-C.
    pub(super) fn serve(
        &self,
        target: Target,
        statistic: &StatisticSpec,
        address: SocketAddr,
        scope: &Scope,
    ) -> VerbResult {
        let controller = controller(self.programs.pid)?;
        let StatisticSession { own, name, .. } = self.start(&controller, target, statistic)?;
        let served = listen::serve(address, || Ok(scope.metrics(&controller.statistics(&name)?)));
        drop(own);
        served
    }

    /// Shows the statistics of a session, or `statistic` of the rules, until it is over.
    pub(super) fn run(&self, target: Target, statistic: &StatisticSpec, view: &mut dyn View) -> VerbResult {
        let controller = controller(self.programs.pid)?;
        let mut ends = EndCondition::new(self, &controller)?;
        let is_named = matches!(target, Target::Session(_));
        let StatisticSession { own, name, is_partial } = self.start(&controller, target, statistic)?;
        // The numbers of a named session are shown at once. The first numbers of a temporary session, and of an interval, would all be 0.
        let mut began = Instant::now();
        if own.is_some() || view.is_of_intervals() {
            view.begin(&controller.statistics(&name)?);
            began += self.programs.interval;
            // Numbers up to the end are shown.
            ends.wait(self.programs.interval)?;
        }
        let mut shown = 0;
        let mut outcome = if is_partial { Outcome::Incomplete } else { Outcome::Success };
        let mut is_told = false;
        let is_computed = loop {
            let statistics = controller.statistics(&name)?;
            for unreadable in &statistics.unreadable {
                message::error(unreadable);
                outcome = Outcome::Incomplete;
            }
            let is_computed = statistics.processes.iter().any(|process| !process.statistics.is_empty());
            if is_computed || view.shows_nothing() {
                view.show(&statistics)?;
            }
            if !is_computed && !std::mem::replace(&mut is_told, true) {
                let state = controller.session(&name)?.spec()?.state;
                let mend = if state == State::Active { "" } else { "; it is not started: `tracectl start` starts it" };
                message::note(&format!("no process computes anything for the session {name}{mend}"));
            }
            shown += 1;
            let is_once =
                self.once || view.is_shown_once() || (is_named && !self.is_repeated() && !view.is_of_intervals());
            let most = if is_once { Some(1) } else { self.count };
            began += self.programs.interval;
            if most.is_some_and(|most| shown >= most) || ends.wait(began.saturating_duration_since(Instant::now()))? {
                break is_computed;
            }
        };
        drop(own);
        Ok(if is_computed { outcome } else { outcome.max(Outcome::Incomplete) })
    }
}

/// The session that computes the numbers.
struct StatisticSession<'a> {
    own: Option<OwnSession<'a>>,
    name: String,
    /// True if a participating process has not applied the session.
    is_partial: bool,
}

/// Returns true if a participating process has not applied the session within `timeout`. Fails if no rule of the session computes a statistic, or if
/// every process reports that it cannot.
fn require_statistic(controller: &Controller, name: &str, timeout: Duration) -> Result<bool, Failure> {
    let session = controller.session(name)?;
    let spec = session.spec()?;
    if spec.rules().flatten().any(|rule| rule.computes().is_some()) {
        return own::require_computed(&session.wait(spec.generation, timeout)?);
    }
    Err(Failure::Refused(format!(
        "the session {name} computes no statistic; add one with `tracectl enable {name} -e RULE --statistic count`, or \
         `'hist(FIELD)'`"
    )))
}

/// The operand, if it is a pattern of events and not a path.
fn pattern(operand: &Path) -> Option<&str> {
    let text = operand.to_str()?;
    let is_pattern = text == "*" || text.starts_with('!') || (text.contains(':') && !text.contains('/'));
    (is_pattern && !operand.exists()).then_some(text)
}

/// A display of numbers that is updated repeatedly.
pub(super) trait View {
    fn show(&mut self, statistics: &SessionStatistics) -> Result<(), Failure>;

    /// Notes the numbers at the beginning.
    fn begin(&mut self, _: &SessionStatistics) {}

    /// True if it shows the increments of each interval.
    fn is_of_intervals(&self) -> bool {
        false
    }

    /// True if it also shows an empty result.
    fn shows_nothing(&self) -> bool {
        false
    }

    /// True if it is shown only once.
    fn is_shown_once(&self) -> bool {
        false
    }
}

/// The end of the verb: a signal, or the end of the process.
struct EndCondition {
    interrupt: WaitingInterrupt,
    process: Option<Application>,
}

impl EndCondition {
    fn new(live: &LiveArguments, controller: &Controller) -> Result<Self, Failure> {
        let process = live.programs.pid.map(|pid| controller.process(pid)).transpose()?;
        Ok(Self { interrupt: WaitingInterrupt::without_children()?, process })
    }

    /// Waits; returns true at the end.
    fn wait(&mut self, time: Duration) -> Result<bool, Failure> {
        let deadline = Instant::now() + time;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let is_gone = self.process.as_ref().is_some_and(|process| !process.is_alive());
            if is_gone || self.interrupt.is_requested() {
                return Ok(true);
            }
            if left.is_zero() {
                return Ok(false);
            }
            self.interrupt.wait(left);
        }
    }
}
