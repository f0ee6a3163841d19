//! The command line of tracepoint: looks at what was recorded, and checks that the books balance.
//!
//! Each verb has its file. A verb writes data to the standard output and returns how it ended; what there is to say about it
//! goes to the standard error.

#![forbid(unsafe_code)]

mod convert;
mod dt;
mod failure;
mod output;
mod progress;
mod recover;
mod verify;
mod view;

use clap::{Parser, Subcommand};
use failure::{Failure, Outcome};
use std::process::ExitCode;

/// Looks at what tracepoint recorded, and checks that the books balance.
#[derive(Debug, Parser)]
#[command(
    name = "tracectl",
    version,
    after_help = failure::EXIT_CODES,
    subcommand_required = true,
    arg_required_else_help = true
)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    View(view::View),
    Verify(verify::Verify),
    Recover(recover::Recover),
    Convert(convert::Convert),
    Dt(dt::Dt),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().verb {
        Verb::View(view) => view.run(),
        Verb::Verify(verify) => verify.run(),
        Verb::Recover(recover) => recover.run(),
        Verb::Convert(convert) => convert.run(),
        Verb::Dt(dt) => dt.run(),
    };
    failure::exit_code(outcome)
}

/// How every verb ends.
type Ended = Result<Outcome, Failure>;
