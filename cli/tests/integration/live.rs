//! `tracectl view` of live sessions of stock programs: a program traced by LTTng-UST, `lttng-sessiond`, `lttng-relayd`.
//!
//! `lttng-sessiond` meets no other: root's runs in a mount namespace with a `/run` of its own, another user's has a home of its own.

use crate::skip::skip;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A traced program: events with the numbers `FROM` to `TO`, with a pause after each in microseconds.
const PROGRAM: &str = r#"
#include <lttng/tracef.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
    for (int n = atoi(argv[1]); n < atoi(argv[2]); n++) {
        lttng_ust_tracef("n=%d", n);
        if (atoi(argv[3])) usleep(atoi(argv[3]));
    }
    return 0;
}
"#;

/// Runs before each script: starts the daemons, the relay daemon at free ports, `$CONTROL`, `$DATA` and `$LIVE`.
const PREAMBLE: &str = r#"
set -e
if [ "$(id -u)" = 0 ]; then mount -t tmpfs none /run; fi
mkdir home
export HOME=$PWD/home LTTNG_HOME=$PWD/home LTTNG_UST_REGISTER_TIMEOUT=30000
lttng-sessiond --no-kernel --daemonize --pidfile="$HOME/pid"
trap 'kill "$(cat "$HOME/pid")" $relayd' EXIT
lttng-relayd -o "$PWD/stored" --control-port=tcp://127.0.0.1:$CONTROL --data-port=tcp://127.0.0.1:$DATA \
    --live-port=tcp://127.0.0.1:$LIVE 2>relayd & relayd=$!
relay=net://127.0.0.1:$LIVE
# Waits until a command succeeds.
await() {
    for _ in $(seq 600); do
        if "$@"; then return 0; fi
        sleep 0.1
    done
    echo "$* does not come true" >&2
    exit 1
}
has_lines() { [ "$(wc -l <"$1")" -ge "$2" ]; }
await eval '"$TRACECTL" view $relay 2>answer'
"#;

/// A place with the traced program; `None` where tests may be skipped and LTTng is not there.
fn place() -> Option<TempDir> {
    let works = |program: &str, arguments: &[&str]| {
        let silent = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
        silent.is_ok_and(|status| status.success())
    };
    for program in ["lttng", "lttng-sessiond", "lttng-relayd", "babeltrace2"] {
        if !works(program, &["--version"]) {
            skip(&format!("there is no {program}"), "Run scripts/setup.sh");
            return None;
        }
    }
    if is_root() && !works("unshare", &["--mount", "mount", "-t", "tmpfs", "none", "/run"]) {
        skip("`unshare --mount` cannot mount a tmpfs", "Run as another user, or with CAP_SYS_ADMIN");
        return None;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    std::fs::write(place.path().join("app.c"), PROGRAM).unwrap();
    let mut compile = Command::new("cc");
    compile.current_dir(place.path()).args(["-o", "app", "app.c", "-llttng-ust", "-ldl"]);
    if !compile.status().is_ok_and(|status| status.success()) {
        skip("a program with LTTng-UST cannot be built", "Run scripts/setup.sh, which installs liblttng-ust-dev");
        return None;
    }
    Some(place)
}

fn is_root() -> bool {
    nix::unistd::getuid().is_root()
}

/// Three ports at which nothing listens.
fn ports() -> [u16; 3] {
    let sockets = [(); 3].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    sockets.map(|socket| socket.local_addr().unwrap().port())
}

fn run(place: &Path, script: &str) {
    let mut command = Command::new(if is_root() { "unshare" } else { "bash" });
    command.args(if is_root() { &["--mount", "bash"][..] } else { &[] }).args(["-c", &[PREAMBLE, script].concat()]);
    let [control, data, live] = ports().map(|port| port.to_string());
    command.envs([("CONTROL", control), ("DATA", data), ("LIVE", live)]);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    command.env("HOST", host.trim()).env("TRACECTL", env!("CARGO_BIN_EXE_tracectl"));
    let output = command.current_dir(place).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stdout));
}

/// Events of three programs, one of which starts in between; the view is attached before the first.
#[test]
fn a_live_session_is_shown_as_it_is_stored() {
    let Some(place) = place() else { return };
    run(
        place.path(),
        "lttng create shop --live=100000 --ctrl-url=tcp://127.0.0.1:$CONTROL --data-url=tcp://127.0.0.1:$DATA
         lttng enable-channel -u c --subbuf-size=65536 --num-subbuf=16
         lttng enable-event -u -c c 'lttng_ust_tracef:*'
         lttng start
         $TRACECTL view $relay >list
         $TRACECTL view --style babeltrace $relay/host/$HOST/shop >shown 2>errors & view=$!
         await eval '$TRACECTL view $relay | grep -q \"1 viewer\"'
         ./app 0 200 5000 & first=$!
         ./app 200 3200 0
         await has_lines shown 3000
         ./app 3200 3300 1000
         wait $first
         await has_lines shown 3300
         cp shown live
         lttng stop
         lttng destroy
         wait $view
         babeltrace2 stored >stored.txt",
    );
    let file = |name: &str| std::fs::read_to_string(place.path().join(name)).unwrap();
    assert!(file("list").contains("/shop (live, every 100ms, "), "{}", file("list"));
    assert_eq!(file("errors"), "");
    assert_eq!(file("stored.txt").lines().count(), 3300);
    assert!(file("shown") == file("stored.txt"), "the lines of babeltrace2, of the stored trace");
    assert!(file("live") == file("shown"), "all of them before the session ended");
}
