//! `tracectl top` of running programs, in a terminal.

use super::tmux::Tmux;
use super::{Outcome, Place, is_traced, until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;

fn top(place: &Place, arguments: &str) -> Tmux {
    let run_dir = place.path("run");
    let variable = ("TRACEPOINT_RUN_DIR", run_dir.to_str().expect("a text"));
    let command = format!("{} top --interval 200ms {arguments}", env!("CARGO_BIN_EXE_tracectl"));
    Tmux::run(&command, (100, 24), &[variable])
}

/// The state, the rate and the count of an event.
fn row(screen: &str, event: &str) -> Option<(String, f64, u64)> {
    let words: Vec<_> = screen.lines().find(|line| line.contains(event))?.split_whitespace().collect();
    Some((words.first()?.to_string(), words.get(2)?.parse().ok()?, words.get(3)?.parse().ok()?))
}

fn is_on(screen: &str, event: &str) -> bool {
    row(screen, event).is_some_and(|(state, rate, count)| state == "on" && rate > 0.0 && count > 0)
}

/// The events that are on in any process.
fn on(place: &Place) -> Vec<String> {
    let mut on = place.on();
    on.sort();
    on.dedup();
    on
}

#[test]
fn running_programs_are_listed_switched_and_looked_into() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let test = "top::running_programs_are_listed_switched_and_looked_into";
    let (shop, ends) = (place.start(test), place.start(test));
    let top = top(&place, "'shop:*'");
    let screen = top.until("both events", |screen| is_on(screen, "shop:paid") && is_on(screen, "shop:looked"));
    assert!(screen.starts_with("2 processes, 2 tracepoints, 2 on"), "{screen}");
    assert_eq!(on(&place), ["shop:looked", "shop:paid"]);

    // Sorted by name, so that the order does not change.
    top.press(&["s", "s", "Home", "Space"]);
    top.until("an event that is off", |screen| row(screen, "shop:looked").is_some_and(|(state, ..)| state == "off"));
    assert_eq!(on(&place), ["shop:paid"]);
    let off = top.until("no rate", |screen| row(screen, "shop:looked").is_some_and(|(_, rate, _)| rate == 0.0));
    top.press(&["Space"]);
    let again = top.until("an event that is on again", |screen| is_on(screen, "shop:looked"));
    assert_eq!(on(&place), ["shop:looked", "shop:paid"]);
    // Earlier counts are kept.
    assert!(row(&again, "shop:looked").map(|row| row.2) > row(&off, "shop:looked").map(|row| row.2), "{off}{again}");

    drop(ends);
    top.until("the end of a process", |screen| screen.contains("1 process, ") && screen.contains("/s  ended"));
    top.resize(64, 8);
    top.until("a small screen", |screen| screen.contains("on  shop:paid") && screen.lines().count() <= 8);
    top.resize(120, 30);
    let later = place.start(test);
    let name = format!("  {} ", later.0.id());
    top.until("a process that started later", |screen| screen.contains("2 processes, ") && screen.contains(&name));

    top.press(&["Down", "Enter"]);
    let screen = top.until("the field", |screen| screen.contains("fields: cents") && screen.contains(", p50 "));
    assert!(screen.contains("shop:paid  "), "{screen}");
    top.until("events", |screen| screen.lines().any(|line| line.contains("shop:paid cents=")));
    assert_eq!(on(&place), ["shop:looked", "shop:paid"]);
    top.press(&["Escape"]);
    top.until("the list", |screen| screen.contains("OVER TIME"));
    drop(shop);
    drop(later);
    top.until("no process", |screen| screen.contains("0 processes, ") && screen.contains("no process is left"));
    top.press(&["q"]);
    top.until_ended(0);
    assert_eq!((on(&place), fs::read_dir(place.path("run/sessions"))?.count()), (Vec::new(), 0));
    Ok(())
}

#[test]
fn the_events_of_a_session_are_switched_in_it() {
    if is_traced() {
        return;
    }
    let place = Place::new();
    let _shop = place.start("top::the_events_of_a_session_are_switched_in_it");
    place.well(&["create", "flight", "-e", "shop:*", "-e", "!shop:looked", "--start"]);
    let top = top(&place, "-s flight");
    let screen = top.until("the event", |screen| is_on(screen, "shop:paid"));
    assert!(screen.starts_with("session flight: 1 process, 1 tracepoint, 1 on"), "{screen}");
    top.press(&["Space"]);
    top.until("an event that is off", |screen| row(screen, "shop:paid").is_some_and(|(state, ..)| state == "off"));
    assert_eq!(place.on(), [""; 0]);
    top.press(&["q"]);
    top.until_ended(0);
    // The session stays as it was changed.
    assert!(place.well(&["status", "flight"]).contains("`!shop:paid`"));
    place.well(&["disable", "flight", "-e", "!shop:paid"]);
    assert_eq!(place.on(), ["shop:paid"]);
    assert!(place.refused(&["top", "-s", "none"]).contains("needs a terminal"));
}

#[test]
fn a_killed_top_leaves_nothing() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _shop = place.start("top::a_killed_top_leaves_nothing");
    let top = top(&place, "");
    top.until("the events", |screen| is_on(screen, "shop:paid"));
    top.press(&["Enter"]);
    top.until("events", |screen| {
        screen.lines().any(|line| line.contains("shop:paid cents=") || line.contains("shop:looked n="))
    });
    let shell = top.shell();
    let children = fs::read_to_string(format!("/proc/{shell}/task/{shell}/children"))?;
    let pid = Pid::from_raw(children.trim().parse()?).ok_or("no process")?;
    kill_process(pid, Signal::KILL)?;
    until(|| place.on().is_empty());
    place.well(&["status"]);
    assert_eq!(fs::read_dir(place.path("run/sessions"))?.count(), 0);
    Ok(())
}
