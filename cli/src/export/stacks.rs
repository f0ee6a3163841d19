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
    Waits,
}

/// The context with the call stack of an event.
const CALL_STACK: &str = "callstack";

pub(super) const NO_SPANS: &str =
    "put what takes time into spans (`span!` or `#[traced]`, docs/spans.md), and record both of their events";

pub(super) const NO_CALLS: &str = "record the call stacks of a program that is built with `-C force-frame-pointers=yes`: \
                                   `tracectl record --context call_stack`";

pub(super) const NO_SAMPLES: &str =
    "record samples of the processor: `tracectl record --samples 99/s` (docs/samples.md)";

pub(super) const NO_WAITS: &str = "`tracectl record --waits` records when threads run (docs/waits.md)";

/// The event of a sample of the processor.
const SAMPLE: &str = "perf:sample";
/// The event of a switch of threads.
const SWITCH: &str = "perf:switch";

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
        let has = |name: &str| streams().flat_map(|stream| stream.events.values()).any(|event| event.name == name);
        let has_samples = || has(SAMPLE);
        match asked {
            Some(Self::Samples) if !has_samples() => message::note(&format!("the trace has no samples: {NO_SAMPLES}")),
            Some(Self::Waits) if !has(SWITCH) => {
                message::note(&format!("the trace does not say when threads ran: {NO_WAITS}"));
            }
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

    /// Describes a picture without any stack, and the advice for it.
    pub(super) fn nothing(self) -> (&'static str, &'static str) {
        match self {
            Self::Spans => ("no span or call stack to draw", NO_SPANS),
            Self::Calls => ("no call stack to draw", NO_CALLS),
            Self::Samples => ("no sample to draw", NO_SAMPLES),
            Self::Waits => ("no wait of a thread to draw", NO_WAITS),
        }
    }

    pub(super) fn unit(self) -> &'static str {
        match self {
            Self::Spans | Self::Waits => "ns",
            Self::Calls => "events",
            Self::Samples => "samples",
        }
    }
}
