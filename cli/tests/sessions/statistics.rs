//! `tracectl stat` and `hist` of running programs, and rules of sessions that compute.

use super::{Outcome, Place, is_traced, kill};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

fn lines(out: &str) -> Result<Vec<Value>, serde_json::Error> {
    out.lines().map(serde_json::from_str).collect()
}

#[test]
fn stat_counts_the_events_of_running_programs() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let test = "statistics::stat_counts_the_events_of_running_programs";
    let shops = [place.start(test), place.start(test)];
    let pid = shops[0].0.id().to_string();
    let out = place.well(&["stat", "shop:*", "--interval", "100ms", "--count", "3", "--json"]);
    let shown = lines(&out)?;
    assert_eq!(shown.len(), 3);
    let counts: Vec<_> = shown.iter().map(|shown| shown["count"].as_u64()).collect();
    assert!(counts.is_sorted() && counts[0] > Some(20), "{out}");
    let events = shown[2]["events"].as_array().ok_or("no events")?;
    let names: Vec<_> = events.iter().map(|event| event["name"].as_str().unwrap_or_default()).collect();
    assert!(names.len() == 2 && names.contains(&"shop:paid") && names.contains(&"shop:looked"), "{out}");
    assert!(events.iter().all(|event| event["per_second"].as_f64() > Some(10.0)), "{out}");
    assert_eq!(shown[2]["processes"], 2);
    assert_eq!(place.on(), [""; 0]);
    assert_eq!(fs::read_dir(place.path("run/sessions"))?.count(), 0, "nothing is left");

    let one =
        place.well(&["stat", "-p", &pid, "-e", "shop:paid", "--by", "cents", "--once", "--interval", "100ms", "--csv"]);
    let mut rows = one.lines();
    assert_eq!(rows.next(), Some("time_ns,\"cents\",count,per_second"));
    // Each price comes once, and there is room for 1000 of them.
    assert!(rows.clone().count() > 10 && rows.all(|row| row.contains("\",1,")), "{one}");
    let table = place.well(&[
        "stat",
        "shop:*",
        "-e",
        "!shop:looked",
        "--filter",
        "cents & 1 == 0",
        "--once",
        "--interval",
        "100ms",
    ]);
    let rows: Vec<_> = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
    assert!(rows.len() == 2 && rows[0] == ["EVENT", "COUNT", "PER", "SECOND"] && rows[1][0] == "shop:paid", "{table}");

    for (arguments, part) in [
        (&["stat", "shop:pajd"][..], "did you mean shop:paid?"),
        (&["stat", "shop:paid", "--by", "cent"], "no field `cent`"),
        (&["hist", "cent", "shop:*"], "did you mean cents?"),
        (&["hist", "latency(shop:paid, shop:none by cents)"], "matches"),
    ] {
        let error = place.refused(arguments);
        assert!(error.contains(part), "{arguments:?}: {error}");
    }
    let (code, _, error) = place.tracectl(&["stat"]);
    assert!(code == Some(2) && error.contains("'shop:*'") && error.contains("-s SESSION"), "{error}");
    let (code, _, error) = place.tracectl(&["stat", "-p", &pid, "/tmp/trace"]);
    assert!(code == Some(2) && error.contains("a trace has neither"), "{error}");
    Ok(())
}

#[test]
fn hist_shows_running_programs() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _shop = place.start("statistics::hist_shows_running_programs");
    let text = place.well(&["hist", "cents", "shop:paid", "--once", "--interval", "100ms"]);
    assert!(text.starts_with("hist(cents)\n  count ") && text.contains(" p99 ") && text.contains('█'), "{text}");
    let out = place.well(&["hist", "latency(shop:paid, shop:looked)", "--count", "2", "--interval", "100ms", "--json"]);
    let shown = lines(&out)?;
    assert_eq!((shown.len(), shown[0]["statistic"].as_str()), (2, Some("latency(shop:paid, shop:looked by thread)")));
    assert!(shown[1]["all"]["count"].as_u64() > shown[0]["all"]["count"].as_u64(), "{out}");
    Ok(())
}

