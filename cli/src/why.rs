//! `tracectl why`: why spans took long.

mod text;

use crate::failure::{Failure, VerbResult};
use crate::message;
use crate::output;
use crate::selection::{EventSelection, TimeSelection, glob};
use crate::statistics::Input;
use crate::units;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;
use tracepoint_export::{Exporter, Reasons, Span, Why};
use tracepoint_reader::{SpanPart, Value};
use tracepoint_session_spec::TraceFilter;
use tracepoint_session_spec::filter::Expression;
use tracepoint_session_spec::glob::Glob;

/// Shows why spans took long
///
/// Lists the spans that took longest, and how the time of each divides: running, ready and without a processor, or waiting for a lock, a disk, a
/// network, a time, a page or another thread; in which system call, who ended the wait, and what that thread did meanwhile; and the child spans
/// and events inside. `tracectl record --waits` records what this needs; with `--samples 99/s`, also the functions that ran. docs/waits.md describes
/// the causes, and what is unknown.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl why /tmp/trace
  tracectl why --span 'shop:request' --slower-than 50ms /tmp/trace
  tracectl why --id 4711 /tmp/trace
  tracectl why --span 'shop:request' --filter 'path == \"/cart*\"' -n 1 /tmp/trace
  tracectl why --span 'shop:request' --by path /tmp/trace
  tracectl why --json /tmp/trace | jq '.spans[0].division'")]
pub(crate) struct WhyArguments {
    /// A directory with a CTF trace, or with several below it; or a dt file. Several paths are merged
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Only spans with this `provider:name`, with `*`, `?` and `[a-z]`
    #[arg(long, help_heading = "Spans", value_name = "NAME", value_parser = glob)]
    span: Option<Glob>,
    /// Only spans that took longer
    #[arg(long, help_heading = "Spans", value_name = "TIME", value_parser = units::duration)]
    slower_than: Option<Duration>,
    /// Only spans with this `span_id`, or with this value of the field `id`
    #[arg(long, help_heading = "Spans", value_name = "N")]
    id: Option<u64>,
    /// Only spans whose begin event fulfils a condition, for example `path == "*.rs"` (docs/filters.md)
    #[arg(long, help_heading = "Spans", value_name = "EXPR", allow_hyphen_values = true)]
    filter: Option<Expression>,
    /// Number of spans to show, the slowest ones first
    #[arg(short = 'n', long, help_heading = "Spans", value_name = "N", default_value_t = 5)]
    count: usize,
    #[command(flatten)]
    times: TimeSelection,
    /// Also sum all selected spans by the value of this field of their begin or end
    #[arg(long, help_heading = "Form of the output", value_name = "FIELD")]
    by: Option<String>,
    /// Write one JSON object: `selected`, `spans`, `groups`; times are in nanoseconds
    #[arg(long, help_heading = "Form of the output")]
    json: bool,
}

impl WhyArguments {
    pub(crate) fn run(&self) -> VerbResult {
        let all = EventSelection::default();
        let input = Input { paths: &self.paths, selection: &all, times: self.times };
        let trace = input.open()?;
        let mut spans =
            trace.metadata().flat_map(|(_, metadata)| metadata.streams()).flat_map(|class| class.events.values());
        let is_selected = |(name, part): (&str, SpanPart)| {
            part == SpanPart::Begin && self.span.as_ref().is_none_or(|glob| glob.matches_str(name))
        };
        if !spans.any(|class| class.span().is_some_and(is_selected)) {
            let text = "the trace has no such span; `tracectl stat` shows its events, and docs/spans.md how a program declares spans";
            return Err(Failure::Refused(text.to_owned()));
        }
        drop(spans);
        let mut condition = self.condition()?;
        let select =
            |span: &Span<'_>| self.selects(span) && condition.as_mut().is_none_or(|filter| fulfils(filter, span));
        let mut exporter = Exporter::new(Why::new(select, self.count, self.by.clone()));
        let since = input.time_range(&trace)?.since;
        since.map_or(Ok(()), |since| exporter.code_before(&trace, since))?;
        let mut result = Ok(());
        let seen = input.in_order(&trace, |item| {
            if result.is_ok() {
                result = exporter.item(item);
            }
        })?;
        result?;
        let (why, _) = exporter.finish()?;
        let reasons = why.into_reasons();
        if self.json {
            output::json(&json!(reasons))?;
        } else {
            text::write(&reasons, self.by.as_deref())?;
        }
        report_missing(&reasons);
        Ok(seen.report())
    }

    fn condition(&self) -> Result<Option<TraceFilter>, Failure> {
        let all = TraceFilter::new(&[])?;
        Ok(self.filter.clone().map(|condition| all.condition(condition)))
    }

    fn selects(&self, span: &Span<'_>) -> bool {
        let end = span.end_ns.unwrap_or(span.last_ns);
        let duration = Duration::from_nanos(end.abs_diff(span.begin_ns));
        let id = || span.begin?.fields.as_ref()?.get("id").and_then(Value::as_u64);
        self.span.as_ref().is_none_or(|glob| glob.matches_str(span.name))
            && self.slower_than.is_none_or(|most| duration > most)
            && self.id.is_none_or(|wanted| span.id == wanted || id() == Some(wanted))
    }
}

fn fulfils(filter: &mut TraceFilter, span: &Span<'_>) -> bool {
    span.begin.is_some_and(|begin| filter.accepts(begin))
}

/// Says what the trace does not have, and how to record it.
fn report_missing(reasons: &Reasons) {
    if !reasons.has_switches {
        message::note("the trace does not say when threads ran: record it with `tracectl record --waits`");
    } else if !reasons.has_reasons {
        message::note(
            "the trace says when threads ran, not what they waited for: `tracectl record --waits` records that as root, or with the rights in docs/waits.md",
        );
    }
}
