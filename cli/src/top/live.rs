//! Running processes: a temporary session counts their events, and computes the values of the inspected field.
//!
//! The session has one count rule for each rule of the selection, and `!EVENT` for each event that was switched off. While an event is inspected,
//! there are also one rule for the distribution or the most frequent values of the field, and one that records a few of the events per second. If
//! the events are those of a named session, switching one off or on changes that session as well.

mod counts;

use super::source::{Detail, FREQUENT, Focus, LAST, Overview, Source, Values, lines};
use crate::failure::Failure;
use crate::message::counted;
use crate::session::acks::unsupported_rules_by_index;
use crate::statistics::live::own::OwnSession;
use crate::statistics::live::{ProgramArguments, Target};
use counts::Counts;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;
use tracepoint_controller::{Controller, NamedSession};
use tracepoint_probes::snapshot::Results;
use tracepoint_probes::{Measure, StatisticSpec};
use tracepoint_reader::{Event, Item, Trace};
use tracepoint_run_dir::Ack;
use tracepoint_session_io::ControlError;
use tracepoint_session_io::statistics::StatisticResult;
use tracepoint_session_spec::{ChannelSpec, Rule, SessionSpec};

/// Rate limit for recording inspected events in each process; followed by the size of its rings.
const RECORDED: &str = "20/s burst 20";
const RING: usize = 64 << 10;

pub(super) struct Live<'a> {
    controller: &'a Controller,
    own: OwnSession<'a>,
    /// The named session, if it determines the events.
    named: Option<NamedSession<'a>>,
    interval: Duration,
    counts: Counts,
    /// The fields of the known events.
    fields: HashMap<String, Vec<String>>,
    inspected: Option<Inspection>,
    /// Set if the metadata of the events shown last has been altered.
    metadata_damage: Option<String>,
}

/// The inspected event.
struct Inspection {
    focus: Focus,
    /// The rules added for it.
    rules: Vec<Rule>,
}

impl<'a> Live<'a> {
    /// Starts a session that counts the events.
    pub(super) fn start(
        controller: &'a Controller,
        programs: &ProgramArguments,
        target: Target,
    ) -> Result<Self, Failure> {
        let (named, rules) = match target {
            Target::Rules(rules) => (None, rules),
            Target::Session(name) => {
                let session = controller.session(&name)?;
                let spec = session.spec()?;
                let rules: Vec<_> = spec.rules().flatten().filter_map(selection).collect();
                if rules.iter().all(Rule::excludes) {
                    let text = format!(
                        "the session {name} has no rule that selects events; add one with `tracectl enable {name} -e RULE`"
                    );
                    return Err(Failure::Refused(text));
                }
                (Some(session), rules)
            }
        };
        let rules = programs.with_statistic(controller, rules, &StatisticSpec::new(Measure::Count))?;
        let own = OwnSession::start(controller, "top", &rules, programs.timeout)?;
        let (counts, fields) = (Counts::default(), HashMap::new());
        Ok(Self {
            controller,
            own,
            named,
            interval: programs.interval,
            counts,
            fields,
            inspected: None,
            metadata_damage: None,
        })
    }

    /// Reads the fields of new events.
    fn learn_fields(&mut self) -> Result<(), Failure> {
        if self.counts.names().all(|name| self.fields.contains_key(name)) {
            return Ok(());
        }
        for process in self.controller.processes()? {
            // The process may have ended in the meantime.
            for tracepoint in process.tracepoints().unwrap_or_default() {
                let fields = tracepoint.fields.into_iter().map(|field| field.name);
                self.fields.entry(tracepoint.name).or_insert_with(|| fields.collect());
            }
        }
        for name in self.counts.names() {
            if !self.fields.contains_key(name) {
                let fields = self.fields.get(declared(name)).cloned().unwrap_or_default();
                self.fields.insert(name.clone(), fields);
            }
        }
        Ok(())
    }

