//! `tracectl bandwidth`: one cap for everything that the processes of a run directory stream.

use super::{BUSY, Outcome, Place, Traced, is_traced, program};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);

/// The cap, in bytes per second; then how much a stream may exceed it in the files, because complete packets are written at once.
const CAP: u64 = 300 << 10;
const PACKET: u64 = 64 << 10;

/// The bytes and the names of all files below a directory.
fn files(dir: &Path) -> (u64, Vec<std::path::PathBuf>) {
    let (mut bytes, mut found) = (0, Vec::new());
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.metadata() {
            Ok(meta) if meta.is_dir() => {
                let (more, below) = files(&entry.path());
                bytes += more;
                found.extend(below);
            }
            Ok(meta) => {
                bytes += meta.len();
                found.push(entry.path());
            }
            Err(_) => {}
        }
    }
    (bytes, found)
}

#[test]
fn the_cap_is_shown_and_changed() -> Outcome {
    let place = Place::new();
    let shown = |place: &Place| -> Result<Value, Box<dyn std::error::Error>> {
        let shown: Value = serde_json::from_str(&place.well(&["bandwidth", "--json"]))?;
        assert_eq!((&shown["sent"], &shown["rate"]), (&0.into(), &0.into()), "nothing is streamed");
        Ok(shown["max_bandwidth"].clone())
    };
    assert_eq!(shown(&place)?, Value::Null);
    let (code, out, err) = place.tracectl(&["bandwidth", "2M/s"]);
    assert!(code == Some(0) && out.is_empty() && err.contains("stream at most 2.00 MiB/s"), "{err}");
    assert_eq!(shown(&place)?, 2 << 20);
    assert!(place.well(&["bandwidth"]).contains(": 2.00 MiB/s\nin use: 0 B/s\n"));
    // Unsupported options are refused, and nothing is changed.
    let create = ["create", "s", "-e", "shop:*", "--wait", "--stream", "127.0.0.1:1"];
    let error = place.refused(&[&create[..], &["--max-bandwidth", "100"]].concat());
    assert!(error.contains("a `max_bandwidth` of at least"), "{error}");
    place.tracectl(&create);
    let error = place.refused(&["bandwidth", "1K"]);
    assert!(error.contains("`s` streams packets of") && error.contains("give at least"), "{error}");
    assert_eq!(shown(&place)?, 2 << 20);
    assert_eq!(place.tracectl(&["bandwidth", "off"]).0, Some(0));
    assert_eq!(shown(&place)?, Value::Null);
    assert_eq!(place.tracectl(&["bandwidth", "fast"]).0, Some(2));
    Ok(())
}

#[test]
fn a_cap_too_small_for_what_is_streamed_is_refused_on_both_sides() -> Outcome {
    let place = Place::new();
    let streams = ["-e", "shop:*", "--wait", "--stream", "127.0.0.1:1"];
    // Streaming with an existing cap.
    assert_eq!(place.tracectl(&["bandwidth", "1K"]).0, Some(0));
    for verb in [&["create", "s"][..], &["record", "--duration", "1s"]] {
        let error = place.refused(&[verb, &streams[..]].concat());
        assert!(error.contains("more than 10 s at a cap of the run directory of 1024 bytes per second"), "{error}");
    }
    // A cap on the streams of `record`.
    assert_eq!(place.tracectl(&["bandwidth", "off"]).0, Some(0));
    let record = [&["record", "--duration", "10m"], &streams[..]].concat();
    let _record = Traced(place.command(&record).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
    let began = Instant::now();
    while !place.well(&["status"]).contains("record-") {
        assert!(began.elapsed() < LONG, "the recording does not begin");
        sleep(Duration::from_millis(10));
    }
    let error = place.refused(&["bandwidth", "1K"]);
    assert!(error.contains("the session `record-") && error.contains("give at least"), "{error}");
    Ok(())
}

#[test]
fn processes_share_the_cap_of_the_run_directory_and_survive_each_other() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let stored = place.path("stored");
    let ports = ["--control", "127.0.0.1:0", "--data", "127.0.0.1:0", "--live", "127.0.0.1:0"];
    let collect = [&["collect", "--json", "-o", "stored"], &ports[..]].concat();
    let mut collect = Traced(place.command(&collect).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?);
    let mut line = String::new();
    BufReader::new(collect.0.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    let listening: Value = serde_json::from_str(&line)?;
    let port = |name: &str| Some(listening[name].as_str()?.rsplit_once(':')?.1.to_owned());
    let [control, data] = ["control", "data"].map(|name| port(name).expect("an address"));
    assert_eq!(place.tracectl(&["bandwidth", &CAP.to_string()]).0, Some(0));
    let to = format!("127.0.0.1:{control}:{data}");
    let test = "bandwidth::processes_share_the_cap_of_the_run_directory_and_survive_each_other";
    let busy = || {
        let mut command = program(test, 0);
        command.env(BUSY, "1");
        place.start_as(command)
    };
    let (mut killed, _others) = (busy(), [busy(), busy()]);
    let create = ["create", "s", "-e", "shop:*", "--ring-size", "256K", "--sync-interval", "100ms", "--stream", &to];
    let (code, _, err) = place.tracectl(&create);
    assert_eq!(code, Some(0), "{err}");
    let (code, _, err) = place.tracectl(&["start", "s"]);
    assert!(code == Some(0) || err.contains("started already"), "{err}");
    let began = Instant::now();
    let grows_by = |more: u64| {
        let first = files(&stored).0;
        while files(&stored).0 < first + more {
            assert!(began.elapsed() < LONG, "{} bytes", files(&stored).0);
            sleep(Duration::from_millis(10));
        }
    };
    grows_by(2 * PACKET);
    killed.0.kill()?;
    let (first, time) = (files(&stored).0, Instant::now());
    grows_by(4 * CAP);
    let (bytes, time) = (files(&stored).0 - first, time.elapsed());
    let ms = u64::try_from(time.as_millis())?;
    let most = CAP * ms * 105 / 100_000 + CAP / 10 + 3 * PACKET;
    assert!(bytes <= most, "{bytes} bytes in {time:?}");
    let (code, _, err) = place.tracectl(&["destroy", "s", "--purge", "--timeout", "30s"]);
    assert!(code.is_some_and(|code| code < 3), "{err}");
    let is_counted = || {
        let accounts = files(&stored).1.into_iter().filter(|path| path.ends_with("account.json"));
        accounts.filter_map(|path| fs::read_to_string(path).ok()).any(|text| text.contains("\"bandwidth\""))
    };
    while !is_counted() {
        assert!(began.elapsed() < LONG, "{:?}", files(&stored).1);
        sleep(Duration::from_millis(10));
    }
    Ok(())
}
