//! The states of threads in Perfetto's and Chrome's formats, and the time of spans: handmade traces whose states are known.

use super::common;
use super::decoder::decode;
use super::threads::{
    Kernel, OTHER, OUTER, OWN_END, PID, begin, end, enter, exit, fault, lost, of, shop, step, switch, switched_out,
    thread, traces, traces_of, wake,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use tracepoint_export::{
    Chrome, Exporter, Format, LossReport, Needs, Perfetto, Sources, Span, Summary, ThreadDetail, ThreadId, ThreadState,
};
use tracepoint_reader::{Damage, Event, Item};

/// The offset of the clock of the traces.
const EPOCH: i64 = 1_700_000_000_000_000_000;

/// A state: begin, end, cause, system call, waker.
type State = (i64, i64, String, Option<String>, Option<String>);

fn state(begin: i64, end: i64, cause: &str, call: Option<&str>, woken_by: Option<&str>) -> State {
    (begin, end, cause.to_owned(), call.map(str::to_owned), woken_by.map(str::to_owned))
}

/// The states of `shop`, by thread.
fn expected() -> BTreeMap<u64, Vec<State>> {
    let plain = |begin, end, cause| state(begin, end, cause, None, None);
    let first = vec![
        plain(100, 110, "ready"),
        plain(110, 210, "running"),
        state(210, 300, "lock", Some("futex"), Some("second [42]")),
        plain(300, 304, "ready"),
        plain(304, 310, "running"),
        plain(310, 330, "page fault"),
        plain(330, 331, "ready"),
        plain(331, 340, "running"),
        plain(340, 350, "ready"),
        plain(350, 360, "running"),
        plain(360, 370, "blocked"),
        plain(370, 500, "running"),
    ];
    let second = vec![
        plain(100, 115, "blocked"),
        plain(115, 230, "running"),
        state(230, 280, "disk", Some("fsync"), None),
        plain(280, 285, "ready"),
        plain(285, 300, "running"),
    ];
    let alone = vec![plain(100, 500, "blocked")];
    BTreeMap::from([(41, first), (42, second), (78, alone), (142, vec![plain(380, 500, "running")])])
}

fn named<'a>(of: &'a Value, name: &str) -> Option<&'a str> {
    of[name].as_str()
}

fn perfetto(items: &[Item], place: &Path) -> Option<Value> {
    let path = place.join("out.pftrace");
    let summary = common::export(items, Perfetto::new(File::create(&path).unwrap()));
    assert_eq!(summary.events, items.len() as u64);
    decode("read_perfetto.py", &path)
}

/// The states in a decoded Perfetto trace, by thread, in the order of times.
fn of_perfetto(decoded: &Value) -> BTreeMap<u64, Vec<State>> {
    let mut all: BTreeMap<u64, Vec<State>> = BTreeMap::new();
    let is_state = |slice: &&Value| slice["categories"] == json!(["thread state"]);
    for slice in decoded["slices"].as_array().unwrap().iter().filter(is_state) {
        let track = &decoded["tracks"][slice["track"].to_string()];
        let of = &decoded["tracks"][track["parent"].to_string()];
        assert!(track["name"] == "states" && track["is_thread"] == false && of["is_thread"] == true, "{track} {of}");
        assert_eq!(slice["depth"], 0, "states follow each other: {slice}");
        let time = |name: &str| slice[name].as_i64().unwrap() - EPOCH;
        let args = &slice["args"];
        let (call, woken_by) = (named(args, "call"), named(args, "woken_by"));
        let one = state(time("begin"), time("end"), slice["name"].as_str().unwrap(), call, woken_by);
        all.entry(of["tid"].as_u64().unwrap()).or_default().push(one);
    }
    all
}

