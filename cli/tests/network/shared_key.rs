//! `--key-file`: a sender and a collector that share a key, and pairs that do not.

use crate::datagrams::{finish, stored, trace_below};
use crate::running::{ANY, Collect, Running, TRACECTL};
use crate::{TRACED, is_traced, wait_for};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const EVENTS: u64 = 100;

/// Starts a collector.
fn collect(place: &Path, name: &str, options: &[&str]) -> Collect {
    let mut command = Command::new(TRACECTL);
    command.args(["collect", "--json", "--live", ANY, "--control", ANY, "--data", ANY]).args(options);
    command.arg("-o").arg(format!("stored-{name}")).current_dir(place);
    Collect::listening(&mut command, &place.join(name))
}

fn record(place: &Path, control: &str, options: &[&str]) -> Running {
    let mut command = Command::new(TRACECTL);
    command.args(["record", "-e", "network:*", "--sync-interval", "100ms", "--stream", control]).args(options);
    command.arg("--").arg(std::env::current_exe().unwrap());
    command.args(["shared_key::both_sides_must_have_the_key", "--exact", "--nocapture"]);
    command.env("TRACEPOINT_RUN_DIR", place.join("run")).env(TRACED, format!("{EVENTS} 100")).current_dir(place);
    Running::start(&mut command, &place.join("record"))
}

fn viewers_must_have_it_too(place: &Path, keyed: &Collect, open: &Collect) {
    let live = |collect: &Collect| format!("net://{}", collect.address("live"));
    let view = |url: &str, options: &[&str]| {
        let view = Command::new(TRACECTL).arg("view").arg(url).args(options).current_dir(place).output().unwrap();
        (view.status.success(), String::from_utf8_lossy(&view.stderr).into_owned())
    };
    let (with_key, without) = (live(keyed), live(open));
    for (url, options, message) in [
        (&with_key, &["--key-file", "key"][..], ""),
        (&without, &[], ""),
        (&with_key, &[], "it asks for a shared key"),
        (&with_key, &["--key-file", "other"], "its shared key is another one"),
        (&without, &["--key-file", "key"], "it does not ask for the shared key"),
    ] {
        let (is_done, told) = view(url, options);
        assert!(is_done == message.is_empty() && told.contains(message), "{url} {options:?}: {told}");
    }
    let stock = Command::new("babeltrace2").args(["-i", "lttng-live", &with_key]).output().unwrap();
    assert!(!stock.status.success(), "a stock viewer is refused: {}", String::from_utf8_lossy(&stock.stdout));
    let options = ["--key-file", "key", "--allow-stock-viewers"];
    let taking = collect(place, "taking", &options);
    let stock = Command::new("babeltrace2").args(["-i", "lttng-live", &live(&taking)]).output().unwrap();
    assert!(stock.status.success(), "{}", String::from_utf8_lossy(&stock.stderr));
}

#[test]
fn both_sides_must_have_the_key() {
    if is_traced() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    for (name, key) in [("key", "0123456789abcdef0123"), ("other", "0123456789abcdef4567")] {
        fs::write(place.path().join(name), key).unwrap();
        fs::set_permissions(place.path().join(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
    let keyed = collect(place.path(), "keyed", &["--key-file", "key"]);
    let open = collect(place.path(), "open", &[]);
    let [with_key, without] = [&keyed, &open].map(|it| it.address("control").to_owned());
    for options in [&["--key-file", "key"][..], &["--key-file", "key", "--stream-udp"]] {
        finish(record(place.path(), &with_key, options), place.path(), "with the key");
    }
    for (control, options, message) in [
        (&with_key, &[][..], "the collector asks for a shared key"),
        (&with_key, &["--key-file", "other"], "the shared key of the sender is not that of the collector"),
        (&without, &["--key-file", "key"], "the collector does not ask for the shared key"),
    ] {
        let mut record = record(place.path(), control, options);
        let status = wait_for(|| record.0.try_wait().unwrap());
        let told = fs::read_to_string(place.path().join("record.errors")).unwrap();
        assert!(!status.success() && told.contains(message), "{status}: {told}");
    }
    viewers_must_have_it_too(place.path(), &keyed, &open);
    assert!(keyed.end().success());
    let hosts = place.path().join("stored-keyed");
    let sessions: Vec<_> =
        fs::read_dir(fs::read_dir(&hosts).unwrap().next().unwrap().unwrap().path()).unwrap().collect();
    assert_eq!(sessions.len(), 2, "of those with the key");
    for session in sessions {
        let threads = stored(&trace_below(&session.unwrap().path()), "with the key");
        assert!(threads.iter().all(|numbers| numbers.len() as u64 == EVENTS));
    }
    assert!(
        !place.path().join("stored-open").read_dir().unwrap().any(|_| true),
        "nothing is streamed to another collector"
    );
}
