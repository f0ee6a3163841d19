//! What threads do, in the pictures: exports and pages of a trace of `record --waits` show what `why` says.

use super::super::{Outcome, Place};
use super::can_record;
use super::waits::{HOLDER, RECORD, is_traced};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

/// A time by cause, in nanoseconds. Causes have the names of texts.
type Sums = BTreeMap<String, u64>;

/// A span that is divided: its name, its thread, begin, end, and times by cause.
struct Divided {
    thread: u64,
    begin: u64,
    end: u64,
    sums: Sums,
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// The name of a cause in texts.
fn name(cause: &str) -> String {
    if cause == "thread" { "another thread".to_owned() } else { cause.replace('_', " ") }
}

/// The spans of `why` that were recorded all the time.
fn divided(place: &Place) -> Result<Vec<Divided>, Box<dyn std::error::Error>> {
    let reasons: Value = serde_json::from_str(&place.tracectl(&["why", "--json", "-n", "10000", "out"]).1)?;
    let mut all = Vec::new();
    for span in reasons["spans"].as_array().ok_or("no spans")? {
        let parts = span["division"].as_object().ok_or("no division")?;
        if span["is_open"] == true || parts.contains_key("unknown") {
            continue;
        }
        let (begin, took) = (number(&span["begin_ns"]), number(&span["nanoseconds"]));
        let sums = parts.iter().map(|(cause, time)| (name(cause), number(time))).collect();
        let thread = span["thread"].as_str().ok_or("no thread")?.parse()?;
        all.push(Divided { thread, begin, end: begin + took, sums });
    }
    assert!(all.len() >= 12, "{} spans", all.len());
    Ok(all)
}

/// The clocks of the kernel and of the process differ by less than a microsecond.
fn is_near(one: &Sums, other: &Sums) -> bool {
    let of = |sums: &Sums, cause: &str| sums.get(cause).copied().unwrap_or_default();
    one.keys().chain(other.keys()).all(|cause| of(one, cause).abs_diff(of(other, cause)) <= 2_000)
}

/// Records the program of `waits`, which runs as the test with this name.
fn record(test: &str) -> Place {
    let place = Place::new();
    let traced = place.start(test);
    let (code, out, err) = place.tracectl(&[&RECORD[..], &["-p", &traced.0.id().to_string()]].concat());
    assert_eq!(code, Some(0), "{out}{err}");
    place
}

#[test]
fn states_in_an_export_are_those_of_why() -> Outcome {
    if is_traced() || !can_record() {
        return Ok(());
    }
    let place = record("kernel::states::states_in_an_export_are_those_of_why");
    // The kernel's events are not drawn, and the states still follow from them.
    let (code, _, err) = place.tracectl(&["export", "--chrome", "out.json", "-e", "waits:*", "out"]);
    assert_eq!(code, Some(0), "{err}");
    let json: Value = serde_json::from_slice(&fs::read(place.path("out.json"))?)?;
    let elements = json["traceEvents"].as_array().ok_or("no elements")?;
    assert!(elements.iter().all(|one| one["cat"] != "perf" && one["cat"] != "sched"));
    let origin = number(&json["otherData"]["origin_ns"]);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time")]
    let time = |us: &Value| (us.as_f64().unwrap_or_default() * 1000.0).round() as u64;
    let mut states: BTreeMap<u64, Vec<(u64, u64, &Value)>> = BTreeMap::new();
    for element in elements.iter().filter(|element| element["cat"] == "thread state") {
        let begin = origin + time(&element["ts"]);
        let of_thread = states.entry(number(&element["tid"]) - (1 << 22)).or_default();
        of_thread.push((begin, begin + time(&element["dur"]), element));
    }
    for states in states.values() {
        assert!(states.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{states:?}");
    }
    let all = states.values().map(Vec::len).sum::<usize>();
    assert_eq!(json["otherData"]["thread_states"], all);
    for span in divided(&place)? {
        let mut sums = Sums::new();
        for (begin, end, element) in states.get(&span.thread).ok_or("no states of a thread")? {
            let inside = (*end).min(span.end).saturating_sub((*begin).max(span.begin));
            *sums.entry(element["name"].as_str().ok_or("no name")?.to_owned()).or_default() += inside;
        }
        assert!(is_near(&sums, &span.sums), "{sums:?} {:?}", span.sums);
    }
    let locks = states.values().flatten().filter(|(.., element)| element["name"] == "lock");
    let is_of_holder = |state: &Value| {
        state["args"]["woken_by"].as_str().is_some_and(|name| name.starts_with(HOLDER))
            && state["args"]["call"] == "futex"
    };
    assert!(locks.filter(|(.., element)| is_of_holder(element)).count() >= 3, "the thread with the lock is named");
    Ok(())
}

/// The sums of all spans by cause, also of those that had not ended.
fn sums_of_all(place: &Place) -> Result<Sums, Box<dyn std::error::Error>> {
    let reasons: Value = serde_json::from_str(&place.tracectl(&["why", "--json", "--by", "cause", "out"]).1)?;
    let mut sums = Sums::new();
    for group in reasons["groups"].as_object().ok_or("no groups")?.values() {
        for (cause, time) in group["division"].as_object().ok_or("no division")? {
            *sums.entry(name(cause)).or_default() += number(time);
        }
    }
    Ok(sums)
}

#[test]
fn waits_in_a_flame_graph_are_those_of_why() -> Outcome {
    if is_traced() || !can_record() {
        return Ok(());
    }
    let place = record("kernel::states::waits_in_a_flame_graph_are_those_of_why");
    let export = ["export", "--folded", "-", "--stacks", "waits", "--span", "waits:operation"];
    let (code, folded, err) = place.tracectl(&[&export[..], &["-e", "waits:*", "out"]].concat());
    assert_eq!(code, Some(0), "{err}");
    let mut sums = Sums::new();
    for line in folded.lines() {
        let (frames, time) = line.rsplit_once(' ').ok_or("no number")?;
        let frames: Vec<_> = frames.split(';').collect();
        let [_, "waits:operation", cause, call @ ..] = &frames[..] else { return Err(line.into()) };
        assert!(*cause != "lock" || call == ["futex"], "{line}");
        *sums.entry((*cause).to_owned()).or_default() += time.parse::<u64>()?;
    }
    let mut expected = sums_of_all(&place)?;
    let spans = divided(&place)?.len() as u64;
    // They are not off the CPU.
    expected.retain(|cause, _| !["running", "unknown"].contains(&cause.as_str()));
    assert!(expected["lock"] > 60_000_000 && expected["sleep"] > 60_000_000, "{expected:?}");
    for (cause, time) in &expected {
        let found = sums.get(cause).copied().unwrap_or_default();
        assert!(found.abs_diff(*time) <= 2_000 * (spans + 1), "{cause}: {found} {time}: {folded}");
    }
    let (code, _, err) = place.tracectl(&["export", "--flame", "all.svg", "--stacks", "waits", "out"]);
    assert_eq!(code, Some(0), "{err}");
    let picture = fs::read_to_string(place.path("all.svg"))?;
    assert!(picture.contains("waits:operation (") && picture.contains(" ns, ") && picture.contains("[no span]"));
    Ok(())
}

#[test]
fn a_page_divides_spans_like_why() -> Outcome {
    if is_traced() || !can_record() {
        return Ok(());
    }
    let place = record("kernel::states::a_page_divides_spans_like_why");
    let (code, _, err) = place.tracectl(&["report", "out", "-e", "waits:*", "-o", "page.html"]);
    assert_eq!(code, Some(0), "{err}");
    let page = fs::read_to_string(place.path("page.html"))?;
    let (_, data) = page.split_once("<script type=\"application/json\" id=\"data\">").ok_or("no data")?;
    let data: Value = serde_json::from_str(data.split_once("</script>").ok_or("no end")?.0)?;
    let begin: u64 = data["begin_ns"].as_str().ok_or("no begin")?.parse()?;
    let rows = data["spans"]["rows"].as_array().ok_or("no spans")?;
    let cause =
        |index: &Value| data["states"]["causes"][number(index) as usize].as_str().unwrap_or_default().to_owned();
    for span in divided(&place)? {
        let is_its =
            |row: &&Value| begin + number(&row["at"]) == span.begin && number(&row["length"]) == span.end - span.begin;
        let row = rows.iter().find(is_its).ok_or("a span is missing")?;
        let parts = row["division"].as_array().ok_or("no division")?;
        let sums: Sums = parts.iter().map(|part| (cause(&part[0]), number(&part[1]))).collect();
        assert_eq!(sums, span.sums);
    }
    let states = data["states"]["rows"].as_array().ok_or("no states")?;
    assert!(states.len() > 100 && data["states"]["all"] == states.len(), "{}", states.len());
    // All of them are on tracks of the process, which is not listed a second time for the kernel's trace.
    let processes = data["processes"].as_array().ok_or("no processes")?;
    assert!(processes.len() == 1 && processes[0]["name"].as_str().is_some_and(|name| name.starts_with("sessions")));
    Ok(())
}
