//! `tracectl stat` of running programs: counts and rates.

use super::combine::{distinct, over_events};
use super::screen::Screen;
use super::{Form, View};
use crate::failure::Failure;
use crate::output;
use crate::statistics::chart;
use crate::statistics::groups::Cells;
use crate::statistics::text::named;
use crate::table::{self, Table};
use anstyle::Style;
use serde_json::json;
use std::collections::HashMap;
use std::io::Write;
use tracepoint_probes::snapshot::{Distribution, Results, Rows};
use tracepoint_probes::{GroupKey, StatisticSpec};
use tracepoint_session_io::statistics::{SessionStatistics, StatisticResult};

pub(crate) struct StatView {
    form: Form,
    /// True for a named session: all of its statistics are shown, by rule. Otherwise shows the counts of the temporary session.
    is_named: bool,
    /// The fields that group the counts.
    by: Vec<String>,
    screen: Screen,
    /// Number of group columns, once their heading was written.
    group_columns: Option<usize>,
    /// The time and the counts of the previous look.
    before: Option<(u64, HashMap<Key, u64>)>,
}

/// Identifies a line: the statistic of its rule, its event, the name of its group, and the group's values (values of two types may have the same
/// name).
type Key = ([String; 3], Vec<GroupKey>);

struct Line {
    rule: String,
    /// The statistic of a named session, the event, and the group.
    names: [String; 3],
    /// The values of the grouping fields, then the number of these fields; no values for events without a group.
    keys: Vec<GroupKey>,
    group_fields: usize,
    count: u64,
    per_second: Option<f64>,
    values: Option<Distribution>,
    is_duration: bool,
    /// The error of a count, and other values.
    note: String,
}

impl Line {
    fn key(&self) -> Key {
        let [_, event, group] = &self.names;
        ([self.rule.clone(), event.clone(), group.clone()], self.keys.clone())
    }

    /// The sort key among lines with the same count. Lines without a group come last.
    fn place(&self) -> (&str, &str, bool, &[GroupKey], &str) {
        let [statistic, event, group] = &self.names;
        (statistic, event, self.keys.is_empty(), &self.keys, group)
    }
}

impl StatView {
    pub(crate) fn new(form: Form, is_named: bool, by: Vec<String>) -> Self {
        Self { form, is_named, by, screen: Screen::new(), group_columns: None, before: None }
    }

    /// Adds the rates since the previous look. A number that has decreased was restarted from 0.
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    fn rate(&mut self, lines: &mut [Line], time: u64) -> Option<f64> {
        let now = lines.iter().map(|line| (line.key(), line.count)).collect();
        let (then, before) = self.before.replace((time, now))?;
        let seconds = time.saturating_sub(then) as f64 / 1e9;
        for line in lines.iter_mut().filter(|_| seconds > 0.0) {
            let earlier = before.get(&line.key()).copied().unwrap_or(0);
            line.per_second = Some(line.count.checked_sub(earlier).unwrap_or(line.count) as f64 / seconds);
        }
        Some(seconds)
    }

    /// The lines of all statistics; for a temporary session, the most frequent events come first.
    fn lines(&self, statistics: &SessionStatistics) -> Vec<Line> {
        let merged = match (self.is_named, self.by.is_empty()) {
            (true, _) => statistics.merged(),
            (false, true) => distinct(statistics),
            (false, false) => over_events(distinct(statistics)),
        };
        let mut lines: Vec<_> = merged.iter().flat_map(lines).collect();
        if !self.is_named {
            lines.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.place().cmp(&b.place())));
        }
        lines
    }
}

impl View for StatView {
    fn begin(&mut self, statistics: &SessionStatistics) {
        let mut lines = self.lines(statistics);
        self.rate(&mut lines, statistics.time);
    }

    /// JSON reports an empty result with its time, and CSV with its heading.
    fn shows_nothing(&self) -> bool {
        self.form != Form::Text
    }

