//! The exit codes of `tracectl record` for losses, processes that were not recorded, and killed processes.

use super::remote_recording::{busy, written};
use super::{DIES, EXITS, Outcome, Place, TRACED, is_traced, kill, program, until};
use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The tables in the book and in `--help` match the code.
#[test]
fn exit_codes_are_documented() -> Outcome {
    let help = Place::new().well(&["--help"]);
    let codes = help.split("Exit codes:\n").nth(1).ok_or("no exit codes")?;
    let codes = codes.replace("\n     ", " ");
    let book = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/control.md"))?;
    let mut number = 0;
    for line in codes.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (code, text) = line.split_once("  ").ok_or("no code")?;
        assert_eq!(code, number.to_string(), "{help}");
        assert!(book.contains(&format!("| {code} | {text} |\n")), "`| {code} | {text} |` is not in docs/control.md");
        number += 1;
    }
    assert_eq!(number, 8, "{help}");
    let record = Place::new().well(&["record", "--help"]);
    assert!(record.contains("--fail-on-loss") && record.contains("\n  7  `record`"), "{record}");
    Ok(())
}

#[test]
fn losses_are_counted_apart_and_fail_if_asked() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _traced = busy(&place, "exit_codes::losses_are_counted_apart_and_fail_if_asked", 2);
    let record = ["record", "-e", "shop:paid", "--ring-size", "8K", "--overflow", "0", "--duration", "500ms"];
    let (code, out, err) = place.tracectl(&[&record[..], &["-o", "text"]].concat());
    assert_eq!(code, Some(0), "{err}");
    let (headline, _) = out.split_once('\n').ok_or("no report")?;
    let words: Vec<_> = headline.split(' ').collect();
    assert!(words[1..6].join(" ").starts_with("events of 1 process, ") && headline.contains(" lost ("), "{out}");
    assert!(out.contains("to lose fewer: `--lossless`, "), "{out}");

    let (code, out, err) = place.tracectl(&[&record[..], &["-o", "json", "--json", "--fail-on-loss"]].concat());
    assert_eq!(code, Some(4), "{err}");
    let report: serde_json::Value = serde_json::from_str(&out)?;
    let [recorded, lost] = [&report["recorded"], &report["lost"]].map(|count| count.as_u64().unwrap_or_default());
    assert!(recorded > 0 && lost > 0, "{report}");
    let viewed = place.tracectl(&["view", "json"]).1.lines().filter(|line| line.contains(" shop:paid ")).count();
    assert_eq!(viewed as u64, recorded, "what was lost is not counted as recorded: {report}");
    Ok(())
}

#[test]
fn a_process_that_is_not_recorded_is_named() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let test = "exit_codes::a_process_that_is_not_recorded_is_named";
    let recorded = place.start(test);
    // It cannot create files as large as its rings.
    let plain = program(test, 0);
    let mut limited = Command::new("prlimit");
    limited.arg("--fsize=65536").arg(plain.get_program()).args(plain.get_args());
    limited.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let limited = place.start_as(limited);
    let (code, out, err) = place.tracectl(&["record", "-e", "shop:paid", "--duration", "300ms", "-o", "out", "--json"]);
    assert_eq!(code, Some(6), "{out}{err}");
    assert!(err.contains(&format!("process {} ", limited.0.id())) && err.contains("ulimit -f"), "{err}");
    let report: serde_json::Value = serde_json::from_str(&out)?;
    assert_eq!(report["not_recorded"], serde_json::json!([limited.0.id()]), "{report}");
    assert!(report["recorded"].as_u64() > Some(0), "process {} is recorded: {report}", recorded.0.id());
    Ok(())
}

