//! Hashes every regular file of a directory tree and records itself doing it. See `--help`.

#![forbid(unsafe_code)]

use clap::Parser;
use std::io;
use std::process::ExitCode;
use treehash::options::Options;

fn main() -> ExitCode {
    match treehash::run::run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the report has closed the pipe, as `head` does.
        Err(error) if error.downcast_ref().is_some_and(|e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe) => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("treehash: {}", told(&error));
            ExitCode::FAILURE
        }
    }
}

/// The error and what caused it. Most errors tell their cause themselves: it is not told again.
fn told(error: &anyhow::Error) -> String {
    error
        .chain()
        .skip(1)
        .map(ToString::to_string)
        .fold(error.to_string(), |told, cause| if told.contains(&cause) { told } else { format!("{told}: {cause}") })
}
