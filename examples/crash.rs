//! A program that crashes, for the book's page on production: a snapshot contains the newest events before the crash.
//!
//! `cargo run --example crash [segfault|abort|kill|exit]`: transfers money for two seconds, until account 13 is reached; the program then ends in the
//! given way, by default with a segmentation fault. Prepare the snapshot with `tracectl create`, `trigger` and `install-core-handler`; the program
//! itself is not involved.

use std::env;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;
use tracepoint::Agent;

tracepoint::define_trace! {
    provider = "bank";

    /// Money is about to be transferred.
    #[level(Info)]
    pub transfer(number: u64, account: u64, cents: u64) { number: u64 = number, account: u64 = account, cents: u64 = cents }
}

/// Number of transfers that succeed.
const WELL: u64 = 2000;

fn transfer(number: u64, account: u64, how: &str) {
    tracepoint::trace!(transfer(number, account, number * 7919 % 100_000));
    if account != 13 {
        return;
    }
    match how {
        "abort" => std::process::abort(),
        "kill" => drop(Command::new("kill").args(["-KILL", &std::process::id().to_string()]).status()),
        "exit" => {}
        // SAFETY: none. This is the bug of the program: nothing is at this address.
        _ => unsafe { std::ptr::without_provenance_mut::<u64>(8).write_volatile(number) },
    }
}

fn main() {
    let how = env::args().nth(1).unwrap_or_default();
    // Continue if the program cannot be traced.
    let _agent = Agent::start().inspect_err(|error| eprintln!("not traced: {error}"));
    for number in 0..WELL {
        transfer(number, 20 + number % 10, &how);
        sleep(Duration::from_millis(1));
    }
    transfer(WELL, 13, &how);
}
