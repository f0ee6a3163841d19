//! `TRACEPOINT` in the environment.

use crate::common::{Outcome, again, assert_balances, until_ready, view};
use crate::traced::{Place, is_traced, traces};
use std::process::Command;

/// The process of a test, with `TRACEPOINT`.
fn start(place: &Place, test: &str, wish: &str) -> Command {
    let mut command = again(test, "traced");
    command.env("TRACEPOINT_RUN_DIR", place.run_dir()).env("TRACEPOINT", wish).env("TRACEPOINT_OUT", place.out("env"));
    command
}

#[test]
fn the_environment_records_from_the_first_event() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let child = until_ready(&mut start(
        &place,
        "environment::the_environment_records_from_the_first_event",
        "traced:*,!*:tock",
    ));
    let name = place.controller.process(child.id())?.name().to_owned();
    assert_eq!(place.on(), ["traced:tick"]);
    // A remotely controlled session runs at the same time.
    let session = place.record("beside", &["traced:tick"]);
    place.until_recorded(&session, 5);
    assert!(child.end());
    let traces = traces(&place.out("env"));
    assert_eq!(traces.len(), 1);
    assert!(traces[0].to_string_lossy().ends_with(&name), "{traces:?}");
    assert_balances(&traces[0]);
    let viewed = view(&[&traces[0]]);
    assert!(viewed.lines[0].contains("{ n = 0, half = 0x0 }"), "{}", viewed.lines[0]);
    assert_eq!(viewed.count(" traced:tock:"), 0);
    Ok(())
}

#[test]
fn a_directory_that_nobody_named_is_told() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let (here, said) = (place.temp.path().join("here"), place.temp.path().join("said"));
    std::fs::create_dir(&here)?;
    let mut command = start(&place, "environment::a_directory_that_nobody_named_is_told", "traced:tick");
    let command = command.env_remove("TRACEPOINT_OUT").current_dir(&here).stderr(std::fs::File::create(&said)?);
    assert!(until_ready(command).end());
    let [trace] = &traces(&here)[..] else { return Err("one trace".into()) };
    let said = std::fs::read_to_string(said)?;
    let expected = format!("events are recorded into {}; TRACEPOINT_OUT=DIR", trace.display());
    assert!(said.contains(&expected), "{said}");
    Ok(())
}

#[test]
fn text_is_written_to_a_file() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let file = place.temp.path().join("lines");
    let wish = format!("traced:*,<=info=text:{}", file.display());
    assert!(until_ready(&mut start(&place, "environment::text_is_written_to_a_file", &wish)).end());
    let text = std::fs::read_to_string(&file)?;
    assert!(text.lines().next().is_some_and(|line| line.contains("traced:tick")), "{text}");
    assert!(!text.contains("traced:tock"));
    Ok(())
}

/// The variable is inherited: two processes at the same time each write their own lines, and a later process does not truncate the file.
#[test]
fn processes_with_the_same_environment_do_not_mix_lines() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let file = place.temp.path().join("lines");
    let wish = format!("traced:tick=text:{}", file.display());
    let mut command = start(&place, "environment::processes_with_the_same_environment_do_not_mix_lines", &wish);
    let children = [until_ready(&mut command), until_ready(&mut command)];
    let other = place.controller.process(children[1].id())?.name().to_owned();
    assert!(children.into_iter().all(crate::common::Other::end));
    let files: Vec<_> = crate::common::names(place.temp.path());
    let beside = files.iter().find(|name| name.starts_with("lines-")).ok_or("no file beside it")?;
    assert!(beside.ends_with(&other), "{files:?}");
    let whole = |text: &str| text.ends_with('\n') && text.lines().all(|line| line.contains(" traced:tick "));
    let text = std::fs::read_to_string(&file)?;
    assert!(whole(&text) && whole(&std::fs::read_to_string(place.temp.path().join(beside))?));
    assert!(until_ready(&mut command).end());
    let after = std::fs::read_to_string(&file)?;
    assert!(after.len() > text.len() && after.starts_with(&text) && whole(&after));
    Ok(())
}

#[test]
fn errors_in_the_environment_are_reported_and_harmless() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let test = "environment::errors_in_the_environment_are_reported_and_harmless";
    for (wish, part) in [
        ("traced", "`traced:*`"),
        ("traced:tik", "did you mean traced:tick?"),
        ("traced:*=ctf:/proc/nowhere", "/proc/nowhere"),
        ("<=loud", "not a level"),
    ] {
        let output = start(&place, test, wish).stdin(std::process::Stdio::null()).output()?;
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && err.contains("TRACEPOINT: ") && err.contains(part), "{wish}: {err}");
    }
    Ok(())
}
