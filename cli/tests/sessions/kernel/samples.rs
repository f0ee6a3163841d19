//! `record --samples`: a program with frame pointers that runs known functions, and measures its processor time. `tests/fixtures/sampled` says what it
//! does.

use super::super::{Outcome, Place};
use super::{as_nobody, can_record, events};
use crate::fixture::Build;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Samples per second.
const RATE: u64 = 999;
const RECORD: [&str; 9] = ["record", "-e", "sampled:*", "--samples", "999/s", "--duration", "2s", "-o", "out"];

fn sampled() -> PathBuf {
    Build::dev().frame_pointers().binary("sampled")
}

/// The samples of each stack of functions.
fn folded(place: &Place, more: &[&str]) -> Result<BTreeMap<String, u64>, Box<dyn std::error::Error>> {
    let (code, out, err) = place.tracectl(&[&["export", "--folded", "-", "out"], more].concat());
    assert_eq!(code, Some(0), "{err}");
    let stack = |line: &str| Some((line.rsplit_once(' ')?.0.to_owned(), line.rsplit_once(' ')?.1.parse().ok()?));
    Ok(out.lines().map(stack).collect::<Option<_>>().ok_or(out)?)
}

/// The number of samples with a function in their stack.
fn with(folded: &BTreeMap<String, u64>, function: &str) -> u64 {
    folded.iter().filter(|(stack, _)| stack.contains(function)).map(|(_, count)| count).sum()
}

/// Requires that the counts of each event of a kernel trace balance, and returns the number of samples.
fn balanced(trace: &Value) -> Option<u64> {
    let counts = trace["events"].as_array()?;
    for event in counts {
        let [fired, recorded, lost] =
            ["fired", "recorded", "lost"].map(|name| event[name].as_u64().unwrap_or_default());
        // Some kernels do not store wake-ups by timers of an idle CPU (docs/kernel.md).
        assert!(fired == recorded + lost && (lost == 0 || event["name"] == "sched:sched_waking"), "{event}");
    }
    counts.iter().find(|event| event["name"] == "perf:sample")?["recorded"].as_u64()
}

/// Requires that samples are of the functions that the program runs, and as many as its processor time says.
fn compare(place: &Place, samples: u64) -> Outcome {
    let folded = folded(place, &[])?;
    assert_eq!(folded.values().sum::<u64>(), samples, "{folded:#?}");
    assert!(folded.keys().all(|stack| stack.starts_with("sampled;")), "{folded:#?}");
    let [hot, other] = ["sampled::run;sampled::hot_part", "sampled::run;sampled::other_part"].map(|f| with(&folded, f));
    assert!((hot + other) * 10 >= samples * 8, "{hot} and {other} of {samples}: {folded:#?}");
    // Two thirds of the time, except for turns that the recording cuts.
    assert!((50..85).contains(&(hot * 100 / (hot + other))), "{hot} and {other}");

    let events = events(place, &["out"]);
    let of = |name: &'static str| events.iter().filter(move |event| event["name"] == name);
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    // The program maps its code again after each turn, on another thread than the first one.
    let is_its = |event: &&Value| event["fields"]["path"].as_str().is_some_and(|path| path.ends_with("/sampled"));
    let (at_begin, later): (Vec<_>, Vec<_>) =
        of("perf:mmap").filter(is_its).partition(|event| event["tid"] == event["pid"]);
    let build_id = |event: &&Value| event["fields"]["build_id"].as_str().map(str::to_owned);
    let begin = at_begin.first().ok_or("the code at the begin is missing")?;
    let known = build_id(begin).filter(|id| id.len() == 40).ok_or("no build id")?;
    assert!(later.iter().all(|event| build_id(event).as_ref() == Some(&known)), "{later:#?}");

    let ran = |event: &Value| (number(&event["time_ns"]), number(&event["fields"]["nanoseconds"]));
    let all: Vec<_> = of("sampled:ran").map(ran).filter(|(time, _)| *time > number(&begin["time_ns"])).collect();
    let [(first, before), .., (last, after)] = all[..] else { return Err("too few turns".into()) };
    assert!(later.len() + 2 >= all.len(), "{} mappings in {} turns", later.len(), all.len());
    let between = of("perf:sample").filter(|event| (first..last).contains(&number(&event["time_ns"]))).count() as u64;
    let expected = (after - before) * RATE / 1_000_000_000;
    assert!((expected / 2..=expected * 3 / 2).contains(&between), "{between} samples in place of {expected}");
    Ok(())
}