#[test]
fn perfetto_has_the_states_of_each_thread_below_it() {
    let (place, items) = shop();
    let Some(decoded) = perfetto(&items, place.path()) else { return };
    assert_eq!(of_perfetto(&decoded), expected());
    let tracks: Vec<_> = decoded["tracks"].as_object().unwrap().values().collect();
    let thread = |tid: u32| -> Vec<_> { tracks.iter().filter(|track| track["tid"] == tid).collect() };
    // The threads of the process, of which the first one has spans, are in it, although the kernel's trace has a process of its own for them.
    for (tid, pid, name) in [(41, PID, "first"), (42, PID, "second"), (78, OTHER, "alone")] {
        let [track] = thread(tid)[..] else { panic!("{tracks:?}") };
        assert_eq!((&track["pid"], &track["thread"]), (&json!(pid), &json!(name)));
        let process = &decoded["tracks"][track["parent"].to_string()];
        assert_eq!((&process["pid"], process["process"] == "my proc"), (&json!(pid), pid == PID), "{process}");
    }
    let slices = decoded["slices"].as_array().unwrap();
    let outer = slices.iter().find(|slice| slice["name"] == "hand:outer").unwrap();
    assert_eq!(decoded["tracks"][outer["track"].to_string()]["tid"], 41);
    let summary = decoded["instants"].as_array().unwrap().iter().find(|one| one["name"] == "tracepoint export");
    assert_eq!(summary.unwrap()["args"]["thread_states"], expected().values().map(Vec::len).sum::<usize>());
}

#[test]
fn chrome_has_them_beside_the_thread() {
    const STATES: u64 = 1 << 22;
    let (_place, items) = shop();
    let mut out = Vec::new();
    common::export(&items, Chrome::new(&mut out));
    let json: Value = serde_json::from_slice(&out).unwrap();
    let elements = json["traceEvents"].as_array().unwrap();
    let mut all: BTreeMap<u64, Vec<State>> = BTreeMap::new();
    for element in elements.iter().filter(|element| element["cat"] == "thread state") {
        #[expect(clippy::cast_possible_truncation, reason = "small")]
        let time = |name: &str| (element[name].as_f64().unwrap() * 1000.0).round() as i64;
        let (begin, args) = (time("ts") + 100, &element["args"]);
        let (call, woken_by) = (named(args, "call"), named(args, "woken_by"));
        let one = state(begin, begin + time("dur"), element["name"].as_str().unwrap(), call, woken_by);
        assert_eq!(element["ph"], "X");
        all.entry(element["tid"].as_u64().unwrap() - STATES).or_default().push(one);
    }
    assert_eq!(all, expected());
    let names = |kind: &str, tid: u64| -> Vec<_> {
        let of = elements.iter().filter(|one| one["ph"] == "M" && one["name"] == kind && one["tid"] == tid);
        of.map(|one| (one["pid"].as_u64().unwrap(), &one["args"])).collect()
    };
    for (tid, pid, name) in [(41, PID, "first states"), (42, PID, "second states"), (78, OTHER, "alone states")] {
        assert_eq!(names("thread_name", tid + STATES), [(u64::from(pid), &json!({ "name": name }))]);
        let sorted = [tid, tid + STATES].map(|tid| names("thread_sort_index", tid));
        assert!(sorted.iter().all(|one| one[..] == [(u64::from(pid), &json!({ "sort_index": tid }))]), "{sorted:?}");
    }
    let processes: Vec<_> = elements.iter().filter(|one| one["name"] == "process_name").collect();
    assert!(processes.len() == 1 && processes[0]["pid"] == PID, "{processes:?}");
}

/// Ids that Linux does not have would be those of other tracks.
#[test]
fn states_that_cannot_be_drawn_are_not_counted() {
    let kernel = [
        of(u32::MAX, switch(100, u32::MAX, "blocked")),
        of(u32::MAX, switch(100, 41, "running")),
        of(PID, switch(100, 142, "running")),
        end(200),
    ];
    let (_place, items) = traces(&kernel, &[]);
    let mut out = Vec::new();
    let summary = common::export(&items, Chrome::new(&mut out));
    let json: Value = serde_json::from_slice(&out).unwrap();
    let states = json["traceEvents"].as_array().unwrap().iter().filter(|one| one["cat"] == "thread state");
    let threads: Vec<_> = states.map(|one| [one["pid"].as_u64().unwrap(), one["tid"].as_u64().unwrap()]).collect();
    assert_eq!(threads, [[1 << 22, 41 + (1 << 22)], [u64::from(PID), 142 + (1 << 22)]]);
    assert_eq!(summary.thread_states, 2);
}

