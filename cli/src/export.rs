//! `tracectl export`: traces in the formats of other viewers.

mod flame;
mod stacks;
mod target;

use crate::failure::{Failure, Outcome, VerbResult};
use crate::message::{self, counted};
use crate::open::open;
use crate::output;
use crate::output_file;
use crate::progress::LiveLine;
use crate::query;
use crate::selection::{EventSelection, TimeSelection, glob};
use crate::time_point::Context;
use crate::view::{Selection, report_unfinished};
use clap::{ArgGroup, Args};
use flame::FlameGraph;
use serde_json::json;
use stacks::{NO_SAMPLES, NO_SPANS, NO_WAITS, Stacks};
use std::ffi::OsString;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use target::Target;
use tracepoint_export::{Chrome, Csv, Exporter, FoldedStacks, Format, Otlp, Perfetto, Summary, maps_code};
use tracepoint_reader::{Item, Trace};
use tracepoint_session_spec::check_fields;
use tracepoint_session_spec::glob::Glob;

/// Writes events in the format of another viewer
///
/// Spans are shown as slices: the events that begin and end a span are paired by its id. Missing data is shown:
/// lost events, spans that had not ended, and spans that began before the trace. The trace is read once, in time order, and written
/// at the same time, so that it may be larger than memory. docs/export.md describes each format.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("format").required(true), after_help = "\
Examples:
  tracectl export --perfetto /tmp/trace.pftrace /tmp/trace         open it at https://ui.perfetto.dev
  tracectl export --chrome /tmp/trace.json --since -5s /tmp/trace
  tracectl export --perfetto /tmp/trace.pftrace --counter depth /tmp/trace
  tracectl export --perfetto /tmp/trace.pftrace -e 'shop:*' /tmp/trace     and the states of `record --waits`
  tracectl export --csv - -e shop:answered --fields path,status /tmp/trace | sort | head
  tracectl export --flame /tmp/trace.svg /tmp/trace
  tracectl export --folded - --stacks calls /tmp/trace | inferno-flamegraph > calls.svg
  tracectl export --flame /tmp/request.svg --span 'shop:request' /tmp/trace      docs/samples.md
  tracectl export --flame /tmp/off-cpu.svg --stacks waits --span 'shop:request' /tmp/trace      docs/waits.md
  tracectl export --otlp /tmp/spans.jsonl /tmp/trace
  tracectl export --csv /tmp/slow.csv --filter 'duration_ns > 10ms' --json /var/tmp/shop.dt
  tracectl export --parquet /srv/traces /tmp/trace                 docs/parquet.md")]