#[test]
fn a_session_computes_until_it_is_destroyed() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let mut shop = place.start("statistics::a_session_computes_until_it_is_destroyed");
    let rules = ["--statistic", "count", "--statistic", "hist(cents)", "--statistic", "top(cents, 2)"];
    place.well(&[&["create", "numbers", "-e", "shop:paid", "--start"], &rules[..]].concat());
    place.well(&["enable", "numbers", "--statistic", "latency(shop:paid, shop:looked)"]);
    let status = place.well(&["status", "numbers"]);
    assert!(
        status.contains("`shop:paid` --statistic 'hist(cents)'") && status.contains(": 4 statistics of "),
        "{status}"
    );
    let status: Value = serde_json::from_str(&place.well(&["status", "--json", "numbers"]))?;
    assert_eq!(status["sessions"][0]["processes"][0]["statistics"], 4);
    let saved = place.well(&["save", "numbers"]);
    assert!(saved.contains("statistic = \"top(cents, 2)\""), "{saved}");

    let out = place.well(&["stat", "-s", "numbers", "--interval", "100ms", "--count", "2"]);
    let last = out.rsplit("\n\n").next().ok_or("nothing")?;
    assert!(last.starts_with("STATISTIC") && last.contains("PER SECOND") && last.contains("P99"), "{out}");
    assert_eq!(last.lines().filter(|line| line.contains("shop:")).count(), 1 + 1 + 1 + 2, "{out}");
    let hist = place.well(&["hist", "-s", "numbers", "--once"]);
    assert!(hist.contains("shop:paid\nhist(cents)\n") && hist.contains("shop:looked\nlatency("), "{hist}");
    assert!(!place.well(&["hist", "cents", "-s", "numbers", "--once"]).contains("latency"));
    assert!(place.refused(&["hist", "size", "-s", "numbers"]).contains("--statistic 'hist(FIELD)'"));

    // What is there stays when the process is killed.
    shop.0.kill()?;
    shop.0.wait()?;
    let read = || -> Result<Value, Box<dyn std::error::Error>> {
        Ok(serde_json::from_str(&place.well(&["stat", "-s", "numbers", "--once", "--json"]))?)
    };
    let killed = read()?;
    assert_eq!(
        (&killed["processes"][0]["is_alive"], &killed["statistics"].as_array().map(Vec::len)),
        (&Value::Bool(false), &Some(4))
    );
    assert_eq!(read()?["statistics"], killed["statistics"]);
    place.well(&["disable", "numbers", "-e", "shop:paid", "--statistic", "count"]);
    let missing = place.refused(&["disable", "numbers", "-e", "shop:paid", "--statistic", "count"]);
    assert!(missing.contains("--statistic 'count'") && missing.contains("--statistic 'hist(cents)'"), "{missing}");
    place.well(&["destroy", "numbers"]);
    assert!(!place.path("run/sessions/numbers").exists());
    Ok(())
}

/// No event stays on when `stat` is killed, and its files are removed by the next command.
#[test]
fn a_killed_stat_leaves_nothing() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _shop = place.start("statistics::a_killed_stat_leaves_nothing");
    let start = || -> Result<_, Box<dyn std::error::Error>> {
        let mut stat = place.command(&["stat", "shop:*", "--interval", "50ms"]).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(stat.stdout.take().ok_or("a pipe")?).read_line(&mut line)?;
        assert!(line.starts_with("EVENT"), "{line}");
        Ok(stat)
    };
    let mut killed = start()?;
    killed.kill()?;
    killed.wait()?;
    while place.on() != [""; 0] {}
    place.well(&["status"]);
    assert_eq!(fs::read_dir(place.path("run/sessions"))?.count(), 0);

    let mut stopped = place.command(&["stat", "shop:*", "--interval", "50ms"]).stdout(Stdio::null()).spawn()?;
    while place.on().is_empty() {
        assert!(stopped.try_wait()?.is_none(), "it ended");
    }
    kill(&stopped, "INT")?;
    assert!(stopped.wait()?.success());
    assert_eq!((place.on(), fs::read_dir(place.path("run/sessions"))?.count()), (Vec::new(), 0));
    Ok(())
}
