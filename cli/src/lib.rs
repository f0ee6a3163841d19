//! The command line of tracepoint: controls and records running processes, and reads, verifies and converts traces.
//!
//! Each verb has a file. A verb writes its data to the standard output and its messages to the standard error, and returns its outcome.
//!
//! Run the program `tracectl`. This library exists for its tests and for fuzzing, and has no stable API; programs use `tracepoint` instead.

#![forbid(unsafe_code)]

mod argument_error;
mod bandwidth;
mod candidates;
mod clean;
mod collect;
mod completions;
mod convert;
mod core_dump;
mod counts;
mod dt;
mod export;
mod failure;
mod help;
mod interrupt;
mod list;
mod man;
mod message;
mod open;
mod output;
mod output_file;
mod progress;
mod query;
mod read;
mod record;
mod recover;
mod report;
mod selection;
mod serve;
mod session;
mod shared_key;
mod slices;
mod state_dir;
mod statistics;
mod table;
mod time_point;
mod top;
mod trigger;
mod units;
mod usdt;
mod user;
mod verb_groups;
mod verbs;
mod verify;
mod view;

use clap::{FromArgMatches, Parser};
use failure::{Failure, VerbResult};
use std::ffi::OsString;
use std::process::ExitCode;
use tracepoint_run_dir::Rights;
use verbs::verbs;

/// The heading of options that all verbs share.
const GLOBAL: &str = "Global options";

/// Records running processes, and reads, verifies and converts their traces
#[derive(Debug, Parser)]
#[command(
    name = "tracectl",
    version,
    after_help = "\
Examples:
  tracectl list                                                     list processes
  tracectl record -e 'net:*' -p 4242 --duration 10s -o /tmp/trace   record a running process
  tracectl view /tmp/trace                                          read the trace
  tracectl verify /tmp/trace                                        check that no event is missing
  tracectl stat /tmp/trace                                          count its events; `hist` shows how long, how large",
    subcommand_required = true,
    arg_required_else_help = true
)]
struct Arguments {
    /// Control the processes of USER, a name or number (root only); output of `record` stays owned by root
    #[arg(long, global = true, value_name = "USER", help_heading = GLOBAL)]
    user: Option<String>,
    /// The form of `--user` for `record`, which writes as root
    #[arg(long = user::BESIDE, hide = true, value_name = "USER:GROUP", value_parser = user::beside)]
    beside_root: Option<(u32, u32)>,
    /// When to colour the output: `auto` is on a terminal, unless `NO_COLOR` is set
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t, help_heading = GLOBAL)]
    color: output::Color,
    #[command(subcommand)]
    verb: Verb,
}

verbs! {
    List(list::List),
    Record(record::Record),
    Remote(record::remote::Remote),
    Create(session::create::Create),
    Enable(session::enable::Enable),
    Disable(session::disable::Disable),
    Start(session::state::Start),
    Stop(session::state::Stop),
    Snapshot(session::snapshot::Snapshot),
    Rotate(session::rotate::Rotate),
    Status(session::status::Status),
    Save(session::save::Save),
    Load(session::load::Load),
    Destroy(session::destroy::Destroy),
    Trigger(trigger::set::Trigger),
    Triggers(trigger::triggers::Triggers),
    Untrigger(trigger::untrigger::Untrigger),
    Listen(trigger::listen::Listen),
    Notifications(trigger::notifications::Notifications),
    Notify(core_dump::notify::Notify),
    InstallCoreHandler(core_dump::install::InstallCoreHandler),
    Bandwidth(bandwidth::Bandwidth),
    Clean(clean::Clean),
    View(view::View),
    Verify(verify::Verify),
    Stat(statistics::stat::Stat),
    Hist(statistics::hist::Hist),
    Top(top::Top),
    Report(report::Report),
    Recover(recover::Recover),
    Convert(convert::Convert),
    Export(export::Export),
    Query(query::Query),
    Dt(dt::Dt),
    Usdt(usdt::Usdt),
    Completions(completions::Completions),
    Man(man::Man),
    Serve(serve::Serve),
    Read(read::Read),
    Collect(collect::Collect),
}

/// The program `tracectl`.
pub fn main() -> ExitCode {
    // This program may change the scheduling of its own threads.
    tracepoint_sinks::own_thread::inherit_scheduling();
    completions::answer();
    failure::exit_code(run(std::env::args_os()))
}

/// Executes a command line and returns its exit code; for programs that try many of them.
#[doc(hidden)]
pub fn exit_code_of(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    failure::outcome(run(arguments)).code()
}

fn run(arguments: impl IntoIterator<Item = OsString>) -> VerbResult {
    let parsed = help::command().try_get_matches_from(arguments);
    let parsed = parsed.and_then(|matches| Arguments::from_arg_matches(&matches));
    let Arguments { user, beside_root, color, mut verb } = match parsed {
        Ok(arguments) => arguments,
        Err(error) => return help::show(&error),
    };
    color.apply();
    if let Verb::Record(record) = &verb
        && user.is_some()
        && record.is_on_hosts()
    {
        let text = "`--user` does not apply to hosts of `--on`; name the user there: `--on USER@HOST`";
        return Err(Failure::Usage(text.to_owned()));
    }
    let stays_root = matches!(&verb, Verb::Record(record) if !record.starts_a_command());
    if let Some(user) = &user {
        match user::become_user(user, stays_root)? {}
    }
    if let (Verb::Record(record), Some((user, group))) = (&mut verb, beside_root) {
        record.rights = Rights::beside_root(user, group)?;
    }
    verb.run()
}
