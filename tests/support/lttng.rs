//! Programs traced by LTTng-UST, and an `lttng-sessiond` for them.
//!
//! Each `lttng-sessiond` is isolated from others: root's runs in a mount namespace with its own `/run`, another user's has its own home.

use crate::skip::skip;
use std::os::unix::fs::MetadataExt;
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

/// Runs before each script: starts the daemon. A script that starts a relay daemon sets `relayd` to its id.
const PREAMBLE: &str = r#"
set -e
if [ "$(id -u)" = 0 ]; then mount -t tmpfs none /run; fi
mkdir home
export HOME=$PWD/home LTTNG_HOME=$PWD/home LTTNG_UST_REGISTER_TIMEOUT=30000
lttng-sessiond --no-kernel --daemonize --pidfile="$HOME/pid"
trap 'kill "$(cat "$HOME/pid")" $relayd' EXIT
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
"#;

/// A directory with the traced program, `app`.
pub(crate) struct Lttng {
    directory: TempDir,
}

impl Lttng {
    /// Builds the program; `None` if tests may be skipped and LTTng, or one of these additional programs, is missing.
    pub(crate) fn new(further: &[&str]) -> Option<Self> {
        let works = |program: &str, arguments: &[&str]| {
            let silent = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
            silent.is_ok_and(|status| status.success())
        };
        for program in ["lttng", "lttng-sessiond", "babeltrace2"].iter().chain(further) {
            if !works(program, &["--version"]) {
                skip(&format!("there is no {program}"), "Run scripts/setup.sh --ci");
                return None;
            }
        }
        if is_root() && !works("unshare", &["--mount", "mount", "-t", "tmpfs", "none", "/run"]) {
            skip("`unshare --mount` cannot mount a tmpfs", "Run as another user, or with CAP_SYS_ADMIN");
            return None;
        }
        let directory = TempDir::new_in("/dev/shm").expect("a directory");
        std::fs::write(directory.path().join("app.c"), PROGRAM).expect("a file");
        let mut compile = Command::new("cc");
        compile.current_dir(directory.path()).args(["-o", "app", "app.c", "-llttng-ust", "-ldl"]);
        if !compile.status().is_ok_and(|status| status.success()) {
            skip(
                "a program with LTTng-UST cannot be built",
                "Run scripts/setup.sh --ci, which installs liblttng-ust-dev",
            );
            return None;
        }
        Some(Self { directory })
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The contents of a file that a script has written.
    pub(crate) fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).expect("a file")
    }

    /// Runs a bash script in the directory, next to the daemon. `$HOST` is the name of this machine; `variables` are set in addition.
    pub(crate) fn run(&self, variables: &[(&str, String)], script: &str) {
        let mut command = Command::new(if is_root() { "unshare" } else { "bash" });
        command.args(if is_root() { &["--mount", "bash"][..] } else { &[] }).args(["-c", &[PREAMBLE, script].concat()]);
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a host name");
        command.env("HOST", host.trim()).envs(variables.iter().map(|(name, value)| (name, value)));
        let output = command.current_dir(self.path()).output().expect("bash runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stdout));
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}