/// States follow from all events, not only from the selected ones.
#[test]
fn states_do_not_depend_on_the_selected_events() {
    let (place, items) = shop();
    let path = place.path().join("out.pftrace");
    let mut exporter = Exporter::new(Perfetto::new(File::create(&path).unwrap()));
    let mut selected = 0;
    for item in &items {
        if matches!(item, Item::Event(event) if event.name() == "hand:step") {
            exporter.item(item).unwrap();
            selected += 1;
        } else {
            exporter.unselected(item).unwrap();
        }
    }
    assert_eq!((exporter.finish().unwrap().1.events, selected), (1, 1));
    let Some(decoded) = decode("read_perfetto.py", &path) else { return };
    assert_eq!(of_perfetto(&decoded), expected());
    assert_eq!(decoded["instants"].as_array().unwrap().len(), 2, "the event, and the summary");
}

/// A span: its name, its time by cause, and its waits as text.
type Divided = (String, Vec<(&'static str, u64)>, Vec<String>);

/// States by process and thread: begin, end, cause.
type States = BTreeMap<(u32, u64), Vec<(i64, i64, &'static str)>>;

/// The first thread of the process.
const FIRST: (u32, u64) = (PID, 41);

/// What a format of its own receives.
#[derive(Default)]
struct Received {
    states: States,
    spans: Vec<Divided>,
}

impl Format for Received {
    fn needs(&self) -> Needs {
        let mut needs = Needs::SLICES;
        needs.threads = ThreadDetail::Spans;
        needs
    }

    fn event(&mut self, _: &Event, _: ThreadId, _: &Sources) -> io::Result<()> {
        Ok(())
    }

    fn span(&mut self, span: &Span<'_>, _: &Sources) -> io::Result<()> {
        let time = span.time.unwrap();
        let parts = time.division.parts().map(|(cause, time)| (cause.name(), time)).collect();
        let waits = time.waits.iter().map(|wait| format!("{:?} {}", wait.call, wait.nanoseconds)).collect();
        self.spans.push((span.name.to_owned(), parts, waits));
        Ok(())
    }

    fn thread_state(&mut self, state: &ThreadState<'_>, sources: &Sources) -> io::Result<()> {
        let process = u32::try_from(sources.process_of(state.thread).pid.unwrap()).unwrap();
        let thread = (process, sources.thread(state.thread).tid.unwrap());
        let one = (state.begin_ns - EPOCH, state.end_ns - EPOCH, state.cause.name());
        self.states.entry(thread).or_default().push(one);
        Ok(())
    }

    fn loss(&mut self, _: &LossReport<'_>, _: &Sources) -> io::Result<()> {
        Ok(())
    }

    fn damage(&mut self, _: &Damage) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, _: &Summary, _: &Sources) -> io::Result<()> {
        Ok(())
    }
}

fn received(items: &[Item]) -> Received {
    let mut exporter = Exporter::new(Received::default());
    items.iter().try_for_each(|item| exporter.item(item)).unwrap();
    exporter.finish().unwrap().0
}

#[test]
fn spans_have_the_sums_of_the_states_in_them() {
    let (_place, items) = shop();
    let received = received(&items);
    let plain = |states: &[State]| states.iter().map(|one| (one.0, one.1, one.2.clone())).collect::<Vec<_>>();
    for ((_, tid), states) in &received.states {
        let states: Vec<_> = states.iter().map(|one| (one.0, one.1, one.2.to_owned())).collect();
        assert_eq!(states, plain(&expected()[tid]));
    }
    let sums = |begin: i64, end: i64| -> BTreeMap<&str, u64> {
        let mut sums = BTreeMap::new();
        for (from, to, cause) in &received.states[&FIRST] {
            let inside = (*to).min(end) - (*from).max(begin);
            *sums.entry(*cause).or_default() += u64::try_from(inside).unwrap_or(0);
        }
        sums.retain(|_, time| *time > 0);
        sums
    };
    for ((name, parts, waits), (expected, begin, end)) in
        received.spans.iter().zip([("hand:inner", 203, 307), ("hand:outer", 200, 400)])
    {
        assert_eq!((name.as_str(), parts.iter().copied().collect()), (expected, sums(begin, end)));
        assert_eq!(waits[0], "Some(\"futex\") 90");
    }
    assert_eq!(received.spans.len(), 2);
}

#[test]
fn states_of_a_damaged_trace_follow_each_other() {
    let mut random = 1_u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut all = 0;
    for _ in 0..50 {
        let mut kernel = Vec::new();
        let mut time = 100;
        for _ in 0..400 {
            time += next(3);
            let (tid, other) = (41 + next(3) as u32, 41 + next(3) as u32);
            kernel.push(match next(10) {
                0 => thread(time, PID, tid, "x", ["R", "S", "D", "", "\u{fffd}"][next(5) as usize]),
                1..4 => switch(time, tid, ["running", "ready", "blocked", ""][next(4) as usize]),
                4 => switched_out(time, other, "", next(600)),
                5 => wake(time, tid, other),
                6 => enter(time, tid, next(300) as u16),
                7 => exit(time, tid),
                8 => fault(time, tid),
                _ => end(time),
            });
        }
        kernel.insert(200, lost());
        let (_place, mut items) = traces(&kernel, &[]);
        for item in &mut items {
            if let Item::Event(event) = item
                && next(20) == 0
            {
                event.time_ns -= next(100).cast_signed();
            }
        }
        let states = received(&items).states;
        all += states.len();
        for states in states.values() {
            assert!(states.iter().all(|(begin, end, _)| begin < end), "{states:?}");
            assert!(states.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{states:?}");
        }
    }
    assert!(all >= 50, "{all} threads");
}

fn states(recordings: &[&[Kernel]], user: &[super::threads::User]) -> States {
    received(&traces_of(recordings, user).1).states
}

/// What is held back when the id of a thread is used again belongs to the thread that had it.
#[test]
fn a_thread_with_the_id_of_one_that_has_ended_has_states_of_its_own() {
    let kernel = [
        thread(100, PID, 41, "old", "R"),
        switch(110, 41, "running"),
        // The cause of this one is not final.
        switch(120, 41, "blocked"),
        switch(130, 41, "running"),
        fault(140, 43),
        exit(150, 41),
        // No event says that it is another thread, except for its process.
        of(OTHER, switch(300, 41, "running")),
        of(OTHER, switch(320, 41, "blocked")),
        of(OTHER, switch(350, 41, "running")),
        end(400),
    ];
    let old = vec![(100, 110, "ready"), (110, 120, "running"), (120, 130, "blocked"), (130, 150, "running")];
    let new = vec![(300, 320, "running"), (320, 350, "blocked"), (350, 400, "running")];
    let expected = BTreeMap::from([((PID, 41), old.clone()), ((OTHER, 41), new)]);
    assert_eq!(states(&[&kernel], &[]), expected);
    // The process of the new one has a trace, of the old one not.
    let foreign: Vec<_> = kernel[..6].iter().cloned().map(|event| of(OTHER, event)).collect();
    let own = [step(250, 41)];
    let of_new = states(&[&[&foreign[..], &[switch(300, 41, "blocked"), end(400)]].concat()], &own);
    assert_eq!(of_new, BTreeMap::from([((OTHER, 41), old.clone()), ((PID, 41), vec![(300, 400, "blocked")])]));
    // In the same process, the recording begins with it a second time.
    let again = [thread(250, PID, 41, "new", "S"), switch(300, 41, "running"), end(310)];
    let both = [&old[..], &[(250, 300, "blocked"), (300, 310, "running")]].concat();
    assert_eq!(states(&[&[&kernel[..6], &again].concat()], &[]), BTreeMap::from([(FIRST, both)]));
}

#[test]
fn a_span_of_a_thread_that_has_ended_does_not_have_the_time_of_the_next_one() {
    let kernel =
        [switch(100, 41, "running"), of(OTHER, switch(200, 41, "running")), of(OTHER, switch(300, 41, "blocked"))];
    let (_place, items) = traces(&kernel, &[begin(110, 41, OUTER, 1, 0)]);
    assert_eq!(received(&items).spans, [("hand:outer".to_owned(), vec![("unknown", 190)], Vec::new())]);
}

#[test]
fn the_last_state_of_a_thread_that_has_ended_is_passed() {
    let kernel = [
        thread(100, PID, 41, "x", "R"),
        switch(110, 41, "running"),
        exit(120, 41),
        of(OTHER, switch(200, 51, "running")),
    ];
    let (_place, items) = traces(&kernel, &[]);
    let mut exporter = Exporter::new(Received::default());
    items.iter().try_for_each(|item| exporter.item(item)).unwrap();
    assert_eq!(exporter.format_mut().states[&FIRST], [(100, 110, "ready"), (110, 120, "running")]);
}

#[test]
fn threads_that_are_found_dead_have_no_states() {
    let kernel =
        [thread(100, PID, 41, "x", "Z"), thread(100, PID, 43, "y", "X"), thread(100, PID, 44, "z", "T"), end(200)];
    assert_eq!(states(&[&kernel], &[]), BTreeMap::from([((PID, 44), vec![(100, 200, "blocked")])]));
}

/// The providers of a process may have the names of the kernel's.
#[test]
fn events_of_a_process_are_not_the_kernels() {
    let kernel = [thread(100, PID, 41, "x", "R"), switch(110, 41, "running"), switch(200, 41, "blocked"), end(300)];
    let expected = states(&[&kernel], &[]);
    assert_eq!(expected[&FIRST].last(), Some(&(200, 300, "blocked")));
    let own_end = |time| (time, 42, OWN_END, Vec::new());
    assert_eq!(states(&[&kernel], &[own_end(150), own_end(250)]), expected);
}

#[test]
fn recordings_of_one_host_do_not_end_each_other() {
    let first = [
        thread(100, PID, 41, "x", "R"),
        thread(100, PID, 43, "y", "S"),
        switch(110, 41, "running"),
        lost(),
        switch(160, 41, "running"),
        end(200),
    ];
    let second = [
        thread(105, PID, 43, "y", "S"),
        thread(105, PID, 142, "z", "S"),
        switch(120, 142, "running"),
        switch(250, 43, "running"),
        end(300),
    ];
    let expected = [
        // Only the first one has it.
        (41, vec![(100, 110, "ready"), (160, 200, "running")]),
        (43, vec![(100, 250, "blocked"), (250, 300, "running")]),
        (142, vec![(105, 120, "blocked"), (120, 300, "running")]),
    ];
    let expected: States = expected.into_iter().map(|(tid, states)| ((PID, tid), states)).collect();
    assert_eq!(states(&[&first, &second], &[]), expected);
    assert_eq!(states(&[&second, &first], &[]), expected);
}

#[test]
fn a_thread_whose_cpu_is_not_known_after_a_loss_has_not_ended() {
    let kernel = [
        thread(100, PID, 41, "x", "R"),
        switch(110, 41, "running"),
        lost(),
        // It moved to another CPU meanwhile.
        thread(200, OTHER, 78, "z", "S"),
        of(OTHER, switch(260, 51, "running")),
        switch(300, 41, "blocked"),
        end(400),
    ];
    let all = states(&[&kernel], &[step(250, 41)]);
    assert_eq!(all[&FIRST], [(100, 110, "ready"), (250, 300, "running"), (300, 400, "blocked")]);
}

/// Waits whose cause is not final are held back only up to a limit.
#[test]
fn states_are_passed_before_their_cause_is_final_if_there_are_many() {
    let mut kernel = vec![thread(100, PID, 41, "x", "R"), switch(100, 41, "running")];
    kernel.extend((1..10_000).flat_map(|n| [switch(100 + 2 * n, 41, "blocked"), switch(101 + 2 * n, 41, "running")]));
    let (_place, items) = traces(&kernel, &[]);
    let mut exporter = Exporter::new(Received::default());
    let mut most = 0;
    for (count, item) in items.iter().enumerate() {
        exporter.item(item).unwrap();
        let passed = exporter.format_mut().states.get(&FIRST).map_or(0, Vec::len);
        most = most.max(count.saturating_sub(passed));
    }
    // The waits, and the times between them.
    assert!(most < 2 * 1100, "{most}");
    assert_eq!(exporter.finish().unwrap().0.states[&FIRST].len(), 2 * 9_999);
}
