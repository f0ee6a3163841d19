//! Shell-completion candidates for arguments that name running processes or sessions. They are looked up while a command line is typed; nothing is
//! changed.

use crate::output::in_line;
use clap::Arg;
use clap_complete::{ArgValueCandidates, CompletionCandidate};
use tracepoint_controller::RunDirListing;
use tracepoint_run_dir::ApplicationInfo;

/// Makes `arg` complete to the names of running processes or existing sessions.
pub(crate) fn with_candidates(arg: Arg, verb: &str) -> Arg {
    match arg.get_id().as_str() {
        "pid" => arg.add(ArgValueCandidates::new(processes)),
        "session" => arg.add(ArgValueCandidates::new(sessions)),
        "name" if verb != "create" => arg.add(ArgValueCandidates::new(sessions)),
        _ => arg,
    }
}

fn processes() -> Vec<CompletionCandidate> {
    let candidate =
        |info: &ApplicationInfo| CompletionCandidate::new(info.pid.to_string()).help(Some(in_line(&info.name).into()));
    RunDirListing::look().processes.iter().map(candidate).collect()
}

fn sessions() -> Vec<CompletionCandidate> {
    RunDirListing::look().sessions.into_iter().map(CompletionCandidate::new).collect()
}
