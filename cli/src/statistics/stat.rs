//! `tracectl stat`: counts events.

#[cfg_attr(not(target_os = "linux"), path = "stat/no_programs.rs")]
mod programs;

use super::groups::Cells;
use super::live::LiveArguments;
use super::pass::{Input, Order, PassSummary};
use super::summary::{statistic, summaries};
use super::text::named;
use crate::argument_error::ArgumentError;
use crate::failure::{Failure, VerbResult};
use crate::output;
use crate::selection::{EventSelection, TimeSelection};
use crate::table::{self, Table};
use anstyle::Style;
use clap::Args;
use serde_json::json;
use std::collections::HashMap;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use tracepoint_probes::snapshot::{Results, Rows};
use tracepoint_probes::{GroupKey, Measure, StatisticSpec};
use tracepoint_reader::metadata::EventClass;
use tracepoint_reader::{EventView, Visitor};

/// Counts events, by name or by the values of fields
///
/// Of recorded traces or of running programs. The rate in a trace covers the time between the first and the last selected event. Traces are read
/// in parallel.
///
/// Without the path of a trace, the events given by the operands and `-e` are counted in running programs until Ctrl-C, and are not recorded. The
/// rate covers the last interval. `-s SESSION` shows all statistics of a session's rules (`tracectl create --statistic`), once
/// unless `--watch` is given.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl stat /tmp/trace
  tracectl stat -e 'shop:answered' --by path,status /tmp/trace
  tracectl stat --since +5s --until +6s /tmp/trace
  tracectl stat 'shop:*'
  tracectl stat 'shop:answered' --by path -p 4242 --count 10 --json
  tracectl stat -s numbers
  tracectl stat -s numbers --watch
  tracectl stat --csv /tmp/trace > counts.csv
  tracectl stat --prometheus --by path /tmp/trace
  tracectl stat --listen 9464 'shop:*'                   (then: curl http://127.0.0.1:9464/metrics)
  tracectl stat -s numbers --prometheus
  tracectl stat --json --filter 'status >= 500' /tmp/trace | jq .events")]
pub(crate) struct Stat {
    /// A directory with a CTF trace, or with several below it; or a dt file. Several paths are merged. Or events of running programs, as
    /// `provider:name` with `*`, `?` and `[a-z]`
    #[arg(value_name = "PATH|EVENT")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    selection: EventSelection,
    #[command(flatten)]
    times: TimeSelection,
    /// Count by the values of one or two fields in place of the name
    #[arg(long, help_heading = "Groups", value_name = "FIELD,…", value_delimiter = ',')]
    by: Vec<String>,
    /// The largest number of groups; further values are counted together
    #[arg(long, help_heading = "Groups", value_name = "N", default_value_t = 1000)]
    groups: usize,
    /// Write one JSON object: `seconds`, `lost`, and `events` with `name`, `keys` (a value for each field of --by), `count` and `per_second`; for
    /// running programs, one per interval
    #[arg(long, help_heading = "Form of the output")]
    json: bool,
    /// Write comma-separated values, with a column for each field of --by
    #[arg(long, help_heading = "Form of the output", conflicts_with = "json")]
    csv: bool,
    #[command(flatten)]
    cells: Cells,
    /// Write the counts as metrics in Prometheus's text format; for running programs once, and for a session all statistics of its rules
    #[arg(long, help_heading = "Form of the output", conflicts_with_all = ["json", "csv"])]
    prometheus: bool,
    /// Serve the same over HTTP until Ctrl-C; the traces, or the statistics of the programs, are read for each request. A port alone is on 127.0.0.1;
    /// port 0: any free one
    #[arg(long, help_heading = "Form of the output", value_name = "[ADDR:]PORT", value_parser = address, conflicts_with_all = ["json", "csv", "prometheus"])]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    live: LiveArguments,
}

/// Event counts by name or by fields, the most frequent first.
struct EventCounts {
    rows: Rows<u64>,
    seen: PassSummary,
}

/// A line: a kind or group of events, and its count.
struct Line {
    name: String,
    /// The values of the grouping fields; none for events without a group.
    keys: Vec<GroupKey>,
    count: u64,
}

fn lines(rows: &Rows<u64>) -> Vec<Line> {
    let groups =
        rows.groups.iter().map(|row| Line { name: named(&row.keys), keys: row.keys.clone(), count: row.value });
    let others = [(rows.overflow, "(further groups)"), (rows.ungrouped, "(no group)")];
    let others = others
        .into_iter()
        .filter_map(|(count, name)| Some(Line { name: name.to_owned(), keys: Vec::new(), count: count? }));
    groups.chain(others).collect()
}

/// Counts events by their kind.
#[derive(Default)]
struct Counts {
    kinds: Vec<(Arc<EventClass>, u64)>,
    /// The index of a kind, by its address.
    places: HashMap<usize, usize>,
    /// The index of the last event's kind.
    last: usize,
}

impl Visitor for Counts {
    #[inline]
    fn event(&mut self, event: &EventView<'_>) {
        let class = event.class();
        if !self.kinds.get(self.last).is_some_and(|(last, _)| Arc::ptr_eq(last, class)) {
            self.last = *self.places.entry(Arc::as_ptr(class) as usize).or_insert_with(|| {
                self.kinds.push((Arc::clone(class), 0));
                self.kinds.len() - 1
            });
        }
        self.kinds[self.last].1 += 1;
    }
}

impl Stat {
    pub(crate) fn run(&self) -> VerbResult {
        if let Some(target) = self.live.programs.target(&self.paths, &self.selection, false)? {
            return self.run_live(target);
        }
        if let Some(address) = self.listen {
            return self.serve(address);
        }
        let counted = self.count()?;
        if self.prometheus {
            self.write_metrics(&counted)?;
        } else {
            self.write(&counted)?;
        }
        Ok(counted.seen.report())
    }

    fn count(&self) -> Result<EventCounts, Failure> {
        let (mut rows, seen) = if self.by.is_empty() { self.by_name()? } else { self.by_fields()? };
        rows.sort_by_rank(|count| *count);
        Ok(EventCounts { rows, seen })
    }

    fn input(&self) -> Input<'_> {
        Input { paths: &self.paths, selection: &self.selection, times: self.times }
    }

    fn spec(&self, by: &[String]) -> StatisticSpec {
        StatisticSpec::new(Measure::Count).by(by.iter().cloned()).max_groups(self.groups)
    }

    fn by_name(&self) -> Result<(Rows<u64>, PassSummary), Failure> {
        let (input, start) = (self.input(), |threads| (0..threads).map(|_| Counts::default()).collect());
        let (counts, seen) = input.pass(&input.open()?, Order::Any, start)?;
        let mut names: HashMap<String, u64> = HashMap::new();
        for (class, count) in counts.into_iter().flat_map(|counts| counts.kinds) {
            *names.entry(class.name.clone()).or_default() += count;
        }
        let groups = names.into_iter().map(|(text, count)| (GroupKey::Text { text, whole: true }, count));
        Ok((Rows::counted(groups), seen))
    }

    fn by_fields(&self) -> Result<(Rows<u64>, PassSummary), Failure> {
        let input = self.input();
        let trace = input.open()?;
        let (snapshots, seen) = summaries(input, &trace, &[statistic(input, &trace, self.spec(&self.by))?])?;
        let rows = match snapshots.into_iter().next().map(|snapshot| snapshot.results) {
            Some(Results::Count(rows)) => rows,
            _ => Rows::default(),
        };
        Ok((rows, seen))
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    fn write(&self, EventCounts { rows, seen }: &EventCounts) -> Result<(), Failure> {
        let lines: Vec<_> = lines(rows);
        let seconds = seen.seconds();
        let per_second = |count: u64| (seconds > 0.0).then(|| count as f64 / seconds);
        let event = ["event".to_owned()];
        let by = if self.by.is_empty() { &event[..] } else { &self.by };
        let mut out = output::styled();
        if self.json {
            let line = |line: &Line| {
                let keys = (!line.keys.is_empty()).then_some(&line.keys);
                json!({ "name": line.name, "keys": keys, "count": line.count, "per_second": per_second(line.count) })
            };
            output::json(&json!({
                "by": by,
                "seconds": seconds,
                "count": lines.iter().map(|line| line.count).fold(0, u64::saturating_add),
                "lost": seen.lost,
                "lost_more": seen.lost_more,
                "events": lines.iter().map(line).collect::<Vec<_>>(),
            }))?;
        } else if self.csv {
            let cells = self.cells;
            writeln!(out, "{},count,per_second", cells.texts(by.iter().map(String::as_str)))?;
            for line in &lines {
                let rate = per_second(line.count).map_or_else(String::new, |rate| format!("{rate:.3}"));
                writeln!(out, "{},{},{rate}", cells.group(&line.keys, &line.name, by.len()), line.count)?;
            }
        } else {
            let mut table = Table::new("");
            table.heading([
                table::text(by.join(",").to_uppercase()),
                table::number("COUNT"),
                table::number("PER SECOND"),
            ]);
            for line in &lines {
                let rate = per_second(line.count).map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}"));
                table.row(Style::new(), [table::text(&line.name), table::number(line.count), table::number(rate)]);
            }
            table.write(&mut out)?;
        }
        Ok(())
    }
}

/// Parses `PORT` or `ADDRESS:PORT`.
fn address(text: &str) -> Result<SocketAddr, ArgumentError> {
    let port = text.parse().map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    port.or_else(|_| text.parse()).map_err(|_| {
        "expected a port or an address with a port, for example `9464`, `192.0.2.7:9464` or `[::1]:9464`".into()
    })
}
