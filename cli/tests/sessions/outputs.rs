//! Outputs of sessions: files, servers, lines of text, and chunks.

use super::{Outcome, Place, is_traced, kill, program, until};
use std::fs;
use std::io::pipe;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

fn json(text: &str) -> Result<serde_json::Value, serde_json::Error> {
    serde_json::from_str(text)
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn files_have_the_names_that_were_given() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let traced = place.start("outputs::files_have_the_names_that_were_given");
    let pid = traced.0.id().to_string();
    let shared = ["--duration", "300ms", "-e", "shop:*"];
    let record = |more: &[&str]| place.tracectl(&[&["record"], &shared[..], more].concat());
    let (code, out, err) = record(&["-p", &pid, "--dt", "one.dt", "--dt-slots", "16", "--text", "one.txt"]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert!(out.contains(&format!("  {}  ", place.path("one.dt").display())), "{out}");
    assert!(out.contains(&format!("tracectl view {}\n", place.path("one.dt").display())), "{out}");
    assert_eq!(place.tracectl(&["verify", "one.dt"]).0, Some(0));
    assert!(fs::read_to_string(place.path("one.txt"))?.contains(" shop:paid "));
    assert_eq!(names(&place.path("")), ["one.dt", "one.txt", "run"]);

    // Another process gets a second file next to it, which is named in the report.
    let _other = place.start("outputs::files_have_the_names_that_were_given");
    let (code, out, err) = record(&["--dt", "two.dt", "--json"]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    let outputs: Vec<PathBuf> = serde_json::from_value(json(&out)?["outputs"].clone())?;
    assert_eq!(outputs.len(), 2, "{out}");
    assert!(outputs.contains(&place.path("two.dt")));
    for output in &outputs {
        let output = output.to_string_lossy();
        assert!(output.contains("/two"), "{output}");
        assert_eq!(place.tracectl(&["verify", &output]).0, Some(0));
    }
    for (arguments, part) in [
        (&["--dt", "one.dt"][..], "one.dt exists already; remove it, or choose another file with `--dt`"),
        (&["--text", "one.txt"], "choose another file with `--text`"),
        (&["--dt", "nowhere/x.dt"], "the directory of nowhere/x.dt does not exist"),
        (&["--dt", "x.dt", "--dt-slots", "100000"], "fewer slots"),
        (&["--dt", "x.dt", "--keep", "3"], "need `-o DIR`"),
        (&["-o", "x", "--ring-size", "9223372036854775808"], "`ring_size` is 9223372036854775808"),
        (&["-o", "x", "--max-size", "9223372036854775808"], "`max_size` is 9223372036854775808"),
    ] {
        let (code, out, err) = record(arguments);
        assert_eq!((code, out.as_str()), (Some(3), ""), "{err}");
        assert!(err.contains(part), "{arguments:?}: {err}");
    }
    Ok(())
}

/// The file has the packets that were written; next to it is a complete trace, including the packets from the rings.
#[test]
fn a_process_killed_while_it_writes_a_file_is_recovered() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let mut traced = place.start("outputs::a_process_killed_while_it_writes_a_file_is_recovered");
    let pid = traced.0.id().to_string();
    let arguments = ["record", "-e", "shop:paid", "-p", &pid, "--dt", "died.dt", "--json"];
    let record = place.command(&arguments).stdout(Stdio::piped()).spawn()?;
    until(|| place.path("died.dt").exists() && !place.on().is_empty());
    std::thread::sleep(Duration::from_millis(300));
    traced.0.kill()?;
    traced.0.wait()?;
    let report = json(&String::from_utf8(record.wait_with_output()?.stdout)?)?;
    let recovered = report["recovered"][0]["output"].as_str().ok_or("nothing was recovered")?;
    assert_eq!(place.tracectl(&["verify", recovered]).0, Some(0));
    let (_, lines, _) = place.tracectl(&["view", recovered]);
    assert_eq!(Some(lines.lines().count() as u64), report["counters"]["recorded"].as_u64());
    let outputs: Vec<String> = serde_json::from_value(report["outputs"].clone())?;
    assert!(outputs.iter().any(|output| output == recovered) && outputs.iter().any(|o| o.ends_with("/died.dt")));
    assert_eq!(place.tracectl(&["view", "died.dt"]).0, Some(0));
    Ok(())
}

#[test]
fn the_address_of_a_server_is_printed_and_can_be_read() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _traced = place.start("outputs::the_address_of_a_server_is_printed_and_can_be_read");
    place.well(&[
        "create",
        "live",
        "-e",
        "shop:*",
        "--udp",
        "127.0.0.1",
        "--udp-limit",
        "1M",
        "--udp-rate",
        "1G",
        "--udp-pace",
        "9",
        "--udp-allow",
        "192.0.2.7",
        "--start",
    ]);
    let status = json(&place.well(&["status", "--json"]))?;
    let server = status["sessions"][0]["processes"][0]["servers"][0].as_str().ok_or("no server")?;
    let port = server.strip_prefix("127.0.0.1:").ok_or("another address")?;
    let shown = place.well(&["status"]);
    assert!(shown.contains("udp server on 127.0.0.1\n") && shown.contains(&format!("udp {server}\n")), "{shown}");
    let (_, lines, err) = place.tracectl(&["read", "--server-port", port, "--events-limit", "10"]);
    assert!(lines.lines().filter(|line| line.contains("shop:")).count() >= 10, "{lines}{err}");

    // The port is in use by that process: another session is refused.
    let (code, _, err) = place.tracectl(&["create", "too", "-e", "shop:*", "--udp", &format!(":{port}"), "--start"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("choose another port, or 0 for a free one"), "{err}");
    // A recording that no process can take part in does not start.
    let err = place.refused(&["record", "-e", "shop:*", "-o", "none", "--udp", &format!("127.0.0.1:{port}")]);
    assert!(err.contains("choose another port, or 0 for a free one"), "{err}");
    assert!(!place.path("none").exists());
    place.well(&["destroy", "too"]);
    place.well(&["destroy", "live"]);
    assert_eq!(place.tracectl(&["record", "--udp", "here"]).0, Some(2));

    let (code, _, err) = place.tracectl(&["record", "-e", "shop:*", "--udp", "127.0.0.1", "--duration", "700ms"]);
    assert_eq!(code, Some(0));
    assert!(
        err.contains("serves its events on UDP 127.0.0.1:") && err.contains("tracectl read --server-port "),
        "{err}"
    );
    Ok(())
}

/// The summary contains the number of sent events and of clients; unread events are lost.
#[test]
fn a_recording_tells_what_its_server_has_sent() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _traced = place.start("outputs::a_recording_tells_what_its_server_has_sent");
    let arguments = ["record", "-e", "shop:*", "--udp", "127.0.0.1:0", "--duration", "700ms"];
    let (code, out, err) = place.tracectl(&arguments);
    let line = out.lines().find(|line| line.contains(": UDP 127.0.0.1:")).ok_or(format!("{out}{err}"))?;
    let lost = out.split_once(", ").and_then(|(_, rest)| rest.split_once(" lost (100.0 %)")).ok_or(out.clone())?.0;
    assert!(code == Some(0) && out.starts_with("0 events of 1 process"), "{out}{err}");
    assert!(line.ends_with(&format!(" has sent 0 events to 0 clients, {lost} were sent to no client")), "{out}");

    // A client that reads some of the events.
    let mut command = place.command(&["record", "--json", "-e", "shop:*", "--udp", "127.0.0.1:0"]);
    let errors = place.path("errors");
    let record = command.stdout(Stdio::piped()).stderr(fs::File::create(&errors)?).spawn()?;
    let said = || fs::read_to_string(&errors).unwrap_or_default();
    until(|| said().contains("--server-port "));
    let said = said();
    let port = said.split_once("--server-port ").and_then(|(_, port)| port.lines().next()).ok_or("no port")?;
    let (_, events, _) = place.tracectl(&["read", "--server-port", port, "--events-limit", "10"]);
    assert!(events.lines().count() >= 10, "{events}");
    kill(&record, "INT")?;
    let report = json(&String::from_utf8(record.wait_with_output()?.stdout)?)?;
    let served = &report["served"][0];
    let count = |of: &serde_json::Value| of.as_u64().unwrap_or_default();
    assert!(count(&served["clients"]) >= 1 && count(&served["sent"]) >= 10, "{served}");
    assert_eq!(count(&report["recorded"]), count(&served["sent"]), "{report}");
    assert_eq!(count(&report["lost"]), count(&served["unsent"]), "{report}");
    Ok(())
}