    fn show(&mut self, statistics: &SessionStatistics) -> Result<(), Failure> {
        let mut lines = self.lines(statistics);
        let seconds = self.rate(&mut lines, statistics.time);
        match self.form {
            Form::Json if self.is_named => {
                let merged = statistics.clone().since_epoch().merged();
                let processes: Vec<_> = (statistics.processes.iter())
                    .map(|one| json!({ "pid": one.process.pid, "name": one.name, "is_alive": one.is_alive }))
                    .collect();
                let statistics = json!({ "time_ns": statistics.time_ns, "processes": processes, "statistics": merged });
                output::json(&statistics)?;
            }
            Form::Json => {
                let line = |line: &Line| {
                    let keys = match (self.by.is_empty(), line.keys.is_empty()) {
                        (true, _) => Some(json!([line.names[1]])),
                        (false, true) => None,
                        (false, false) => Some(json!(line.keys)),
                    };
                    json!({
                        "name": self.name(line), "keys": keys, "count": line.count, "per_second": line.per_second,
                    })
                };
                output::json(&json!({
                    "time_ns": statistics.time_ns,
                    "by": self.columns(),
                    "seconds": seconds,
                    "count": lines.iter().map(|line| line.count).fold(0, u64::saturating_add),
                    "processes": statistics.processes.len(),
                    "events": lines.iter().map(line).collect::<Vec<_>>(),
                }))?;
            }
            Form::Csv(cells) => self.csv(cells, &lines, statistics.time_ns)?,
            Form::Text => {
                let text = self.text(&lines)?;
                self.screen.show(&text)?;
            }
        }
        Ok(())
    }
}

impl StatView {
    /// The columns that group the counts of a temporary session.
    fn columns(&self) -> Vec<&str> {
        if self.by.is_empty() { vec!["event"] } else { self.by.iter().map(String::as_str).collect() }
    }

