//! The command line of tracepoint: records running processes, looks at what was recorded, and checks that the books balance.
//!
//! Each verb has its file. A verb writes data to the standard output and returns how it ended; what there is to say about it
//! goes to the standard error.

#![forbid(unsafe_code)]

mod completions;
mod convert;
mod dt;
mod failure;
mod interrupt;
mod list;
mod man;
mod output;
mod progress;
mod read;
mod record;
mod recover;
mod serve;
mod session;
mod units;
mod user;
mod verify;
mod view;

use clap::{Parser, Subcommand};
use failure::{Failure, Outcome};
use std::process::ExitCode;
use tracepoint_control::Rights;

/// Records running processes, looks at what was recorded, and checks that the books balance.
#[derive(Debug, Parser)]
#[command(
    name = "tracectl",
    version,
    after_help = failure::EXIT_CODES,
    subcommand_required = true,
    arg_required_else_help = true
)]
struct Arguments {
    /// Root only: be this user, by name or number, whose processes these are. What `record` writes, without a command to start, is written by
    /// root, where root says; nothing else is done as root
    #[arg(long, global = true, value_name = "USER")]
    user: Option<String>,
    /// What `--user` becomes for a command that writes as root
    #[arg(long = user::BESIDE, hide = true, value_name = "USER:GROUP", value_parser = user::beside)]
    beside_root: Option<(u32, u32)>,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    List(list::List),
    Record(record::Record),
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
    View(view::View),
    Verify(verify::Verify),
    Recover(recover::Recover),
    Convert(convert::Convert),
    Dt(dt::Dt),
    Completions(completions::Completions),
    Man(man::Man),
    Serve(serve::Serve),
    Read(read::Read),
}

fn main() -> ExitCode {
    let Arguments { user, beside_root, verb } = Arguments::parse();
    let stays_root = matches!(&verb, Verb::Record(record) if !record.starts_a_command());
    if let Some(Err(failure)) = user.as_deref().map(|user| user::become_user(user, stays_root)) {
        return failure::exit_code(Err(failure));
    }
    let rights = match beside_root.map(|(user, group)| Rights::beside_root(user, group)).transpose() {
        Ok(rights) => rights.unwrap_or_default(),
        Err(error) => return failure::exit_code(Err(error.into())),
    };
    let outcome = match verb {
        Verb::List(list) => list.run(),
        Verb::Record(record) => record.run(&rights),
        Verb::Create(create) => create.run(),
        Verb::Enable(enable) => enable.run(),
        Verb::Disable(disable) => disable.run(),
        Verb::Start(start) => start.run(),
        Verb::Stop(stop) => stop.run(),
        Verb::Snapshot(snapshot) => snapshot.run(),
        Verb::Rotate(rotate) => rotate.run(),
        Verb::Status(status) => status.run(),
        Verb::Save(save) => save.run(),
        Verb::Load(load) => load.run(),
        Verb::Destroy(destroy) => destroy.run(),
        Verb::View(view) => view.run(),
        Verb::Verify(verify) => verify.run(),
        Verb::Recover(recover) => recover.run(),
        Verb::Convert(convert) => convert.run(),
        Verb::Dt(dt) => dt.run(),
        Verb::Completions(completions) => completions.run(),
        Verb::Man(man) => man.run(),
        Verb::Serve(serve) => serve.run(),
        Verb::Read(read) => read.run(),
    };
    failure::exit_code(outcome)
}

/// How every verb ends.
type Ended = Result<Outcome, Failure>;
