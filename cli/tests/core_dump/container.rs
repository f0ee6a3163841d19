//! A crash in separate namespaces, as in a container: the helper finds the run directory at the path seen by the process.

use super::{HOW, Outcome, Place, is_traced, viewed};
use std::env;
use std::fs;
use std::process::Command;

/// In new mount and PID namespaces: a separate root directory, with a run directory that exists nowhere else.
const OUTSIDE: &str = r#"
set -e
mount --make-rprivate /
mount --rbind / "$JAIL"
mount -t tmpfs none "$JAIL/mnt"
mount -t proc proc "$JAIL/proc"
exec chroot "$JAIL" /bin/sh -ec "$INSIDE"
"#;
const INSIDE: &str = r#"
cd /mnt
"$TRACECTL" create flight -e 'crash:*' --ring-size 64K --wait --start
"$TRACECTL" trigger -s flight OnAnyCoreDump snapshot --output /mnt/out
"$PROGRAM" --exact "$TEST" --quiet --nocapture --test-threads=1 < /dev/null || true
tries=0
until "$TRACECTL" triggers --json | grep -q '"path"' || [ $tries -ge 600 ]; do
    sleep 0.2
    tries=$((tries + 1))
done
"$TRACECTL" triggers
cp -r /mnt/out "$RESULT"
"#;

#[test]
fn a_crash_in_a_container_leaves_a_snapshot_there() -> Outcome {
    const TEST: &str = "container::a_crash_in_a_container_leaves_a_snapshot_there";
    if is_traced() {
        return Ok(());
    }
    let place = Place::new(None)?;
    let _installed = place.install()?;
    fs::create_dir(place.path("jail"))?;
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--pid", "--fork", "--kill-child", "/bin/sh", "-c", OUTSIDE]);
    unshare.env("JAIL", place.path("jail")).env("INSIDE", INSIDE).env("TRACECTL", place.path("tracectl"));
    unshare.env("PROGRAM", env::current_exe()?).env("TEST", TEST).env(HOW, "abort");
    unshare.env("RESULT", place.path("result")).env("TRACEPOINT_RUN_DIR", "/mnt/run");
    let output = unshare.output()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "this test needs root and namespaces: {text}");
    let snapshots: Vec<_> = fs::read_dir(place.path("result"))?.collect::<Result<_, _>>()?;
    let [snapshot] = &snapshots[..] else { panic!("{snapshots:?}: {text}") };
    // With one process, the snapshot is its trace.
    let trace = snapshot.path();
    let events = viewed(&trace)?;
    let last = events.lines().last().ok_or("no events")?;
    assert!(last.contains("crash:last") && last.contains("how = \"abort\""), "{last}");
    let metadata = String::from_utf8_lossy(&fs::read(trace.join("metadata"))?).into_owned();
    assert!(metadata.contains("core_signal = 6;"), "{metadata}");
    assert!(!place.path("own/out").exists(), "the session outside has none");
    Ok(())
}
