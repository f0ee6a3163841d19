//! `tracectl view`, `verify` and `convert` on dt files of sessions, on damaged ones, and on other files.

use datatrace::{Layout, TraceOptions};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use tempfile::TempDir;
use tracepoint_session::sinks::DtSink;
use tracepoint_session::{Channel, Session};

tracepoint::define_trace! {
    provider = "mart";

    /// A customer paid.
    #[level(Info)]
    paid(cents: u64, customer: &str) { cents: u64 = cents, customer: str = customer }
}

/// Serialises the tests: a session records all events of the process.
static RECORDING: Mutex<()> = Mutex::new(());

/// A dt file of a session with 5000 events, of which it keeps this many packets.
fn dt_file(slots: u32) -> (TempDir, PathBuf) {
    let _alone = RECORDING.lock().unwrap();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("shop.dt");
    let session = Session::builder("shop").events("mart:*").channel(Channel::discard(1 << 20).packets(64)).in_memory();
    let session = session.sink(DtSink::create(&path, slots).unwrap()).start().unwrap();
    (0..5000).for_each(|n| tracepoint::trace!(paid(n, "Ada")));
    session.stop().unwrap();
    (place, path)
}

fn tracectl<A: AsRef<OsStr>>(arguments: &[A]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tracectl")).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn run(verb: &str, path: &Path) -> (Option<i32>, String, String) {
    let style: &[&str] = if verb == "view" { &["--style", "babeltrace"] } else { &[] };
    let arguments: Vec<_> = std::iter::once(&verb).chain(style).map(OsStr::new).chain([path.as_os_str()]).collect();
    tracectl(&arguments)
}

fn convert(path: &Path, out: &Path, options: &[&str]) -> (Option<i32>, String, String) {
    let mut arguments = vec![OsStr::new("convert"), path.as_os_str(), OsStr::new("-o"), out.as_os_str()];
    arguments.extend(options.iter().map(OsStr::new));
    tracectl(&arguments)
}

fn events(out: &str) -> Vec<&str> {
    out.lines().filter(|line| line.contains(" mart:paid: ")).collect()
}