pub(crate) struct Export {
    /// Perfetto's protobuf: tracks of processes and threads, slices, states of threads, instants, counters, flows
    #[arg(long, help_heading = "Formats", value_name = "OUT", group = "format")]
    perfetto: Option<PathBuf>,
    /// JSON for `chrome://tracing`, Perfetto and Speedscope
    #[arg(long, help_heading = "Formats", value_name = "OUT", group = "format")]
    chrome: Option<PathBuf>,
    /// Comma-separated values: a line for each event and each loss, a column for each field
    #[arg(long, help_heading = "Formats", value_name = "OUT", group = "format")]
    csv: Option<PathBuf>,
    /// Folded stacks, for flame graph programs: the time in spans without their children, or the number of call stacks
    #[arg(long, help_heading = "Formats", value_name = "OUT", group = "format")]
    folded: Option<PathBuf>,
    /// The same as a flame graph: an SVG picture
    #[arg(long, help_heading = "Formats", value_name = "OUT.svg", group = "format")]
    flame: Option<PathBuf>,
    /// Spans for OpenTelemetry: OTLP as JSON lines, one request each
    #[arg(long, help_heading = "Formats", value_name = "OUT", group = "format")]
    otlp: Option<PathBuf>,
    /// The same as protobuf: each `ExportTraceServiceRequest` after its length as a varint
    #[arg(long, help_heading = "Formats", value_name = "OUT", group = "format")]
    otlp_protobuf: Option<PathBuf>,
    /// A store of Parquet files, for DuckDB and other engines: all events, in a directory or `s3://BUCKET/PREFIX`, which may contain other traces.
    /// Runs `tracectl-query`
    #[arg(long, help_heading = "Formats", value_name = "STORE", group = "format", conflicts_with_all = ["events", "level", "filter", "since", "until", "fields", "counter", "stacks"])]
    parquet: Option<PathBuf>,
    /// A directory with a CTF trace, or with several below it; or a dt file. Several paths are merged. OUT is a file that does not exist, or `-`
    /// for the standard output. Until it is complete, the file is called `OUT.partial`
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Write one JSON object with a summary: `output`, `events`, `spans_closed`, `spans_open`, `lost_events`, …
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    selection: EventSelection,
    #[command(flatten)]
    times: TimeSelection,
    /// The fields that are columns of --csv [default: all of the selected events]
    #[arg(long, help_heading = "Form of the output", value_name = "NAME,…", value_delimiter = ',', conflicts_with_all = ["perfetto", "chrome", "folded", "flame", "otlp", "otlp_protobuf"])]
    fields: Option<Vec<String>>,
    /// Put `'` in front of texts that a spreadsheet would take for formulas: --csv
    #[arg(long, help_heading = "Form of the output", conflicts_with_all = ["perfetto", "chrome", "folded", "flame", "otlp", "otlp_protobuf", "parquet"])]
    guard_formulas: bool,
    /// Also draw the numbers in these fields as counters: --perfetto and --chrome
    #[arg(long, help_heading = "Form of the output", value_name = "FIELD,…", value_delimiter = ',', conflicts_with_all = ["csv", "folded", "flame", "otlp", "otlp_protobuf"])]
    counter: Vec<String>,
    /// The source of stacks for --folded and --flame: spans, in nanoseconds; counted calls, in channels with the context `CallStack`; samples of
    /// the processor (`record --samples`); or waits of threads (`record --waits`), in nanoseconds by spans and cause [default: samples, if the trace
    /// has any, or else spans]
    #[arg(long, help_heading = "Form of the output", value_name = "OF", value_enum, conflicts_with_all = ["csv", "perfetto", "chrome", "otlp", "otlp_protobuf"])]
    stacks: Option<Stacks>,
    /// Only samples or waits of threads inside a span with this `provider:name`, with `*`, `?` and `[a-z]`: --folded and --flame
    #[arg(long, help_heading = "Form of the output", value_name = "NAME", value_parser = glob, conflicts_with_all = ["csv", "perfetto", "chrome", "otlp", "otlp_protobuf", "parquet"])]
    span: Option<Glob>,
}

impl Export {
    fn path(&self) -> Option<&Path> {
        let Self { perfetto, chrome, csv, folded, flame, otlp, otlp_protobuf, .. } = self;
        [perfetto, chrome, csv, folded, flame, otlp, otlp_protobuf].into_iter().flatten().map(PathBuf::as_path).next()
    }

    pub(crate) fn run(&self) -> VerbResult {
        if let Some(store) = &self.parquet {
            return self.run_parquet(store);
        }
        let Some(path) = self.path() else {
            return Err(Failure::Usage("name a format, such as `--perfetto OUT`".to_owned()));
        };
        if self.json && output_file::is_standard(path) {
            return Err(Failure::Usage(
                "`--json` and the exported trace cannot both be written to `-`: name a file".to_owned(),
            ));
        }
        let trace = open(&self.paths)?;
        let metadata = || trace.metadata().map(|(_, metadata)| metadata);
        let filter = self.selection.filter()?;
        filter.check(metadata())?;
        check_fields(self.fields.as_deref().unwrap_or_default(), metadata())?;
        check_fields(&self.counter, metadata())?;
        let range = trace.range();
        let times = self.times.resolve(&Context { range, utc: false })?;
        let mut selection = Selection { filter, times, head: None };

        let has_stacks = self.folded.is_some() || self.flame.is_some();
        let stacks = has_stacks.then(|| Stacks::choose(self.stacks, &trace)).transpose()?;
        if self.span.is_some() && !matches!(stacks, Some(Stacks::Samples | Stacks::Waits)) {
            return Err(Failure::Usage(format!(
                "`--span` selects samples, and there are none: {NO_SAMPLES}; or waits, with `--stacks waits`: {NO_WAITS}"
            )));
        }
        let (target, out) = Target::create(path)?;
        let format = self.format(out, &trace, &selection, stacks);
        let exported = export(&trace, range, &mut selection, stacks, Exporter::new(format));
        let ExportResult { summary, unchecked } = target.keep(exported)?;
        self.report(path, &summary)?;
        if self.folded.is_some()
            && stacks == Some(Stacks::Spans)
            && summary.spans_closed + summary.spans_without_begin == 0
        {
            message::note(&format!("no span has ended among the selected events: {NO_SPANS}"));
        }
        if unchecked > 0 {
            message::note_unchecked(unchecked);
        }
        let outcome = if summary.damage == 0 { Outcome::Success } else { Outcome::Incomplete };
        Ok(outcome.max(report_unfinished(&trace)))
    }

