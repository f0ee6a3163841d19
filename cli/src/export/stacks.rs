//! The kind of stacks that `--folded` and `--flame` write, and advice if a trace has neither kind.

use crate::failure::Failure;
use crate::message;
use clap::ValueEnum;
use tracepoint_reader::metadata::StreamClass;
use tracepoint_reader::{Metadata, Trace};

/// The source of stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Stacks {
    Spans,
    Calls,
    Samples,
}

/// The context with the call stack of an event.
const CALL_STACK: &str = "callstack";

pub(super) const NO_SPANS: &str =
    "put what takes time into spans (`span!` or `#[traced]`, docs/spans.md), and record both of their events";

pub(super) const NO_CALLS: &str = "record the call stacks of a program that is built with `-C force-frame-pointers=yes`: \
                                   `tracectl record --context call_stack`";

pub(super) const NO_SAMPLES: &str =
    "record samples of the processor: `tracectl record --samples 99/s` (docs/samples.md)";

/// The event of a sample of the processor.
const SAMPLE: &str = "perf:sample";

fn has_call_stacks(stream: &StreamClass) -> bool {
    let contexts = stream.events.values().map(|event| &event.context).chain([&stream.event_context]);
    contexts.flatten().any(|context| context.fields.iter().any(|field| field.name() == CALL_STACK))
}

impl Stacks {
    /// The requested kind; by default samples, if the trace has any, or else spans.
    ///
    /// # Errors
    /// If the trace has no kind; the message says what to record.
    pub(super) fn choose(asked: Option<Self>, trace: &Trace) -> Result<Self, Failure> {
        let streams = || trace.metadata().flat_map(|(_, metadata): (_, &Metadata)| metadata.streams());
        let has_spans = || streams().flat_map(|stream| stream.events.values()).any(|event| event.span().is_some());
        let has_calls = || streams().any(|stream| has_call_stacks(stream));
        let has_samples = || streams().flat_map(|stream| stream.events.values()).any(|event| event.name == SAMPLE);
        match asked {
            Some(Self::Samples) if !has_samples() => message::note(&format!("the trace has no samples: {NO_SAMPLES}")),
            None if has_samples() => return Ok(Self::Samples),
            Some(Self::Calls) if !has_calls() => message::note(&format!("no event has a call stack: {NO_CALLS}")),
            None if has_spans() => return Ok(Self::Spans),
            None if !has_calls() => {
                let missing =
                    format!("there is no span or call stack to draw: {NO_SPANS}; or {NO_CALLS}; or {NO_SAMPLES}");
                return Err(Failure::Refused(missing));
            }
            _ => {}
        }
        Ok(asked.unwrap_or(Self::Calls))
    }

    pub(super) fn unit(self) -> &'static str {
        match self {
            Self::Spans => "ns",
            Self::Calls => "events",
            Self::Samples => "samples",
        }
    }
}