/// A process that is stopped when recording should start, and killed before it answers.
#[test]
fn a_process_that_never_answers_is_named() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let mut traced = place.start("exit_codes::a_process_that_never_answers_is_named");
    let pid = traced.0.id().to_string();
    kill(&traced.0, "STOP")?;
    let (code, _, err) = place.tracectl(&["list", "-p", &pid, "--timeout", "1ms"]);
    assert!(
        code == Some(1)
            && err.contains(&format!("it is stopped, and will acknowledge when it continues (`kill -CONT {pid}`)")),
        "{err}"
    );
    let mut record = place.command(&["record", "-e", "shop:paid", "-p", &pid, "-o", "out", "--json"]);
    let record = record.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    until(|| fs::read_dir(place.path("run/sessions")).is_ok_and(|sessions| sessions.count() > 0));
    traced.0.kill()?;
    traced.0.wait()?;
    let output = record.wait_with_output()?;
    let err = String::from_utf8(output.stderr)?;
    assert_eq!(output.status.code(), Some(6), "{err}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let named = format!("process {pid} (");
    let failure = report["failures"][0].as_str().ok_or("no failure")?;
    assert!(failure.starts_with(&named) && failure.ends_with("not recorded: it ended before it answered"), "{report}");
    assert_eq!((&report["not_recorded"][0], &report["recorded"]), (&traced.0.id().into(), &0.into()), "{report}");
    Ok(())
}

/// Rules that only exclude events keep all others; rules that exclude everything, and rules that nothing can match, are refused.
#[test]
fn nothing_is_recorded_only_if_that_is_said() {
    if is_traced() {
        return;
    }
    let place = Place::new();
    let _traced = place.start("exit_codes::nothing_is_recorded_only_if_that_is_said");
    place.well(&["record", "-e", "!shop:looked", "--duration", "200ms", "-o", "out"]);
    let shown = place.well(&["view", "out"]);
    assert!(shown.contains(" shop:paid ") && !shown.contains(" shop:looked "), "{shown}");
    for (arguments, said) in [
        (
            &["-e", "shop:*", "-e", "!shop:*"][..],
            "the rules with `!` exclude every event of the process that matches `shop:*`",
        ),
        (
            &["-e", "shop:*", "--level", "<=emerg"],
            "no event of the process that matches `shop:*` has a level `<=emerg`",
        ),
    ] {
        let refused = place.refused(&[&["record", "-o", "other"], arguments].concat());
        assert!(refused.contains(said), "{refused}");
    }
    let (code, out, err) = place.tracectl(&["record", "-e", "no:*", "--wait", "--duration", "1ms", "-o", "none"]);
    assert!(code == Some(0) && out.starts_with("0 events") && err.contains("no process took part"), "{out}{err}");
    let refused = place.refused(&["hist", "latency(shop:paid, shop:loked)", "--once"]);
    assert!(
        refused.contains("no event of the process is called `shop:loked`")
            && refused.contains("did you mean shop:looked"),
        "{refused}"
    );
    place.well(&["create", "recorded", "-e", "shop:*", "--start"]);
    for verb in ["stat", "hist"] {
        let refused = place.refused(&[verb, "-s", "recorded", "--prometheus"]);
        assert!(refused.contains("the session recorded computes no statistic"), "{refused}");
    }
}

#[test]
fn a_command_decides_by_its_status() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    for (variables, expected) in [(&[][..], 0), (&[(EXITS, "0")], 0), (&[(EXITS, "3")], 3), (&[(DIES, "1")], 134)] {
        let exits = variables.iter().any(|(name, _)| *name == EXITS);
        let out = format!("out{expected}{exits}");
        let output = place
            .command(&["record", "-e", "shop:paid", "-o", &out, "--json", "--", "env", "TEST_TRACED=10"])
            .arg(env::current_exe()?)
            .args(["--exact", "exit_codes::a_command_decides_by_its_status", "--quiet"])
            .envs(variables.iter().copied())
            .output()?;
        assert_eq!(output.status.code(), Some(expected), "{output:?}");
        let text = String::from_utf8(output.stdout)?;
        let report: serde_json::Value = serde_json::from_str(text.lines().last().ok_or("no report")?)?;
        let recorded = report["recorded"].as_u64().unwrap_or_default();
        // The thread of a program that calls `exit` continues to fire in the meantime.
        assert!(if exits { recorded >= 10 } else { recorded == 10 }, "{report}");
        assert_eq!(report["recovered"].as_array().is_some_and(Vec::is_empty), expected != 134, "{report}");
        place.verifies(&out);
    }
    Ok(())
}

