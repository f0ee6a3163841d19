//! The program `tracectl`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    tracectl::main()
}
