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
            eprintln!("treehash: {}", with_causes(&error));
            ExitCode::FAILURE
        }
    }
}

/// The error and its causes. Most errors already contain the text of their cause, which is not repeated.
fn with_causes(error: &anyhow::Error) -> String {
    error
        .chain()
        .skip(1)
        .map(ToString::to_string)
        .fold(error.to_string(), |text, cause| if text.contains(&cause) { text } else { format!("{text}: {cause}") })
}
