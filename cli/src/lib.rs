//! The command line of tracepoint: controls and records running processes, and reads, verifies and converts traces.
//!
//! Each verb has a file. A verb writes its data to the standard output and its messages to the standard error, and returns its outcome.
//!
//! Run the program `tracectl`. This library exists for its tests and for fuzzing, and has no stable API; programs use `tracepoint` instead.

#![forbid(unsafe_code)]
// Code that only the verbs of Linux use.
#![cfg_attr(not(target_os = "linux"), allow(dead_code, unused_imports))]

mod argument_error;
#[cfg(target_os = "linux")]
mod bandwidth;
#[cfg_attr(not(target_os = "linux"), path = "candidates/elsewhere.rs")]
mod candidates;
#[cfg(target_os = "linux")]
mod clean;
#[cfg(target_os = "linux")]
mod collect;
mod completions;
mod convert;
#[cfg(target_os = "linux")]
mod core_dump;
mod counts;
mod dt;
mod export;
mod failure;
mod help;
#[cfg_attr(not(target_os = "linux"), path = "interrupt/elsewhere.rs")]
mod interrupt;
#[cfg(target_os = "linux")]
mod list;
mod man;
mod message;
#[cfg(not(target_os = "linux"))]
mod not_here;
mod open;
mod output;
mod output_file;
mod progress;
mod query;
#[cfg(target_os = "linux")]
mod read;
#[cfg(target_os = "linux")]
mod record;
mod recover;
mod report;
#[cfg_attr(not(target_os = "linux"), path = "run_directory/elsewhere.rs")]
mod run_directory;
mod selection;
#[cfg(target_os = "linux")]
mod serve;
#[cfg(target_os = "linux")]
mod session;
#[cfg(target_os = "linux")]
mod shared_key;
mod slices;
#[cfg(target_os = "linux")]
mod state_dir;
mod statistics;
mod table;
mod time_point;
#[cfg(target_os = "linux")]
mod top;
#[cfg(target_os = "linux")]
mod trigger;
mod units;
#[cfg(target_os = "linux")]
mod usdt;
#[cfg(target_os = "linux")]
mod user;
mod verb_groups;
mod verbs;
mod verify;
mod view;
mod why;

use clap::{FromArgMatches, Parser};
use failure::VerbResult;
use std::ffi::OsString;
use std::process::ExitCode;
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
    #[cfg(target_os = "linux")]
    /// Control the processes of USER, a name or number (root only); output of `record` stays owned by root
    #[arg(long, global = true, value_name = "USER", help_heading = GLOBAL)]
    user: Option<String>,
    #[cfg(target_os = "linux")]
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
    "linux" List(list::List),
    "linux" Record(record::Record),
    "linux" Remote(record::remote::Remote),
    "linux" Create(session::create::Create),
    "linux" Enable(session::enable::Enable),
    "linux" Disable(session::disable::Disable),
    "linux" Start(session::state::Start),
    "linux" Stop(session::state::Stop),
    "linux" Snapshot(session::snapshot::Snapshot),
    "linux" Rotate(session::rotate::Rotate),
    "linux" Status(session::status::Status),
    "linux" Save(session::save::Save),
    "linux" Load(session::load::Load),
    "linux" Destroy(session::destroy::Destroy),
    "linux" Trigger(trigger::set::Trigger),
    "linux" Triggers(trigger::triggers::Triggers),
    "linux" Untrigger(trigger::untrigger::Untrigger),
    "linux" Listen(trigger::listen::Listen),
    "linux" Notifications(trigger::notifications::Notifications),
    "linux" Notify(core_dump::notify::Notify),
    "linux" InstallCoreHandler(core_dump::install::InstallCoreHandler),
    "linux" Bandwidth(bandwidth::Bandwidth),
    "linux" Clean(clean::Clean),
    View(view::View),
    Verify(verify::Verify),
    Stat(statistics::stat::Stat),
    Hist(statistics::hist::Hist),
    "linux" Top(top::Top),
    Report(report::Report),
    Why(why::WhyArguments),
    Recover(recover::Recover),
    Convert(convert::Convert),
    Export(export::Export),
    Query(query::Query),
    Dt(dt::Dt),
    "linux" Usdt(usdt::Usdt),
    Completions(completions::Completions),
    Man(man::Man),
    "linux" Serve(serve::Serve),
    "linux" Read(read::Read),
    "linux" Collect(collect::Collect),
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
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => return help::show(&error),
    };
    arguments.color.apply();
    #[cfg(target_os = "linux")]
    let arguments = user::changed(arguments)?;
    arguments.verb.run()
}
