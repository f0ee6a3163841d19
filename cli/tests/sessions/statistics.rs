//! `tracectl stat` and `hist` of running programs, and rules of sessions with statistics.

use super::prometheus::{Sample, address, parsed, scraped, value};
use super::tmux::Tmux;
use super::{Outcome, Place, is_traced, kill, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
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
    // Each price occurs once, and there is room for 1000 of them. On a busy machine more than that occur in the interval.
    let is_once = |row: &str| row.contains("\",1,") || row.contains(",\"(further groups)\",");
    assert!(rows.clone().count() > 10 && rows.clone().all(is_once), "{one}");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_nanos();
    let times: Vec<u128> = rows.filter_map(|row| row.split(',').next()?.parse().ok()).collect();
    assert!(times.iter().all(|time| (now - 60_000_000_000..=now).contains(time)), "since the epoch, as events: {one}");
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
        (&["hist", "latency(shop:paid, shop:none by cents)"], "is called `shop:none`"),
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
    let out =
        place.well(&["hist", "latency(shop:paid, shop:looked)", "--count", "20", "--interval", "100ms", "--json"]);
    let shown = lines(&out)?;
    assert_eq!((shown.len(), shown[0]["statistic"].as_str()), (20, Some("latency(shop:paid, shop:looked by thread)")));
    let counts: Vec<_> = shown.iter().map(|one| one["all"]["count"].as_u64()).collect();
    assert!(counts.is_sorted() && counts[0] < counts[19], "{counts:?}");
    Ok(())
}

/// An event selected by several rules counts once; each rule of a session has its own rate.
#[test]
fn rules_that_overlap_count_an_event_once() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _shop = place.start("statistics::rules_that_overlap_count_an_event_once");
    let rules = ["shop:*", "-e", "shop:paid", "-e", "shop:pai?", "--once", "--interval", "100ms"];
    let shown: Value = serde_json::from_str(&place.well(&[&["stat", "--json"], &rules[..]].concat()))?;
    let mut names: Vec<_> = shown["events"].as_array().ok_or("no events")?.iter().map(|one| &one["name"]).collect();
    names.sort_by_key(|name| name.as_str());
    assert_eq!(names, ["shop:looked", "shop:paid"], "{shown}");
    // Each number of cents occurs once.
    let shown: Value = serde_json::from_str(&place.well(&[&["hist", "--json", "cents"], &rules[..]].concat()))?;
    let of = |key: &str| shown["all"][key].as_f64().unwrap_or_default();
    assert!(of("count") > 20.0 && of("count") < 1.5 * (of("max") - of("min") + 1.0), "{shown}");

    // The counts of the second rule begin later. Their rates are those of the same events.
    place.well(&["create", "numbers", "-e", "shop:paid", "--statistic", "count", "--start"]);
    let count = || -> u64 {
        let shown = place.well(&["stat", "-s", "numbers", "--once", "--json"]);
        let shown: Value = serde_json::from_str(&shown).expect("JSON");
        let all = shown["statistics"].as_array().expect("a list").iter().map(|one| one["all"].as_u64());
        all.min().flatten().unwrap_or_default()
    };
    until(|| count() >= 1000);
    place.well(&["enable", "numbers", "-e", "shop:pai?", "--statistic", "count"]);
    until(|| count() >= 10_000);
    let rows = place.well(&["stat", "-s", "numbers", "--csv", "--count", "2", "--interval", "100ms"]);
    let rate = |row: &str| row.rsplit(',').next().and_then(|rate| rate.parse::<f64>().ok()).unwrap_or_default();
    let rates: Vec<_> = rows.lines().skip(3).map(rate).collect();
    let time = |row: &str| row.split(',').next().and_then(|time| time.parse::<u64>().ok());
    let (head, first) = (rows.lines().next(), rows.lines().nth(1).and_then(time));
    assert_eq!(head, Some("time_ns,statistic,event,group,count,per_second"), "{rows}");
    assert!(first > Some(1_700_000_000_000_000_000), "since the epoch: {rows}");
    assert!(rates.len() == 2 && rates[0] < 5.0 * rates[1] && rates[1] < 5.0 * rates[0], "{rows}");
    place.well(&["destroy", "numbers"]);
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
    assert_eq!(place.well(&["save", "numbers", "-"]), saved);
    assert!(place.well(&["hist", "cents", "-s", "numbers", "-o", "-", "--once"]).starts_with("<svg"));
    assert!(!place.path("-").exists());
    let refused = place.refused(&["snapshot", "numbers", "-o", "out"]);
    assert!(refused.contains("the session numbers has no rings: its rules only compute"), "{refused}");
    assert!(saved.contains("statistic = \"top(cents, 2)\""), "{saved}");

    let out = place.well(&["stat", "-s", "numbers", "--interval", "100ms", "--count", "2"]);
    let last = out.rsplit("\n\n").next().ok_or("nothing")?;
    assert!(last.starts_with("STATISTIC") && last.contains("PER SECOND") && last.contains("P99"), "{out}");
    assert_eq!(last.lines().filter(|line| line.contains("shop:")).count(), 1 + 1 + 1 + 2, "{out}");
    // Shown once and immediately, without rates.
    let once = place.well(&["stat", "-s", "numbers"]);
    assert!(once.matches("STATISTIC").count() == 1 && !once.contains("PER SECOND"), "{once}");
    assert_eq!(place.well(&["stat", "-s", "numbers", "--watch", "--count", "2"]).matches("STATISTIC").count(), 2);
    let hist = place.well(&["hist", "-s", "numbers"]);
    assert!(hist.contains("shop:paid\nhist(cents)\n") && hist.contains("shop:looked\nlatency("), "{hist}");
    assert!(!place.well(&["hist", "cents", "-s", "numbers", "--once"]).contains("latency"));
    assert!(place.refused(&["hist", "size", "-s", "numbers"]).contains("--statistic 'hist(FIELD)'"));

    // The results stay when the process is killed.
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

