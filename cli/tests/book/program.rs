//! The program recorded in the pages: each of its events is named in a page.

use std::time::{Duration, Instant};

mod shop {
    tracepoint::define_trace! {
        provider = "shop";

        pub asked(id: u32) { id }
        #[level(Info)]
        pub answered(id: u32, size: u32, path: &str, status: u16) { id, size, path, status, nanos: u64 = u64::from(id) * 1_000 }
        pub idle(n: u32) { n }
        pub paid(status: u16) { status }
        pub span request(id: u32) { id }
    }
}

mod net {
    tracepoint::define_trace! { provider = "net"; pub received(bytes: u32, size: u32) { bytes, size } }
}

mod disk {
    tracepoint::define_trace! { provider = "disk"; pub read(bytes: u32) { bytes } }
}

mod http {
    tracepoint::define_trace! {
        provider = "http";

        pub begin(id: u32, route: &str) { id, route }
        pub end(id: u32, route: &str, status: u16, bytes: u32) { id, route, status, bytes }
        pub req_begin(id: u32, route: &str) { id, route }
        pub req_end(id: u32, route: &str) { id, route }
    }
}

/// The environment variable with the program's arguments; set if this test program acts as that program.
const ARGUMENTS: &str = "TEST_SHOP";

/// A shell script that runs `exe`, a name of this test program, as the program of the pages.
pub(crate) fn script(exe: &str) -> String {
    format!("#!/bin/sh\n{ARGUMENTS}=\"$*\" exec '{exe}' --exact program::run --nocapture >/dev/null\n")
}

/// `./shop REQUESTS [SECONDS]` answers this many requests, and then waits; with other or no arguments, it answers requests for a second;
/// with `serve`, until it is killed.
#[test]
fn run() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else { return };
    let _agent = tracepoint_session::Agent::start().unwrap();
    let numbers: Vec<u32> = arguments.split(' ').map_while(|number| number.parse().ok()).collect();
    if let [requests, rest @ ..] = &numbers[..] {
        (0..*requests).for_each(answer);
        std::thread::sleep(Duration::from_secs(rest.first().copied().unwrap_or(0).into()));
        return;
    }
    let begun = Instant::now();
    for id in 0.. {
        serve(id);
        if arguments != "serve" && begun.elapsed() > Duration::from_secs(1) {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Answers a request; one in 250 is slow.
fn answer(id: u32) {
    let _request = tracepoint::span!(shop::request(id));
    let status = if id % 10 == 9 { 500 } else { 200 };
    tracepoint::trace!(shop::asked(id));
    tracepoint::trace!(shop::answered(id, 64 * id, "/cart", status));
    if id % 250 == 249 {
        std::thread::sleep(Duration::from_millis(210));
    }
}

/// The events of a request in the other parts of the program.
fn serve(id: u32) {
    let route = if id.is_multiple_of(2) { "/" } else { "/cart" };
    tracepoint::trace!(http::begin(id, route));
    tracepoint::trace!(http::req_begin(id, route));
    tracepoint::trace!(net::received(64, 8192));
    answer(id);
    tracepoint::trace!(disk::read(4096));
    tracepoint::trace!(shop::paid(200));
    tracepoint::trace!(shop::idle(id));
    tracepoint::trace!(http::req_end(id, route));
    tracepoint::trace!(http::end(id, route, 200, 64 * (id % 100)));
}