    /// Runs another program, which writes the store.
    fn run_parquet(&self, store: &Path) -> VerbResult {
        if output_file::is_standard(store) {
            return Err(Failure::Usage(
                "a store of Parquet files is a directory: name one, in place of `-`".to_owned(),
            ));
        }
        let trace = open(&self.paths)?;
        let json = self.json.then(|| OsString::from("--json"));
        let paths = self.paths.iter().map(|path| path.clone().into_os_string());
        let before = ["export".into()].into_iter().chain(json).chain(["--".into(), store.as_os_str().to_owned()]);
        let outcome = query::run(&before.chain(paths).collect::<Vec<_>>())?;
        Ok(outcome.max(report_unfinished(&trace)))
    }

    fn format(
        &self,
        out: Box<dyn Write>,
        trace: &Trace,
        selection: &Selection,
        stacks: Option<Stacks>,
    ) -> Box<dyn Format> {
        let metadata = || trace.metadata().map(|(_, metadata)| metadata);
        if self.perfetto.is_some() {
            Box::new(Perfetto::new(out).counters(self.counter.clone()))
        } else if self.chrome.is_some() {
            Box::new(Chrome::new(out).counters(self.counter.clone()))
        } else if self.otlp.is_some() {
            Box::new(Otlp::json_lines(out))
        } else if self.otlp_protobuf.is_some() {
            Box::new(Otlp::protobuf(out))
        } else if let Some(stacks) = stacks {
            let out = if self.flame.is_some() { Box::new(FlameGraph::new(out, stacks)) } else { out };
            match stacks {
                Stacks::Spans => Box::new(FoldedStacks::of_spans(out)),
                Stacks::Calls => Box::new(FoldedStacks::of_call_stacks(out)),
                Stacks::Samples => Box::new(match self.span.clone() {
                    Some(span) => FoldedStacks::of_samples_inside(out, move |name| span.matches_str(name)),
                    None => FoldedStacks::of_samples(out),
                }),
                Stacks::Waits => Box::new(match self.span.clone() {
                    Some(span) => FoldedStacks::of_waits_inside(out, move |name| span.matches_str(name)),
                    None => FoldedStacks::of_waits(out),
                }),
            }
        } else {
            let all = || Csv::<Box<dyn Write>>::fields_of(metadata(), |name| selection.filter.may_accept(name));
            Box::new(Csv::new(out, self.fields.clone().unwrap_or_else(all)).guard_formulas(self.guard_formulas))
        }
    }