    fn name<'l>(&self, line: &'l Line) -> &'l str {
        if self.by.is_empty() && !self.is_named { &line.names[1] } else { &line.names[2] }
    }

    fn csv(&mut self, cells: Cells, lines: &[Line], time_ns: i64) -> Result<(), Failure> {
        let mut out = output::styled();
        if self.group_columns.is_none() {
            // The rules of a session may be grouped by different numbers of fields.
            let most = lines.iter().map(|line| line.group_fields).max().unwrap_or(0);
            let names = match (self.is_named, most) {
                (true, 2..) => "statistic,event,group,group2".to_owned(),
                (true, _) => "statistic,event,group".to_owned(),
                (false, _) => cells.texts(self.columns()),
            };
            writeln!(out, "time_ns,{names},count,per_second")?;
            self.group_columns = Some(if self.is_named { most.max(1) } else { self.columns().len() });
        }
        let columns = self.group_columns.unwrap_or(1);
        for line in lines {
            let rate = line.per_second.map_or_else(String::new, |rate| format!("{rate:.3}"));
            let [statistic, event, _] = &line.names;
            let group = cells.group(&line.keys, self.name(line), columns);
            let names =
                if self.is_named { format!("{},{group}", cells.texts([&**statistic, &**event])) } else { group };
            writeln!(out, "{time_ns},{names},{},{rate}", line.count)?;
        }
        Ok(out.flush()?)
    }

    fn text(&self, lines: &[Line]) -> Result<String, Failure> {
        let mut text = Vec::new();
        let has = |has: fn(&Line) -> bool| lines.iter().any(has);
        let (groups, rates, values, notes) = (
            has(|line| !line.names[2].is_empty()),
            has(|line| line.per_second.is_some()),
            has(|line| line.values.is_some()),
            has(|line| !line.note.is_empty()),
        );
        let mut table = Table::new("");
        let mut heading = Vec::new();
        if self.is_named {
            heading.extend([table::text("STATISTIC"), table::text("EVENT")]);
            heading.extend(groups.then(|| table::text("GROUP")));
        } else {
            heading.push(table::text(self.columns().join(",").to_uppercase()));
        }
        heading.push(table::number("COUNT"));
        heading.extend(rates.then(|| table::number("PER SECOND")));
        if values {
            heading.extend(["P50", "P90", "P99", "MAX"].map(table::number));
        }
        table.heading(heading);
        for line in lines {
            let mut row = Vec::new();
            if self.is_named {
                row.extend([table::text(&line.names[0]), table::text(&line.names[1])]);
                row.extend(groups.then(|| table::text(&line.names[2])));
            } else {
                row.push(table::text(self.name(line)));
            }
            let rate = || line.per_second.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}"));
            row.push(table::number(line.count));
            row.extend(rates.then(|| table::number(rate())));
            if values {
                let of = line.values.as_ref();
                let at = |percent| of.and_then(|of| chart::percentile(of, percent, line.is_duration));
                row.extend([50.0, 90.0, 99.0, 100.0].map(|percent| table::number(at(percent).unwrap_or_default())));
            }
            row.extend(notes.then(|| table::text(&line.note)));
            table.row(Style::new(), row);
        }
        if !lines.is_empty() {
            table.write(&mut text)?;
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

fn lines(result: &StatisticResult) -> Vec<Line> {
    let statistic = match &result.rule.filter {
        Some(filter) => format!("{} if {filter}", result.snapshot.statistic),
        None => result.snapshot.statistic.clone(),
    };
    let rule = result.rule.to_string();
    let spec = result.snapshot.statistic.parse::<StatisticSpec>();
    let group_fields = spec.map_or(0, |spec| spec.group_fields().len());
    let line = |group: String, count: u64| Line {
        rule: rule.clone(),
        names: [statistic.clone(), result.event.clone(), group],
        keys: Vec::new(),
        group_fields,
        count,
        per_second: None,
        values: None,
        is_duration: false,
        note: String::new(),
    };
    match &result.snapshot.results {
        Results::Count(rows) => {
            let line = |(name, keys, count): (String, Vec<GroupKey>, &u64)| Line { keys, ..line(name, *count) };
            groups(rows, |count| *count).into_iter().map(line).collect()
        }
        Results::Histogram(rows) | Results::Latency { durations: rows, .. } => {
            let all = groups(rows, Distribution::count).into_iter();
            let line = |(name, keys, values): (String, Vec<GroupKey>, &Distribution)| Line {
                keys,
                values: Some(values.clone()),
                is_duration: result.is_duration,
                ..line(name, values.count())
            };
            all.map(line).collect()
        }
        Results::Rate(rate) => vec![line(String::new(), rate.events)],
        Results::Last { values } => values
            .iter()
            .rev()
            .map(|value| Line { note: "last".to_owned(), ..line(value.value.to_string(), 1) })
            .collect(),
        Results::Top { values } => {
            let note = |error: u64| if error > 0 { format!("at most {error} fewer") } else { String::new() };
            let line = |value: &tracepoint_probes::snapshot::FrequentValue| Line {
                note: note(value.error),
                ..line(value.value.to_string(), value.count)
            };
            values.iter().map(line).collect()
        }
        _ => Vec::new(),
    }
}

/// The groups with their names, the most frequent first. The total over all groups has no name.
fn groups<T>(rows: &Rows<T>, rank: impl Fn(&T) -> u64) -> Vec<(String, Vec<GroupKey>, &T)> {
    let groups = rows.ranked(rank).into_iter().map(|row| (named(&row.keys), row.keys.clone(), &row.value));
    let others = [(&rows.overflow, "(further groups)"), (&rows.ungrouped, "(no group)")];
    let others = others.into_iter().filter_map(|(value, name)| Some((name.to_owned(), Vec::new(), value.as_ref()?)));
    rows.all.iter().map(|all| (String::new(), Vec::new(), all)).chain(groups).chain(others).collect()
}