#[test]
fn a_session_continues_in_chunks() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _traced = place.start("outputs::a_session_continues_in_chunks");
    place.well(&["create", "cut", "-e", "shop:paid", "-o", "cut"]);
    assert!(place.refused(&["rotate", "cut"]).contains("start it with `tracectl start cut`"));
    place.well(&["start", "cut"]);
    let mut chunks = Vec::new();
    until(|| {
        std::thread::sleep(Duration::from_millis(50));
        chunks.extend(place.well(&["rotate", "cut"]).lines().map(str::to_owned));
        chunks.len() >= 2
    });
    let shown = |paths: &[&str]| {
        let text = place.tracectl(&[&["view"], paths].concat());
        assert_eq!((text.0, text.2.as_str()), (Some(0), ""));
        assert!(!text.1.contains("[lost"), "{}", text.1);
        text.1.lines().count()
    };
    let [first, second] = [&chunks[0], &chunks[1]].map(String::as_str);
    assert_eq!(shown(&[first, second]), shown(&[first]) + shown(&[second]));
    assert_eq!(place.tracectl(&["verify", first]).0, Some(0));
    place.well(&["destroy", "cut"]);
    assert_eq!(place.tracectl(&["verify", "cut"]).0, Some(0));
    let above = Path::new(first).parent().ok_or("no parent")?;
    let all: usize = names(above).iter().map(|name| shown(&[&above.join(name).to_string_lossy()])).sum();
    assert_eq!(shown(&["cut"]), all);

    // Chunks by size, of which the newest are kept.
    let arguments =
        ["record", "-e", "shop:*", "-o", "newest", "--rotate-size", "4K", "--keep", "2", "--duration", "3s"];
    let (code, _, err) = place.tracectl(&arguments);
    assert_eq!(code, Some(0), "{err}");
    let process = names(&place.path("newest")).remove(0);
    let kept = names(&place.path("newest").join(process));
    assert!(kept.len() == 2 && !kept.contains(&"chunk-000001".to_owned()), "{kept:?}");
    assert_eq!(place.tracectl(&["verify", "newest"]).0, Some(0));

    place.well(&["create", "flight", "-e", "shop:*", "--start"]);
    assert!(place.refused(&["rotate", "flight"]).contains("no CTF output"));
    assert_eq!(place.tracectl(&["create", "x", "-e", "*", "-o", "x", "--keep", "1"]).0, Some(2));
    Ok(())
}

/// The standard error of the process is a pipe without a reader: `stop` and `destroy` report that output is missing.
#[test]
fn a_sink_that_blocks_is_reported() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let (_reader, writer) = pipe()?;
    let mut command = program("outputs::a_sink_that_blocks_is_reported", 0);
    command.stderr(writer);
    let _traced = place.start_as(command);
    place.well(&["create", "live", "-e", "shop:*", "--text", "--start"]);
    until(|| place.well(&["status"]).contains("one of them blocks"));
    for command in ["stop", "destroy"] {
        let (code, _, err) = place.tracectl(&[command, "live"]);
        assert_eq!(code, Some(1), "{command}: {err}");
        assert!(err.contains("a sink is slow or blocked"), "{command}: {err}");
        assert_eq!(place.on(), [""; 0], "{command}");
    }
    Ok(())
}