    fn report(&self, path: &Path, summary: &Summary) -> Result<(), Failure> {
        let Summary { events, lost_events, losses_of_unknown_size, .. } = summary;
        if self.json {
            let mut object = json!(summary);
            object["output"] = path.to_string_lossy().into();
            output::json(&object)?;
        } else {
            let line = format!("{}: {}{}", path.display(), counted(*events, "event"), spans(summary));
            if output_file::is_standard(path) {
                message::summary(&line);
            } else {
                let mut out = output::styled();
                writeln!(out, "{line}")?;
                out.flush()?;
            }
        }
        message::note_lost(*lost_events, *losses_of_unknown_size > 0);
        if summary.outside > 0 {
            let events = counted(summary.outside, "event");
            message::note(&format!("{events} in no span were left out, because OTLP has them as part of spans"));
        }
        if summary.guessed_parents > 0 {
            let (parents, those) = (counted(summary.guessed_parents, "span"), "no `parent_id`");
            message::note(&format!(
                "{parents} with {those} have a guessed parent, in which they lie on their thread; `span!(parent: …)` names it"
            ));
        }
        if summary.parents_given_up > 0 {
            let spans = counted(summary.parents_given_up, "span");
            message::note(&format!(
                "{spans} are not the guessed parents of what is in them, because that was too much to wait for their ends"
            ));
        }
        if summary.spans_forgotten > 0 {
            let spans = counted(summary.spans_forgotten, "span");
            message::note(&format!(
                "{spans} of those that were open at one time were not waited for, because there were too many"
            ));
        }
        if summary.spans_left_out > 0 {
            let spans = counted(summary.spans_left_out, "span");
            message::note(&format!(
                "{spans} of those that were open at one time are in no stack, because there were too many"
            ));
        }
        if summary.has_further_threads {
            message::note("the states of some threads are not known, because there are too many threads");
        }
        Ok(())
    }
}

fn spans(summary: &Summary) -> String {
    let Summary { spans_closed, spans_open, spans_without_begin, .. } = summary;
    let spans = spans_closed + spans_open + spans_without_begin + summary.spans_forgotten;
    let parts = [(spans_open, "still open at the end"), (spans_without_begin, "without a begin")];
    let parts =
        parts.into_iter().filter(|(count, _)| **count > 0).map(|(count, what)| format!("{count} of them {what}"));
    let all = (spans > 0).then(|| counted(spans, "span")).into_iter().chain(parts);
    all.map(|part| format!(", {part}")).collect::<Vec<_>>().concat()
}

/// A summary of the export, and the number of packets without a checksum.
struct ExportResult {
    summary: Summary,
    unchecked: u64,
}

fn export(
    trace: &Trace,
    range: Option<(i64, i64)>,
    selection: &mut Selection,
    stacks: Option<Stacks>,
    mut exporter: Exporter<Box<dyn Format>>,
) -> io::Result<ExportResult> {
    // Items that are needed although they are not selected.
    let is_needed = |item: &Item| stacks == Some(Stacks::Samples) && maps_code(item);
    if let Some(since) = selection.times.since.filter(|_| stacks == Some(Stacks::Samples)) {
        exporter.code_before(trace, since)?;
    }
    let mut line = LiveLine::new();
    let (begin, end) = range.unwrap_or_default();
    let (begin, end) = (selection.times.since.unwrap_or(begin), selection.times.until.unwrap_or(end));
    let mut items = trace.items_since(selection.times.since.unwrap_or(i64::MIN));
    for item in items.by_ref() {
        if !(selection.includes(&item) || is_needed(&item)) {
            match selection.wanted_after(&item) {
                ControlFlow::Break(()) => break,
                ControlFlow::Continue(()) => {
                    // The states of threads are those of all events in the selected times.
                    if matches!(&item, Item::Event(event) if selection.times.includes(event.time_ns, event.time_ns)) {
                        exporter.unselected(&item)?;
                    }
                    continue;
                }
            }
        }
        exporter.item(&item)?;
        match &item {
            Item::Event(event) if line.is_shown() => {
                let share = |time: i64| i128::from(time) - i128::from(begin);
                let percent = share(event.time_ns).max(0) * 100 / share(end).max(1);
                line.show("events", exporter.summary().events, || format!("{} % of the time", percent.min(100)));
            }
            Item::Damage(damage) => message::error(&format!("{damage}; not exported")),
            _ => {}
        }
    }
    let unchecked = items.unchecked();
    let (_, summary) = exporter.finish()?;
    if summary.outside > 0 && summary.outside == summary.events {
        let events = counted(summary.outside, "event");
        let reason = format!(
            "no span is selected, and OTLP has events as part of spans only ({events} in none); record spans \
             (docs/spans.md), or export the events with `--perfetto` or `--csv`"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    Ok(ExportResult { summary, unchecked })
}
