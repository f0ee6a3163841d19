//! `tracectl report` in a browser: headless Chromium loads the page, and the result of its script is compared with the account.

use crate::hand::{PREAMBLE, UUID};
use crate::skip::skip;
use crate::threads;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Barrier, Mutex};
use tempfile::TempDir;
use tracepoint::span;
use tracepoint_session::{Channel, Session};

tracepoint::define_trace! {
    provider = "page";

    span request(id: u64, path: &str) { id, path }
    span query(text: &str) { text }
    stored(id: u64, size: u32) { id, size }
    tick(n: u64) { n }
}

/// Would run if a field became markup.
const HOSTILE: &str = "</script><script>document.title='run'</script><img src=x onerror=alert(1)>";
const REQUESTS: u64 = 120;

/// Serialises the tests: a session records all events of the process.
static RECORDING: Mutex<()> = Mutex::new(());

/// Requests with queries on three threads, and a burst that overwrites most of its thread's ring.
fn trace() -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("trace");
    let _alone = RECORDING.lock().unwrap();
    let channel = Channel::overwrite(256 << 10);
    let session = Session::builder("page").events("page:*").channel(channel).in_memory().start().unwrap();
    let (done, kept) = (Barrier::new(4), Barrier::new(4));
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (done, kept) = (&done, &kept);
            scope.spawn(move || {
                (thread * REQUESTS / 3..(thread + 1) * REQUESTS / 3).for_each(request);
                done.wait();
                // The ring outlives its thread.
                kept.wait();
            });
        }
        done.wait();
        (0..300_000).for_each(|n| tracepoint::trace!(tick(n)));
        session.snapshot(&directory).unwrap();
        kept.wait();
    });
    session.stop().unwrap();
    (place, directory)
}

fn request(id: u64) {
    let request = span!(request(id, if id == 17 { HOSTILE } else { "/cart" }));
    let query = format!("select {id}{}", if id % 60 == 7 { " from needle" } else { "" });
    drop(span!(parent: &request, query(&query)));
    tracepoint::trace!(stored(id, 64 * u32::try_from(id).unwrap()));
}

fn tracectl(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tracectl")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json_of(arguments: &[&str]) -> Value {
    serde_json::from_str(&tracectl(arguments)).unwrap()
}

/// The document after its scripts have run; `None` if there is no browser.
fn document(page: &Path, hash: &str) -> Option<String> {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,900", "--virtual-time-budget=5000"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--dump-dom", &format!("file://{}{hash}", page.display())])
        .output();
    let Ok(output) = output else {
        skip("there is no `chromium`", "scripts/setup.sh --ci installs it");
        return None;
    };
    let document = String::from_utf8(output.stdout).unwrap();
    assert!(attribute(&document, "ready") == "true", "{}\n{document}", String::from_utf8_lossy(&output.stderr));
    assert!(!document.contains("data-error="), "{}", attribute(&document, "error"));
    Some(document)
}

/// The first attribute `data-NAME`.
fn attribute<'d>(document: &'d str, name: &str) -> &'d str {
    let begin = format!("data-{name}=\"");
    document.split_once(&begin).and_then(|(_, rest)| rest.split_once('"')).map_or("", |(value, _)| value)
}

fn number(document: &str, name: &str) -> u64 {
    attribute(document, name).parse().unwrap_or_else(|_| panic!("{name}: {}", attribute(document, name)))
}

