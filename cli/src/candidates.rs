//! What shells offer for arguments that name something that runs: looked up while a command line is typed.

use crate::output::in_line;
use crate::session::controller;
use clap::Arg;
use clap_complete::{ArgValueCandidates, CompletionCandidate};
use tracepoint_control::ApplicationInfo;

/// Has an argument that names something running complete to what there is.
pub(crate) fn with_candidates(arg: Arg, verb: &str) -> Arg {
    match arg.get_id().as_str() {
        "pid" => arg.add(ArgValueCandidates::new(processes)),
        "session" => arg.add(ArgValueCandidates::new(sessions)),
        "name" if verb != "create" => arg.add(ArgValueCandidates::new(sessions)),
        _ => arg,
    }
}

fn processes() -> Vec<CompletionCandidate> {
    let processes = controller(None).and_then(|controller| controller.processes()).unwrap_or_default();
    let candidate =
        |info: &ApplicationInfo| CompletionCandidate::new(info.pid.to_string()).help(Some(in_line(&info.name).into()));
    processes.iter().map(|process| candidate(process.info())).collect()
}

fn sessions() -> Vec<CompletionCandidate> {
    let sessions = controller(None).and_then(|controller| controller.sessions()).unwrap_or_default();
    sessions.into_iter().map(CompletionCandidate::new).collect()
}