#[test]
fn a_file_is_shown_like_a_directory() {
    let (place, path) = dt_file(4);
    let (code, out, err) = run("view", &path);
    assert_eq!(code, Some(0));
    assert!(err.contains("shop.dt: 4 packets of 1 stream in 4 slots; ") && err.lines().count() == 1, "{err}");
    let gone = 5000 - events(&out).len();
    assert!(err.contains(&format!("with {gone} events, overwritten or not written")), "{err}");
    assert!(out.lines().next().unwrap().contains(&format!("with {gone} events, in {}/channel0_0]", path.display())));
    let (code, verified, err) = run("verify", &path);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let sentence = format!("5000 fired = {} recorded + {gone} lost (", 5000 - gone);
    assert!(verified.starts_with(&sentence) && verified.contains("\nthe account balances: "), "{verified}");

    let directory = place.path().join("trace");
    let (code, summary, err) = convert(&path, &directory, &[]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(summary.contains("/trace: 4 packets of 1 stream, "), "{summary}");
    let peer = Command::new("babeltrace2").arg(&directory).output();
    let peer = peer.expect("babeltrace2 cannot be run: scripts/setup.sh installs it");
    assert_eq!(events(&String::from_utf8_lossy(&peer.stdout)), events(&out), "the same lines");
    let (code, shown, _) = run("view", &directory);
    assert_eq!((code, events(&shown)), (Some(0), events(&out)));
    assert_eq!(run("verify", &directory).0, Some(0));

    let smaller = place.path().join("smaller.dt");
    let (code, summary, err) = convert(&directory, &smaller, &["--dt-slots", "2", "--json"]);
    assert_eq!(code, Some(0), "{err}");
    let object: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!((&object["packets"], &object["dropped"], &object["streams"]), (&2.into(), &2.into(), &1.into()));
    assert_eq!(object["output"], smaller.to_str().unwrap());
    assert!(err.contains("the oldest 2 packets were left out"), "{err}");
    let (_, newest, _) = run("view", &smaller);
    let (newest, all) = (events(&newest), events(&out));
    let kept = newest.len();
    // The first line has no time difference to a previous line.
    assert_eq!(newest[1..], all[all.len() - kept + 1..]);
    assert_eq!(run("verify", &smaller).0, Some(0));
}

#[test]
fn a_damaged_slot_is_reported_and_the_others_are_shown() {
    let (place, path) = dt_file(4);
    let (_, whole, _) = run("view", &path);
    let mut bytes = fs::read(&path).unwrap();
    let slot = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
    bytes[20 + 2 * slot + 400] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let (code, out, err) = run("view", &path);
    assert_eq!(code, Some(1));
    assert!(err.contains("slot 2: its ") && err.contains("do not have the checksum"), "{err}");
    assert!(!events(&out).is_empty() && events(&out).len() < events(&whole).len());
    let (code, out, _) = run("verify", &path);
    assert!(code == Some(1) && out.contains("  FAILED  "), "{out}");
    let (code, _, err) = convert(&path, &place.path().join("trace"), &[]);
    assert!(code == Some(1) && err.contains("; not converted"), "{err}");
}

/// The description has two copies: damage in one has no effect, damage in both is an error.
#[test]
fn a_damaged_description_is_read_from_its_other_copy() {
    let (_place, path) = dt_file(2);
    let (_, whole, _) = run("view", &path);
    let bytes = fs::read(&path).unwrap();
    let slot = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
    let location = 20 + 2 * slot;
    let copies = |text: &str| -> Vec<usize> {
        let found = bytes[location..].windows(text.len()).enumerate().filter(|(_, window)| *window == text.as_bytes());
        found.map(|(at, _)| location + at).collect()
    };
    let declared = copies("name = \"mart:paid\"");
    assert_eq!(declared.len(), 2);
    for at in declared.iter().chain(&copies("\"complete\": true")) {
        let mut damaged = bytes.clone();
        damaged[*at] ^= 1;
        fs::write(&path, &damaged).unwrap();
        let (code, out, err) = run("view", &path);
        assert_eq!((code, out == whole), (Some(0), true), "byte {at}: {err}");
        assert_eq!(run("verify", &path).0, Some(0), "byte {at}");
    }
    let mut damaged = bytes;
    for at in declared {
        damaged[at] ^= 1;
    }
    fs::write(&path, &damaged).unwrap();
    for verb in ["view", "verify"] {
        let (code, out, err) = run(verb, &path);
        assert_eq!((code, out.as_str()), (Some(3), ""));
        assert!(err.contains("neither copy of `ctfm` has its checksum"), "{err}");
    }
}

#[test]
fn other_files_are_refused_with_a_hint() {
    let (place, path) = dt_file(2);
    let layout = Layout::new(64, 2);
    let plain = TraceOptions::new(layout).directory(place.path()).create("plain").unwrap();
    plain.trace1(7u32).unwrap();
    plain.close().unwrap();
    let plain = place.path().join("plain.dt");
    let cut = place.path().join("cut.dt");
    let bytes = fs::read(&path).unwrap();
    fs::write(&cut, &bytes[..500]).unwrap();
    let out = place.path().join("out");
    for file in [&plain, &cut] {
        for (code, said, err) in [run("view", file), run("verify", file), convert(file, &out, &[])] {
            assert_eq!((code, said.as_str()), (Some(3), ""));
            let mend = format!(
                "does not say what is in it, so it cannot be shown as a trace; `tracectl dt dump {}`",
                file.display()
            );
            assert!(err.contains(&mend), "{err}");
        }
    }
    assert!(!out.exists());
    let (code, _, err) = convert(&place.path().join("missing"), &out, &[]);
    assert_eq!(code, Some(3));
    assert!(err.contains("there is no such directory; name a directory that holds"), "{err}");
}

#[test]
fn nothing_is_overwritten() {
    let (place, path) = dt_file(2);
    let directory = place.path().join("trace");
    assert_eq!(convert(&path, &directory, &[]).0, Some(0));
    let (code, _, err) = convert(&path, &directory, &[]);
    assert!(code == Some(3) && err.contains("/trace is not empty (it holds"), "{err}");
    let (code, _, err) = convert(&directory, &path, &[]);
    assert!(code == Some(3) && err.contains("shop.dt: this file exists already; choose another name"), "{err}");
    let (code, _, err) = convert(&path, &place.path().join("new"), &["--dt-slots", "3"]);
    assert!(code == Some(3) && err.contains("options for slots, which apply to new dt files"), "{err}");
    let (code, _, err) = convert(&directory, &place.path().join("new.dt"), &["--slot-size", "64"]);
    assert!(code == Some(3) && err.contains("a slot of 64 bytes cannot hold packets of up to"), "{err}");
    fs::create_dir(place.path().join("two")).unwrap();
    for name in ["two/one", "two/other"] {
        assert_eq!(convert(&path, &place.path().join(name), &[]).0, Some(0));
    }
    let (code, _, err) = convert(&place.path().join("two"), &place.path().join("new.dt"), &[]);
    assert!(code == Some(3) && err.contains("there are 2 traces below it, and a dt file holds one"), "{err}");
    let (code, out, _) = tracectl(&["convert", "--help"]);
    assert!(code == Some(0) && out.contains("Examples:") && out.contains("Exit codes:"), "{out}");
}
