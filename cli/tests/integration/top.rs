//! `tracectl top` over a recorded trace, in a terminal.

use crate::tmux::Tmux;
use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Channel, Session};

tracepoint::define_trace! {
    provider = "top";

    asked(id: u64) { id: u64 = id }
    answered(id: u64, route: &str) { id: u64 = id, route: str = route }
}

const TRACECTL: &str = env!("CARGO_BIN_EXE_tracectl");

/// 100 and 40 events.
fn trace() -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("trace");
    let sink = CtfSink::create(&directory).unwrap();
    let name = format!("top-{}", place.path().file_name().unwrap().to_string_lossy().replace('.', ""));
    let session =
        Session::builder(&name).events("top:*").channel(Channel::discard(1 << 20)).sink(sink).start().unwrap();
    for id in 0..100 {
        tracepoint::trace!(asked(id));
        if id % 5 < 2 {
            tracepoint::trace!(answered(id, ["/\u{1b}[31mred", "/cart"][id as usize % 5]));
        }
    }
    session.stop().unwrap();
    (place, directory)
}

/// The line of the screen that contains this text.
fn line<'s>(screen: &'s str, text: &str) -> &'s str {
    screen.lines().find(|line| line.contains(text)).unwrap_or_else(|| panic!("{text} in {screen}"))
}

#[test]
fn a_recorded_trace_is_listed_and_looked_into() {
    let (_place, directory) = trace();
    let top = Tmux::run(&format!("{TRACECTL} top {}", directory.display()), (100, 20), &[]);
    let screen = top.until("the list", |screen| screen.contains("top:answered"));
    assert!(screen.starts_with(&directory.display().to_string()), "{screen}");
    let counts = |name| line(&screen, name).split_whitespace().nth(3).and_then(|count| count.parse::<u64>().ok());
    assert_eq!((counts("top:asked"), counts("top:answered")), (Some(100), Some(40)), "{screen}");

    // Smaller than its contents, and then large again.
    top.resize(30, 6);
    top.until("a small screen", |screen| screen.contains("on  top:a") && screen.lines().count() <= 6);
    top.resize(120, 30);
    top.until("a large screen", |screen| screen.contains("↑↓ select") && screen.contains("OVER TIME"));

    top.press(&["Down", "Enter"]);
    top.until("the fields", |screen| screen.contains("fields: id route") && screen.contains("count 40, p50 "));
    top.press(&["Right"]);
    let screen = top.until("the values", |screen| screen.contains("20  /cart"));
    // Recorded text does not control the terminal.
    assert!(screen.contains("20  /\\u{1b}[31mred") && line(&screen, "route=\"/cart\"").contains("id="), "{screen}");
    top.press(&["Space"]);
    top.until("a message", |screen| screen.contains("a recorded trace has no switches"));
    // A key that follows immediately would be read as part of an escape sequence.
    top.press(&["Escape"]);
    top.until("the list", |screen| screen.contains("OVER TIME"));
    top.press(&["s", "s"]);
    top.until("the order by name", |screen| screen.contains("EVENT▼"));
    top.press(&["q"]);
    top.until_ended(0);
}

#[test]
fn signals_and_keys_leave_the_terminal_as_it_was() {
    let (_place, directory) = trace();
    for signal in [None, Some(Signal::INT), Some(Signal::TERM), Some(Signal::HUP)] {
        let top = Tmux::run(&format!("{TRACECTL} top {}", directory.display()), (80, 12), &[("NO_COLOR", "1")]);
        top.until("the list", |screen| screen.contains("top:answered"));
        match signal {
            None => top.press(&["C-c"]),
            Some(signal) => {
                let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", top.shell())).unwrap();
                kill_process(Pid::from_raw(children.trim().parse().unwrap()).unwrap(), signal).unwrap();
            }
        }
        top.until_ended(0);
    }
}

/// As under `nohup`: no signal reports the end of the terminal.
#[test]
fn it_ends_with_its_terminal() {
    let (_place, directory) = trace();
    let top = Tmux::run(&format!("trap '' HUP; exec {TRACECTL} top {}", directory.display()), (80, 12), &[]);
    top.until("the list", |screen| screen.contains("top:answered"));
    let program = PathBuf::from(format!("/proc/{}/stat", top.shell()));
    drop(top);
    let end = Instant::now() + Duration::from_secs(60);
    // Gone, or a zombie.
    while std::fs::read_to_string(&program).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(Instant::now() < end, "it goes on without a terminal");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn it_hardly_wakes_up() {
    let (_place, directory) = trace();
    let top = Tmux::run(&format!("exec {TRACECTL} top {}", directory.display()), (80, 12), &[]);
    top.until("the list", |screen| screen.contains("top:answered"));
    let switches = || -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", top.shell())).unwrap();
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count.unwrap().trim().parse().unwrap()
    };
    let before = switches();
    sleep(Duration::from_secs(3));
    let woken = switches() - before;
    assert!(woken <= 9, "{woken} times in three seconds");
}

#[test]
fn without_a_terminal_it_names_another_verb() {
    let (_place, directory) = trace();
    let output = Command::new(TRACECTL).arg("top").arg(directory).stdin(Stdio::null()).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(3) && output.stdout.is_empty(), "{err}");
    assert!(err.contains("`top` needs a terminal") && err.contains("`tracectl stat`"), "{err}");
}