#[test]
fn running_programs_have_metrics() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let test = "statistics::running_programs_have_metrics";
    let _shops = [place.start(test), place.start(test)];
    let total = "tracepoint_events_total";
    // Repeated in case the programs did not run in these 100 ms.
    let metrics = |arguments: &[&str], is_enough: &dyn Fn(&[Sample]) -> bool| {
        let mut metrics = Vec::new();
        until(|| {
            metrics = parsed(&place.well(&[arguments, &["--prometheus", "--interval", "100ms"]].concat()));
            is_enough(&metrics)
        });
        metrics
    };
    let has_ten = |samples: &[Sample], name: &str, of: &Value| {
        samples.iter().any(|(sample, labels, value)| sample == name && labels == of && value.as_f64() > Some(10.0))
    };
    let paid = json!({ "event": "shop:paid" });
    let counts = metrics(&["stat", "shop:*", "-e", "shop:paid"], &|all| all.len() >= 2 && has_ten(all, total, &paid));
    assert_eq!(counts.len(), 2, "{counts:?}");
    // Three from each process.
    let by = metrics(&["stat", "shop:paid", "--by", "cents", "--groups", "3"], &|by| by.len() >= 7);
    assert!(by.len() == 7 && by[6].1 == json!({ "group": "further" }), "{by:?}");
    let statistic = json!({ "statistic": "latency(shop:paid, shop:looked by thread)" });
    let count = "tracepoint_latency_seconds_count";
    metrics(&["hist", "latency(shop:paid, shop:looked)"], &|all| has_ten(all, count, &statistic));

    // Two rules with the same statistic of one event give one sample; a filter gives another one.
    place.well(&["create", "numbers", "-e", "shop:*", "--statistic", "count", "--statistic", "hist(cents)", "--start"]);
    place.well(&["enable", "numbers", "-e", "shop:paid", "--statistic", "count"]);
    place.well(&["enable", "numbers", "-e", "shop:pai?", "--statistic", "count", "--filter", "cents & 1"]);
    let mut server = place.command(&["stat", "-s", "numbers", "--listen", "0"]).stderr(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(server.stderr.take().ok_or("a pipe")?).read_line(&mut line)?;
    let address = address(&line);
    let read = || -> f64 {
        let (head, body) = scraped(&address);
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
        let all = parsed(&body);
        assert_eq!(all.iter().filter(|(name, ..)| name == total).count(), 3, "{all:?}");
        let odd = value(&all, total, &json!({ "event": "shop:paid", "filter": "cents & 1" })).as_f64();
        let count = value(&all, total, &json!({ "event": "shop:paid" })).as_f64();
        assert!(odd > Some(0.0) && odd < count, "{all:?}");
        let hist = json!({ "event": "shop:paid", "statistic": "hist(cents)" });
        assert!(value(&all, "tracepoint_values_count", &hist).as_f64() > Some(0.0));
        count.unwrap_or_default()
    };
    let first = read();
    until(|| read() > first);
    let picture = place.path("cents.svg");
    place.well(&["hist", "-s", "numbers", "--once", "-o", picture.to_str().ok_or("a path")?]);
    place.well(&["destroy", "numbers"]);
    assert!(scraped(&address).0.starts_with("HTTP/1.1 500 "));
    kill(&server, "INT")?;
    assert!(server.wait()?.success());
    assert!(fs::read_to_string(&picture)?.contains("hist(cents)"));
    place.well(&["hist", "cents", "shop:*", "--once", "--interval", "100ms", "-o", picture.to_str().ok_or("a path")?]);
    assert!(fs::read_to_string(&picture)?.contains("2 programs: "));

    let map = ["hist", "cents", "shop:*", "--heat-map", "--interval", "100ms"];
    let columns = place.well(&[&map[..], &["--count", "3", "--json"]].concat());
    let columns: Vec<Value> = columns.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    assert_eq!(columns.len(), 3);
    // A program that does not run for 100 ms has no values in a column, which then has no slice.
    let of = |column: &Value| column["slices"].as_array().and_then(|slices| slices.first()?["count"].as_u64());
    let added: Vec<_> = columns.iter().map(|column| of(column).unwrap_or(0)).collect();
    assert_ne!(added, [0; 3], "{columns:?}");
    let counts: Vec<_> = columns.iter().filter_map(|column| column["all"]["count"].as_u64()).collect();
    assert_eq!([counts[1] - counts[0], counts[2] - counts[1]], added[1..], "each value is in one column");
    let shown = place.well(&[&map[..], &["--count", "2"]].concat());
    assert!(shown.matches("a column: 100ms").count() == 2 && shown.contains('█'), "{shown}");
    place.well(&[&map[..], &["--once", "-o", picture.to_str().ok_or("a path")?]].concat());
    assert!(fs::read_to_string(&picture)?.contains("+100ms"), "the first column");
    assert_eq!((place.on(), fs::read_dir(place.path("run/sessions"))?.count()), (Vec::new(), 0));
    Ok(())
}

