//! Traces left incomplete by a killed process: unwritten events are still in its rings.

use crate::failure::Outcome;
use crate::message;
use crate::run_directory::rings_behind;
use tracepoint_reader::Trace;
use tracepoint_reader::account::ACCOUNT_PATH;

/// Names each incomplete trace, and the command that completes it.
pub(crate) fn report(trace: &Trace) -> Outcome {
    let mut outcome = Outcome::Success;
    for (path, _) in trace.metadata() {
        if path.join(ACCOUNT_PATH).exists() {
            continue;
        }
        if let Some(rings) = rings_behind(path) {
            let (path, rings) = (path.display(), rings.display());
            message::error(&format!(
                "{path}: this trace is incomplete, because its process or its recorder was killed; further events are in the rings; \
                 `tracectl recover {rings} -o OUT` makes the complete trace"
            ));
            outcome = Outcome::Incomplete;
        }
    }
    outcome
}