    /// Replaces the rules of the inspected event.
    fn inspect(&mut self, focus: Option<&Focus>, rules: Vec<Rule>) -> Result<(SessionSpec, Vec<Ack>), Failure> {
        let former = self.inspected.take().map(|inspected| inspected.rules).unwrap_or_default();
        let changed = self.own.change(|spec| {
            spec.set_channel(ChannelSpec::overwrite(RING));
            for rule in &former {
                spec.remove_rule(rule);
            }
            rules.iter().try_for_each(|rule| add(spec, rule))
        });
        let rules = if changed.is_ok() { rules } else { former };
        self.inspected = focus.map(|focus| Inspection { focus: focus.clone(), rules });
        changed
    }

    /// Adds a rule for the values of the field: a distribution if all processes support it, otherwise the most frequent values.
    fn look_into(&mut self, focus: &Focus) -> Result<(), Failure> {
        let Some(rule) = self.counts.rule(&focus.event) else { return Ok(()) };
        let mut event = rule.clone();
        (event.event, event.statistic) = (Rule::new(exact(declared(&focus.event))).event, None);
        let recorded = event.clone().limit(RECORDED);
        let measures = focus.field.as_ref().map(|field| {
            let top = Measure::Top { field: field.clone(), count: FREQUENT };
            [Measure::Histogram { field: field.clone() }, top].map(StatisticSpec::new)
        });
        let rules = |statistic: Option<&StatisticSpec>| -> Vec<Rule> {
            let statistic = statistic.map(|statistic| event.clone().statistic(statistic.clone()));
            statistic.into_iter().chain([recorded.clone()]).collect()
        };
        let first = rules(measures.as_ref().map(|[histogram, _]| histogram));
        let statistic = first[0].clone();
        let (spec, acks) = self.inspect(Some(focus), first)?;
        if let Some([_, top]) = &measures
            && is_unsupported(&spec, &acks, &statistic)
        {
            self.inspect(Some(focus), rules(Some(top)))?;
        }
        Ok(())
    }

    fn values(&self, event: &str) -> Result<Values, Failure> {
        let statistics = self.controller.statistics(self.own.name())?;
        let results = statistics.processes.into_iter().flat_map(|process| process.statistics);
        let mut all: Option<StatisticResult> = None;
        for result in results.filter(|result| result.event == event) {
            if matches!(result.snapshot.results, Results::Count(_)) {
                continue;
            }
            match &mut all {
                // Results of another kind from further processes are left out.
                Some(all) => drop(all.snapshot.merge(result.snapshot)),
                None => all = Some(result),
            }
        }
        Ok(all.map_or(Values::None, |result| Values::of(result.snapshot.results, result.is_duration)))
    }

    /// The most recent recorded events.
    fn last(&mut self, event: &str) -> Result<Vec<Event>, Failure> {
        let place = tempfile::tempdir()?;
        let out = place.path().join("events");
        // There are no rings before the first event.
        if self.own.snapshot(&out).is_err() {
            return Ok(Vec::new());
        }
        let paths: Vec<PathBuf> = vec![out];
        let mut last = Vec::new();
        let trace = Trace::open_all(&paths)?;
        self.metadata_damage = trace.metadata_damage().next().map(|damage| damage.reason);
        for item in trace.items() {
            if let Item::Event(item) = item
                && item.class.name == event
            {
                last.push(item);
            }
        }
        last.drain(..last.len().saturating_sub(LAST));
        Ok(last)
    }
}

