//! The operands of `tracectl hist`: a statistic and traces. The statistic is optional before a trace, and may also follow it.

use super::pass::Input;
use super::summary::statistic;
use crate::argument_error::ArgumentError;
use crate::failure::Failure;
use std::path::{Path, PathBuf};
use tracepoint_probes::{Measure, StatisticError, StatisticSpec};
use tracepoint_reader::Trace;
use tracepoint_reader::metadata::types::Type;
use tracepoint_session_spec::TraceStatistic;

/// Fields whose distribution is meaningless.
pub(crate) const IDS: [&str; 2] = ["span_id", "parent_id"];
/// Maximum number of distributions if no field is named.
const MAX_FIELDS: usize = 12;

/// The first operand: a statistic or a trace.
#[derive(Clone, Debug)]
pub(super) struct First {
    text: String,
    /// The statistic if it is not a trace, or the reason why the text is not one.
    measured: Result<StatisticSpec, ArgumentError>,
}

impl First {
    /// Parses the operand; fails if it is neither a field, a latency nor a path.
    pub(super) fn parse(text: &str) -> Result<Self, ArgumentError> {
        let measured = measured(text);
        match &measured {
            Err(reason) if !is_path(text) => Err(reason.clone()),
            _ => Ok(Self { text: text.to_owned(), measured }),
        }
    }
}

/// True for a path: the file exists, or the text has the form of a path.
fn is_path(text: &str) -> bool {
    Path::new(text).exists() || text.contains('/')
}

fn measured(text: &str) -> Result<StatisticSpec, ArgumentError> {
    if !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return Ok(StatisticSpec::new(Measure::Histogram { field: text.to_owned() }));
    }
    let spec: StatisticSpec = text.parse().map_err(|error: StatisticError| error.to_string())?;
    match spec.measure() {
        Measure::Histogram { .. } | Measure::Latency { .. } => Ok(spec),
        _ => Err("expected a field or a latency; `tracectl stat` counts".into()),
    }
}

/// The statistic if one is given, and the remaining operands. Unless running programs are asked for, the name of an existing path is not a field if
/// nothing follows it, or if it is not a valid field name.
///
/// # Errors
///
/// If there is nothing to measure.
pub(super) fn resolve(
    first: Option<&First>,
    others: &[PathBuf],
    is_live: bool,
) -> Result<(Option<StatisticSpec>, Vec<PathBuf>), Failure> {
    let Some(First { text, measured }) = first else { return Ok((None, others.to_vec())) };
    let is_trace = !is_live && is_path(text) && (others.is_empty() || measured.is_err());
    if !is_trace {
        let spec = measured.clone()?;
        return Ok((Some(spec), others.to_vec()));
    }
    let mut paths: Vec<_> = [PathBuf::from(text)].into_iter().chain(others.iter().cloned()).collect();
    // A field that follows the trace.
    let is_field = |path: &PathBuf| !path.exists() && path.to_str().is_some_and(|text| self::measured(text).is_ok());
    let spec = paths.iter().position(is_field).and_then(|at| self::measured(paths.remove(at).to_str()?).ok());
    Ok((spec, paths))
}

/// The statistics over the selected events of a trace: the requested one, or the distribution of each numeric field.
///
/// # Errors
///
/// If there is none, or too many.
pub(super) fn statistics(
    input: Input<'_>,
    trace: &Trace,
    spec: Option<StatisticSpec>,
    of_field: impl Fn(&str) -> StatisticSpec,
) -> Result<Vec<TraceStatistic>, Failure> {
    if let Some(spec) = spec {
        return Ok(vec![statistic(input, trace, spec)?]);
    }
    let filter = input.filter()?;
    let mut names: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for stream in trace.metadata().flat_map(|(_, metadata)| metadata.streams()) {
        for class in stream.events.values().filter(|class| filter.may_accept(&class.name)) {
            for field in class.fields.iter().flat_map(|fields| &fields.fields) {
                let name = field.name();
                if names.contains(&name) || IDS.contains(&name) || matches!(field.ty, Type::Enum(..)) {
                    continue;
                }
                // Non-numeric fields are refused.
                if let Ok(statistic) = statistic(input, trace, of_field(name)) {
                    names.push(name);
                    found.push(statistic);
                }
            }
        }
    }
    match found.len() {
        0 => Err(Failure::Refused(
            "the selected events have no field that is a number; `tracectl stat` counts them".to_owned(),
        )),
        1..=MAX_FIELDS => Ok(found),
        _ => Err(Failure::Usage(format!(
            "the selected events have {} fields that are numbers: name one of them, {}, or select events by `-e`",
            names.len(),
            names.join(", ")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_may_be_left_out_or_follow() -> Result<(), Box<dyn std::error::Error>> {
        let place = tempfile::tempdir()?;
        let trace = place.path().to_str().ok_or("a path")?;
        let other = place.path().join("other");
        std::fs::create_dir(&other)?;
        let size = || measured("size").ok();
        for (operands, spec, paths) in [
            (&["size"][..], size(), &[][..]),
            (&["size", trace], size(), &[trace]),
            (&[trace], None, &[trace]),
            (&[trace, "size"], size(), &[trace]),
            (&["/no/such/trace", "size"], size(), &["/no/such/trace"]),
            (&[trace, other.to_str().ok_or("a path")?], None, &[trace, other.to_str().ok_or("a path")?]),
            (&["latency(a:b, a:c)", trace], measured("latency(a:b, a:c)").ok(), &[trace]),
            (&["size", "shop:*"], size(), &["shop:*"]),
        ] {
            let first = First::parse(operands[0])?;
            let others: Vec<_> = operands[1..].iter().map(PathBuf::from).collect();
            let (found, rest) = resolve(Some(&first), &others, false).map_err(|error| error.to_string())?;
            assert_eq!((found, rest), (spec, paths.iter().map(PathBuf::from).collect()), "{operands:?}");
        }
        for wrong in ["top(size)", "shop:paid", ""] {
            assert!(First::parse(wrong).is_err(), "{wrong}");
        }
        Ok(())
    }
}