#[test]
fn samples_are_of_the_functions_that_a_program_runs() -> Outcome {
    if !can_record() {
        return Ok(());
    }
    let place = Place::new();
    let traced = place.start_as(Command::new(sampled()));
    let pid = traced.0.id().to_string();
    let (code, out, err) = place.tracectl(&[&RECORD[..], &["--waits", "-p", &pid, "--json"]].concat());
    assert!(code == Some(0) && !err.contains("--samples"), "{out}{err}");
    let report: Value = serde_json::from_str(&out)?;
    let samples = balanced(&report["waits"]).ok_or("no samples")?;
    place.verifies("out");
    let output = Command::new("babeltrace2").arg(place.path("out")).output()?;
    let viewed = String::from_utf8(output.stdout)?.lines().filter(|line| line.contains(" perf:sample: ")).count();
    assert_eq!(viewed as u64, samples);
    compare(&place, samples)?;

    let all = folded(&place, &[])?;
    let in_spans = folded(&place, &["--span", "sampled:hot"])?;
    // The end of the last span may be missing: the threads are recorded a little longer than the events of the process.
    assert!(with(&in_spans, "::other_part") * 20 < with(&in_spans, "::hot_part"), "{in_spans:#?}");
    assert!(with(&in_spans, "::hot_part") * 10 >= with(&all, "::hot_part") * 9, "{in_spans:#?}");
    // Also without the events before it.
    let later = folded(&place, &["--since", "+1s", "-e", "perf:sample"])?;
    assert!(with(&later, "::hot_part") > samples / 5 && with(&later, "[unknown]") * 10 < samples, "{later:#?}");

    let reasons: Value = serde_json::from_str(&place.tracectl(&["why", "--json", "--span", "sampled:hot", "out"]).1)?;
    let spans = reasons["spans"].as_array().ok_or("no spans")?;
    for span in spans.iter().filter(|span| span["samples"].as_u64() > Some(10)) {
        let functions = span["functions"].as_array().ok_or("no functions")?;
        let is_hot = |function: &&Value| function["function"].as_str() == Some("sampled::hot_part");
        let hot = functions.iter().find(is_hot).map(|function| function["with_callees"].as_u64());
        assert!(hot.flatten().map(|count| count * 10) >= span["samples"].as_u64().map(|all| all * 8), "{span:#}");
    }
    assert!(spans.iter().any(|span| span["samples"].as_u64() > Some(10)), "{reasons:#}");
    let text = place.tracectl(&["why", "out", "--span", "sampled:hot", "-n", "1"]).1;
    assert!(text.contains("in sampled::hot_part, "), "{text}");
    let picture = place.path("picture.svg");
    place.tracectl(&["export", "--flame", "picture.svg", "out"]);
    assert!(fs::read_to_string(picture)?.contains("samples, "));
    Ok(())
}

#[test]
fn without_rights_own_programs_are_sampled_outside_of_the_kernel() -> Outcome {
    if !can_record() {
        return Ok(());
    }
    let place = Place::new();
    let _traced = place.start_as(as_nobody(&place, &sampled())?);
    let output = as_nobody(&place, env!("CARGO_BIN_EXE_tracectl").as_ref())?.args(RECORD).arg("--json").output()?;
    let (out, err) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    assert!(output.status.success() && err.contains("nothing while they are in the kernel"), "{out}{err}");
    let report: Value = serde_json::from_str(&out)?;
    let samples = balanced(&report["samples"]).ok_or("no samples")?;
    place.verifies("out");
    compare(&place, samples)?;
    assert_eq!(with(&folded(&place, &[])?, "[kernel]"), 0);
    Ok(())
}

#[test]
fn a_rate_that_the_kernel_does_not_allow_is_refused() -> Outcome {
    let place = Place::new();
    let max: u64 = fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate")?.trim().parse()?;
    let (code, _, err) = place.tracectl(&["record", "--samples", &format!("{}/s", max + 1)]);
    assert!(code == Some(2) && err.contains("kernel.perf_event_max_sample_rate"), "{err}");
    let (code, _, err) = place.tracectl(&["record", "--samples", "0/s"]);
    assert!(code == Some(2) && err.contains("`99/s`"), "{err}");
    Ok(())
}