/// A command that cannot be recorded is a failure regardless of its own status: it has no agent, or no such event.
#[test]
fn a_command_of_which_nothing_is_recorded_fails() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let traced = program("exit_codes::a_command_of_which_nothing_is_recorded_fails", 10);
    for (events, path, arguments) in
        [("shop:paid", "true".as_ref(), vec![]), ("no:such", traced.get_program(), traced.get_args().collect())]
    {
        let mut record = place.command(&["record", "-e", events, "-o", "out", "--"]);
        let output = record.arg(path).args(arguments).env(TRACED, "10").output()?;
        let err = String::from_utf8(output.stderr)?;
        assert!(output.status.code() == Some(3) && err.contains("no process took part"), "{err}");
    }
    Ok(())
}

/// A report that cannot be written does not hide the exit status of the command.
#[test]
fn a_report_that_cannot_be_written_hides_no_status() -> Outcome {
    let place = Place::new();
    for (status, is_full, expected) in [("5", false, 5), ("5", true, 5), ("0", true, 3)] {
        let script = format!("exit {status}");
        let mut record = place.command(&["record", "-e", "shop:paid", "-o", "out", "--", "sh", "-c", &script]);
        let (reader, closed) = std::io::pipe()?;
        drop(reader);
        let out =
            if is_full { fs::OpenOptions::new().write(true).open("/dev/full")?.into() } else { Stdio::from(closed) };
        let output = record.stdout(out).output()?;
        let err = String::from_utf8(output.stderr)?;
        assert_eq!(output.status.code(), Some(expected), "{err}");
        assert_eq!(err.contains("cannot write the output: No space left"), is_full, "{err}");
    }
    Ok(())
}

/// A signal ends the command, whose last events are in the trace.
#[test]
fn a_signal_ends_the_command() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let traced = program("exit_codes::a_signal_ends_the_command", 0);
    let mut record = place.command(&["record", "-e", "shop:paid", "-o", "out", "--json", "--"]);
    record.arg(traced.get_program()).args(traced.get_args()).env(TRACED, "0");
    let mut record = record.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    until(|| written(&place.path("out")) > 0);
    let status: serde_json::Value = serde_json::from_str(&place.well(&["list", "--json"]))?;
    let pid = status["processes"][0]["pid"].as_u64().ok_or("no process")?;
    kill(&record, "INT")?;
    let stdin = record.stdin.take();
    let output = record.wait_with_output()?;
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "the command still runs");
    drop(stdin);
    assert_eq!(output.status.code(), Some(128 + 15), "{output:?}");
    place.verifies("out");
    Ok(())
}

/// `exit` with an agent that is alive ends the sessions: the traces are complete, and nothing looks like a kill.
#[test]
fn a_process_that_calls_exit_is_not_killed() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    place.well(&["create", "named", "-e", "shop:paid", "-o", "named", "--start", "--wait"]);
    let test = "exit_codes::a_process_that_calls_exit_is_not_killed";
    let mut record = place.command(&["record", "-e", "shop:paid", "--wait", "-o", "out", "--json"]);
    let record = record.stdout(Stdio::piped()).spawn()?;
    until(|| fs::read_dir(place.path("run/sessions")).is_ok_and(|sessions| sessions.count() == 2));
    let mut exits = program(test, 2000);
    let status = exits.env(EXITS, "0").env("TRACEPOINT_RUN_DIR", place.path("run")).stdout(Stdio::null()).status()?;
    assert!(status.success());
    kill(&record, "INT")?;
    let output = record.wait_with_output()?;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    assert!(report["recorded"].as_u64() >= Some(1000) && report["recovered"] == serde_json::json!([]), "{report}");
    place.verifies("out");
    place.verifies("named");
    Ok(())
}
