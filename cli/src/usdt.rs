//! `tracectl usdt`: the events of programs as seen by bpftrace, perf, gdb and SystemTap.

mod list;
mod notes;
mod script;

use crate::failure::VerbResult;
use crate::verbs::verbs;
use clap::Args;

/// Shows events as bpftrace, perf and gdb see them
///
/// Also writes scripts for these tools and SystemTap. A program has notes for other tools if it is built with the feature `usdt` of `tracepoint`.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  tracectl usdt list ./server
  tracectl usdt list -p 4242
  tracectl usdt script -p 4242 -e net:received"
)]
pub(crate) struct Usdt {
    #[command(subcommand)]
    verb: Verb,
}

verbs! {
    List(list::List),
    Script(script::Script),
}

impl Usdt {
    pub(crate) fn run(&self) -> VerbResult {
        self.verb.run()
    }
}