impl Source for Live<'_> {
    fn interval(&self) -> Option<Duration> {
        Some(self.interval)
    }

    fn overview(&mut self) -> Result<Overview, Failure> {
        let statistics = self.controller.statistics(self.own.name())?;
        // A switched event ends the interval early; an interval that short must not become a slice.
        let is_early = self.counts.age(statistics.time).is_some_and(|age| age < self.interval.as_secs_f64() / 2.0);
        if is_early {
            self.counts.note_state(&statistics);
        } else {
            self.counts.add(&statistics);
        }
        self.learn_fields()?;
        let (processes, events) = (self.counts.processes(), self.counts.rows(&self.fields));
        let alive = processes.iter().filter(|process| process.is_alive).count();
        let on = events.iter().filter(|event| event.is_on).count();
        let session = self.named.as_ref().map_or_else(String::new, |named| format!("session {}: ", named.name()));
        let processes_text = if alive == 1 { "1 process".to_owned() } else { format!("{alive} processes") };
        let heading = format!("{session}{processes_text}, {}, {on} on", counted(events.len() as u64, "tracepoint"));
        let unreadable = statistics.unreadable.first().cloned();
        let note = unreadable
            .or_else(|| self.metadata_damage.clone())
            .or_else(|| (alive == 0).then(|| "no process is left; those that start are shown".to_owned()));
        Ok(Overview { heading, processes, events, note })
    }

    fn detail(&mut self, focus: &Focus) -> Result<Detail, Failure> {
        if self.inspected.as_ref().is_none_or(|inspected| inspected.focus != *focus) {
            self.look_into(focus)?;
        }
        let values = self.values(&focus.event)?;
        let last = lines(&self.last(&focus.event)?)?;
        Ok(Detail { values, last, last_title: "last events (at most 20 a second of each process)" })
    }

    fn leave(&mut self) -> Result<(), Failure> {
        self.inspect(None, Vec::new())?;
        Ok(())
    }

    fn switch(&mut self, event: &str, on: bool) -> Result<(), Failure> {
        let rule = Rule::new(format!("!{}", exact(declared(event))));
        let change = |spec: &mut SessionSpec| {
            if on {
                spec.remove_rule(&rule);
                Ok(())
            } else {
                add(spec, &rule)
            }
        };
        if let Some(named) = &self.named {
            named.change(&format!("{} {rule}", if on { "disable" } else { "enable" }), change)?;
        }
        self.own.change(change)?;
        Ok(())
    }
}

/// The selection of a rule, without its statistic. A latency selects events by its statistic and has none.
fn selection(rule: &Rule) -> Option<Rule> {
    let is_latency = rule.computes().is_some_and(StatisticSpec::is_latency);
    let mut selection = rule.clone();
    (selection.statistic, selection.channel, selection.limit, selection.record) = (None, None, None, false);
    let is_of_one_channel = rule.excludes() && rule.channel.is_some();
    (!is_latency && !is_of_one_channel).then_some(selection)
}

fn add(spec: &mut SessionSpec, rule: &Rule) -> Result<(), ControlError> {
    let failed = |error| ControlError::SessionSpec { session: "top".to_owned(), error };
    spec.add_rule(rule).map(drop).map_err(failed)
}

/// The declared name of an event: if several share a name and differ in their fields, all except the first have a number appended.
fn declared(name: &str) -> &str {
    match name.rsplit_once('#') {
        Some((declared, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => declared,
        _ => name,
    }
}

/// A pattern that matches only this name.
fn exact(name: &str) -> String {
    let is_special = |c| matches!(c, '*' | '?' | '[' | ']' | '\\');
    name.chars().flat_map(|c| is_special(c).then_some('\\').into_iter().chain([c])).collect()
}

/// True if a process cannot compute the statistic of a rule.
fn is_unsupported(spec: &SessionSpec, acks: &[Ack], rule: &Rule) -> bool {
    let place = spec.rules().position(|known| known == Ok(rule));
    acks.iter().flat_map(unsupported_rules_by_index).any(|(index, _)| Some(index) == place)
}

#[cfg(test)]
mod tests {
    use super::{declared, exact, selection};
    use tracepoint_session_spec::Rule;

    #[test]
    fn names_are_no_patterns() {
        assert_eq!(exact("a:b[*]?\\"), "a:b\\[\\*\\]\\?\\\\");
        assert_eq!(["a:b#2", "a:b#c", "a:b"].map(declared), ["a:b", "a:b#c", "a:b"]);
    }

    #[test]
    fn rules_select_without_what_they_do() {
        let rule = Rule::new("shop:*").level("<=info").filter("n > 1");
        let does = rule.clone().limit("1/s").channel("flight").statistic("hist(n)").record();
        assert_eq!(selection(&does), Some(rule));
        assert_eq!(selection(&Rule::new("!shop:a")), Some(Rule::new("!shop:a")));
        assert_eq!(selection(&Rule::new("!shop:a").channel("flight")), None);
        assert_eq!(selection(&Rule::new("*").statistic("latency(a:b, a:c)")), None);
    }
}