/// On a terminal, the numbers are redrawn in place, also after the window was made smaller.
#[test]
fn numbers_are_renewed_in_place() {
    if is_traced() {
        return;
    }
    let place = Place::new();
    let _shop = place.start("statistics::numbers_are_renewed_in_place");
    let run_dir = place.path("run");
    let variable = ("TRACEPOINT_RUN_DIR", run_dir.to_str().expect("a text"));
    let command = format!("echo before; {} stat 'shop:*' --interval 100ms", env!("CARGO_BIN_EXE_tracectl"));
    let stat = Tmux::run(&command, (80, 12), &[variable]);
    let count = |screen: &str| -> Option<u64> {
        screen.lines().find(|line| line.starts_with("shop:paid "))?.split_whitespace().nth(1)?.parse().ok()
    };
    let mut last = None;
    for size in [(80, 12), (80, 12), (80, 8), (100, 20)] {
        stat.resize(size.0, size.1);
        let screen = stat.until("larger numbers", |screen| count(screen) > last);
        assert!(screen.starts_with("before\nEVENT ") && screen.matches("EVENT").count() == 1, "{screen}");
        assert_eq!(screen.matches("shop:").count(), 2, "{screen}");
        last = count(&screen);
    }
    // Killing the terminal's process group would also end the shell.
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", stat.shell())).expect("its children");
    let process = Pid::from_raw(children.trim().parse().expect("one child")).expect("a process");
    kill_process(process, Signal::INT).expect("it runs");
    stat.until_ended(0);
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
    until(|| place.on().is_empty());
    place.well(&["status"]);
    assert_eq!(fs::read_dir(place.path("run/sessions"))?.count(), 0);

    let mut stopped = place.command(&["stat", "shop:*", "--interval", "50ms"]).stdout(Stdio::null()).spawn()?;
    until(|| {
        assert!(stopped.try_wait().is_ok_and(|status| status.is_none()), "it ended");
        !place.on().is_empty()
    });
    kill(&stopped, "INT")?;
    assert!(stopped.wait()?.success());
    assert_eq!((place.on(), fs::read_dir(place.path("run/sessions"))?.count()), (Vec::new(), 0));
    Ok(())
}
