//! Hashes every regular file of a directory tree and records itself doing it. See `--help`.

#![forbid(unsafe_code)]

use clap::Parser;
use std::io;
use std::process::ExitCode;
use treehash::options::Options;

fn main() -> ExitCode {
    match treehash::run::run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the report has seen enough, as `head` does.
        Err(error) if error.downcast_ref().is_some_and(|e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe) => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("treehash: {error:#}");
            ExitCode::FAILURE
        }
    }
}