/// The data embedded in the page.
fn data(page: &str) -> Value {
    let (_, data) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn a_browser_shows_what_the_account_has() {
    let (place, directory) = trace();
    let directory = directory.to_str().unwrap();
    let page = place.path().join("report.html");
    let written = json_of(&["report", "--json", directory, "-o", page.to_str().unwrap()]);
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(text.len() < 16 << 20 && written["bytes"] == text.len(), "{written}");
    assert!(tracectl(&["report", directory, "-o", "-"]).starts_with("<!"));
    // The only URL is SVG's namespace, which loads nothing.
    assert_eq!(text.matches("://").count(), 1);

    let stat = json_of(&["stat", "--json", directory]);
    let lost = stat["lost"].as_u64().unwrap();
    assert_eq!((&written["events"], &written["lost"]), (&stat["count"], &stat["lost"]));
    assert!(lost > 100_000, "{lost}");
    let Some(whole) = document(&page, "") else { return };
    assert_eq!(number(&whole, "events"), stat["count"].as_u64().unwrap());
    assert_eq!(number(&whole, "recorded"), 5 * REQUESTS + 300_000);
    assert_eq!(number(&whole, "events") + lost, number(&whole, "recorded"));
    assert_eq!(attribute(&whole, "lost"), format!("{{&quot;overwritten&quot;:{lost}}}"));
    for (field, count) in [("request_end duration_ns", REQUESTS), ("stored size", REQUESTS)] {
        let figure = whole.split_once(&format!("data-field=\"page:{field}\"")).unwrap().1;
        assert_eq!(number(figure, "count"), count, "{field}");
    }
    assert!(number(&whole, "drawn_losses") > 0 && whole.contains("balances ("), "losses are on the timeline");
    // Text from the traced program never becomes markup.
    assert!(!whole.contains("<title>run</title>") && !whole.contains("<img"), "markup of the program");

    let inside = data(&text);
    assert_eq!(inside["spans"]["rows"].as_array().unwrap().len() as u64, 2 * REQUESTS, "few spans are all in it");
    assert_eq!(inside["spans"]["all"], 2 * REQUESTS);
    assert!(inside["events"]["rows"].as_array().unwrap().len() <= 1 << 14);
    assert_eq!(inside["tracks"].as_array().unwrap().len(), 4);
    let of_tracks: u64 =
        inside["tracks"].as_array().unwrap().iter().map(|track| track["count"].as_u64().unwrap()).sum();
    assert_eq!(of_tracks, stat["count"].as_u64().unwrap());
    for kind in inside["kinds"].as_array().unwrap() {
        let history: u64 = kind["history"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).sum();
        assert_eq!(kind["count"], history, "{kind}");
        let named = stat["events"].as_array().unwrap().iter().find(|line| line["name"] == kind["name"]).unwrap();
        assert_eq!(kind["count"], named["count"]);
    }

    // The state in the address: a search, and the times of the first thread's requests.
    let spans = inside["spans"]["rows"].as_array().unwrap();
    let named = |span: &Value| inside["names"][usize::try_from(span["name"].as_u64().unwrap()).unwrap()].clone();
    let first = spans.iter().find(|span| named(span) == "page:request").unwrap();
    let (from, to) = (first["at"].as_u64().unwrap(), first["at"].as_u64().unwrap() + 2_000_000);
    let expected = spans.iter().filter(|span| {
        let at = span["at"].as_u64().unwrap();
        at + span["length"].as_u64().unwrap() >= from && at <= to
    });
    let zoomed = document(&page, &format!("#from={from}&to={to}&q=NEEDLE&theme=dark")).unwrap();
    assert_eq!((number(&zoomed, "from"), number(&zoomed, "to")), (from, to));
    assert_eq!(number(&zoomed, "drawn_spans"), expected.count() as u64);
    // The span of the query, and its first event.
    let (ends, begins) = (2, inside["events"]["rows"].as_array().unwrap().iter());
    let begins = begins.filter(|event| event["text"].as_str().unwrap().contains("needle")).count() as u64;
    assert_eq!(number(&zoomed, "found"), ends + begins);
    assert_eq!(attribute(&zoomed, "theme"), "dark");
}

#[test]
fn the_page_is_moved_by_keys() {
    let (place, directory) = trace();
    let page = place.path().join("report.html");
    tracectl(&["report", directory.to_str().unwrap(), "-e", "page:re*", "-o", page.to_str().unwrap()]);
    let text = std::fs::read_to_string(&page).unwrap();
    let keys = "<script type=\"module\">
        const press = key => document.getElementById('tracks').dispatchEvent(new KeyboardEvent('keydown', { key }));
        const keep = name => document.documentElement.setAttribute(`data-${name}`, `${document.body.dataset.from} ${document.body.dataset.to}`);
        keep('k0'); press('+'); keep('k1'); press('ArrowRight'); keep('k2'); press('Home'); keep('k3');
        press('n'); press('n');
        document.documentElement.setAttribute('data-selected', document.getElementById('selected').textContent);
        document.querySelector('#kinds thead button').click();
        document.documentElement.setAttribute('data-first', document.querySelector('#kinds td').textContent);
    </script></body>";
    std::fs::write(&page, text.replace("</body>", keys)).unwrap();
    let Some(moved) = document(&page, "") else { return };
    let times = |name| -> Vec<f64> { attribute(&moved, name).split(' ').map(|time| time.parse().unwrap()).collect() };
    let (all, near, right) = (times("k0"), times("k1"), times("k2"));
    let shown = |times: &[f64]| times[1] - times[0];
    assert!((shown(&near) * 2.0 - shown(&all)).abs() < 3.0, "{all:?} {near:?}");
    assert!((right[0] - near[0] - shown(&near) / 4.0).abs() < 3.0, "{near:?} {right:?}");
    assert_eq!(times("k3"), all);
    assert!(attribute(&moved, "selected").contains("page:request at "), "{}", attribute(&moved, "selected"));
    assert_eq!(attribute(&moved, "first"), "page:request_begin", "sorted by name");
    assert!(moved.contains("-e 'page:re*'"), "the selection is named");
}

/// The page lists some of the failed checks, and the number of all of them.
#[test]
fn failed_checks_are_counted_beyond_those_that_are_named() {
    let (place, directory) = trace();
    let account = directory.join(".account/account.json");
    let mut altered: Value = serde_json::from_slice(&std::fs::read(&account).unwrap()).unwrap();
    for channel in altered["channels"].as_array_mut().unwrap() {
        for part in ["events", "streams"] {
            let counts = channel[part].as_array_mut().unwrap().iter_mut().flat_map(|one| one.as_object_mut().unwrap());
            counts.filter(|(_, count)| count.as_u64() > Some(1000)).for_each(|(_, count)| *count = 1.into());
            let counts = channel[part].as_array_mut().unwrap().iter_mut().flat_map(|one| one.as_object_mut().unwrap());
            let numbers =
                counts.filter(|(name, _)| ["fired", "recorded", "events", "packets"].contains(&name.as_str()));
            numbers.for_each(|(_, count)| *count = (count.as_u64().unwrap_or(0) + 7).into());
        }
    }
    std::fs::write(&account, altered.to_string()).unwrap();
    let directory = directory.to_str().unwrap();
    let verified = Command::new(env!("CARGO_BIN_EXE_tracectl")).args(["verify", "--json", directory]).output().unwrap();
    let verified: Value = serde_json::from_slice(&verified.stdout).unwrap();
    let checks = verified["checks"].as_array().unwrap();
    let failed = 2 * checks.iter().filter(|check| check["pass"] == false).count();
    assert!(failed > 20, "{failed} of {}", checks.len());

    // The same trace twice.
    let [copy, page] = ["copy", "report.html"].map(|name| place.path().join(name));
    assert!(Command::new("cp").arg("-r").arg(directory).arg(&copy).status().unwrap().success());
    tracectl(&["report", directory, copy.to_str().unwrap(), "-o", page.to_str().unwrap()]);
    let of_page = &data(&std::fs::read_to_string(&page).unwrap())["account"];
    assert_eq!((&of_page["failed"], &of_page["checks"]), (&Value::from(failed), &Value::from(2 * checks.len())));
    assert_eq!(of_page["failures"].as_array().unwrap().len(), 20);
    let Some(shown) = document(&page, "") else { return };
    let further = format!("{} further failures", failed - 20);
    assert!(
        shown.contains(&format!("{failed} of {} checks fail", 2 * checks.len())) && shown.contains(&further),
        "{shown}"
    );
}

#[test]
fn a_browser_shows_the_states_of_threads_and_how_a_span_divides() {
    let (place, _) = threads::shop();
    let [waits, process, page] = ["waits", "process", "report.html"].map(|name| place.path().join(name));
    let [waits, process, page] = [&waits, &process, &page].map(|path| path.to_str().unwrap());
    tracectl(&["report", waits, process, "-e", "hand:*", "-o", page]);
    let text = std::fs::read_to_string(page).unwrap();
    let inside = data(&text);
    assert_eq!((&inside["count"], &inside["states"]["all"]), (&Value::from(5), &Value::from(19)));
    let tracks = inside["tracks"].as_array().unwrap();
    let names: Vec<_> = tracks.iter().map(|track| track["name"].as_str().unwrap()).collect();
    // The second one has no event of its own, and neither has the process of the third one.
    assert_eq!(names, ["thread 41", "second 42", "thread 142", "alone 78"]);
    let pids: Vec<_> = tracks.iter().map(|track| &inside["processes"][index(&track["process"])]["pid"]).collect();
    assert_eq!(pids, [4242, 4242, 77, 77]);

    let why = json_of(&["why", "--json", waits, process]);
    let keys = "<script type=\"module\">
        const press = key => document.getElementById('tracks').dispatchEvent(new KeyboardEvent('keydown', { key }));
        const keep = name => document.documentElement.setAttribute(`data-${name}`, document.getElementById('division').textContent);
        document.documentElement.setAttribute('data-all', document.body.dataset.drawn_states);
        press('n'); keep('outer');
        document.documentElement.setAttribute('data-parts', document.getElementById('division').dataset.division);
        press('n'); keep('inner');
        const state = name => { press(name); return document.getElementById('selected').textContent; };
        document.documentElement.setAttribute('data-states', [state('s'), state('s'), state('S')].join('|')); press('Escape');
        document.documentElement.setAttribute('data-none', document.getElementById('division').hidden);
    </script></body>";
    std::fs::write(page, text.replace("</body>", keys)).unwrap();
    let Some(shown) = document(Path::new(page), "") else { return };
    assert_eq!(number(&shown, "all"), 19, "the states are on the timeline");
    let parts: Value = serde_json::from_str(&attribute(&shown, "parts").replace("&quot;", "\"")).unwrap();
    assert_eq!(parts.to_string().replace("page fault", "page_fault"), why["spans"][0]["division"].to_string());
    let outer = attribute(&shown, "outer");
    assert!(outer.contains("running65 ns32.5 %") && outer.contains("page fault20 ns10.0 %"), "{outer}");
    let lock = "lock90 ns86.5 %in futex, ended by second [42], 1 time, 90 ns";
    assert!(attribute(&shown, "inner").contains(lock), "{}", attribute(&shown, "inner"));
    let states: Vec<_> = attribute(&shown, "states").split('|').collect();
    let [state, next, before] = states[..] else { panic!("{states:?}") };
    assert!(
        state.starts_with("lock in futex, ended by second [42] at ") && next.starts_with("disk in fsync at "),
        "{states:?}"
    );
    assert_eq!(before, state, "the previous one");
    assert_eq!(attribute(&shown, "none"), "true");
    assert!(shown.contains("all 19 states"), "the legend");

    // A trace without them has no lane and no division.
    let page = place.path().join("none.html");
    tracectl(&["report", process, "-o", page.to_str().unwrap()]);
    let inside = data(&std::fs::read_to_string(&page).unwrap());
    assert!(inside["states"]["all"] == 0 && inside["spans"]["rows"][0].get("division").is_none(), "{inside}");
    let Some(shown) = document(&page, "") else { return };
    assert_eq!(attribute(&shown, "drawn_states"), "0");
    assert!(shown.contains("id=\"legend\" class=\"note\"></p>"), "a legend without states");
}

/// Threads that share a track would have overlapping states.
#[test]
fn threads_without_a_track_of_their_own_have_no_states() {
    let threads = 0..300;
    let found = |tid| threads::thread(100, threads::PID, 1000 + tid, "x", "S");
    let kernel: Vec<_> = threads.clone().map(found).chain([threads::end(300)]).collect();
    let user: Vec<_> = threads.map(|n| threads::step(200, 1000 + n)).collect();
    // In the second case, only the end of the recording has a track.
    for (selected, tracks, own, without) in [("hand:*", 256, 0..255, 45), ("perf:end", 255, 1..255, 46)] {
        let (place, _) = threads::traces(&kernel, &user);
        let [waits, process, page] = ["waits", "process", "report.html"].map(|name| place.path().join(name));
        let paths = [&waits, &process, &page].map(|path| path.to_str().unwrap());
        tracectl(&["report", paths[0], paths[1], "-e", selected, "-o", paths[2]]);
        let inside = data(&std::fs::read_to_string(&page).unwrap());
        let states = &inside["states"];
        assert_eq!(
            (inside["tracks"].as_array().unwrap().len(), &states["without_track"]),
            (tracks, &Value::from(without))
        );
        let mut of_tracks: Vec<_> = states["rows"].as_array().unwrap().iter().map(|row| index(&row[0])).collect();
        of_tracks.sort_unstable();
        assert_eq!(of_tracks, own.collect::<Vec<_>>());
        let Some(shown) = document(&page, "") else { return };
        assert!(shown.contains(&format!("{without} further threads have no track of their own")), "{shown}");
    }
}

fn index(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

/// A trace of one event with 300 fields.
fn wide(directory: &Path) {
    let fields = (0..300).fold(String::new(), |fields, n| fields + &format!("u8 f{n}; "));
    let metadata = format!(
        "{PREAMBLE}
stream {{ id = 0;
  packet.context := struct {{ ts64 timestamp_begin; ts64 timestamp_end; u64 content_size; u64 packet_size; }};
  event.header := struct {{ u16 id; ts64 timestamp; }};
}};
event {{ name = \"hand:wide\"; id = 7; stream_id = 0; fields := struct {{ {fields}}}; }};
"
    );
    let event = [&7_u16.to_le_bytes()[..], &1_u64.to_le_bytes(), &[1; 300]].concat();
    let header = [&0xC1FC_1FC1_u32.to_le_bytes()[..], &UUID, &0_u32.to_le_bytes(), &0_u64.to_le_bytes()].concat();
    let bits = (header.len() as u64 + 32 + event.len() as u64) * 8;
    let context = [1, 1, bits, bits].map(u64::to_le_bytes).concat();
    std::fs::create_dir(directory).unwrap();
    std::fs::write(directory.join("metadata"), metadata).unwrap();
    std::fs::write(directory.join("stream"), [header, context, event].concat()).unwrap();
}

#[test]
fn a_field_without_a_histogram_counts_once_for_all_processes() {
    let place = tempfile::tempdir().unwrap();
    let [one, other, page] = ["one", "other", "report.html"].map(|name| place.path().join(name));
    wide(&one);
    wide(&other);
    tracectl(&["report", one.to_str().unwrap(), other.to_str().unwrap(), "-o", page.to_str().unwrap()]);
    let data = data(&std::fs::read_to_string(&page).unwrap());
    assert_eq!((&data["count"], data["histograms"].as_array().unwrap().len()), (&Value::from(2), 256));
    assert_eq!(data["further_fields"], 300 - 256);
}
