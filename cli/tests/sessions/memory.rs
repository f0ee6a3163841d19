//! Recording takes the memory that a process can spare: one under a limit is not killed.

use super::{BALLAST, BUSY, Outcome, Place, Traced, is_traced, program, skip};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A cgroup with a limit on memory.
struct Cgroup(PathBuf);

impl Cgroup {
    /// Makes one for this test; `None` where neither version of cgroups allows it.
    fn new(test: &str, limit: u64) -> Option<Self> {
        let name = format!("tracepoint-{}-{test}", std::process::id());
        let own = |version: &str| {
            let cgroups = fs::read_to_string("/proc/self/cgroup").ok()?;
            let line = cgroups.lines().find(|line| line.contains(version))?;
            Some(line.rsplit(':').next()?.trim_start_matches('/').to_owned())
        };
        let v1 = || Some((Path::new("/sys/fs/cgroup/memory").join(own(":memory:")?), "memory.limit_in_bytes"));
        // A cgroup of version 2 that has processes cannot have children with a limit: the root can.
        let v2 = || Some((PathBuf::from("/sys/fs/cgroup"), "memory.max"));
        for (parent, file) in [v1(), v2()].into_iter().flatten() {
            let cgroup = Self(parent.join(&name));
            if fs::create_dir(&cgroup.0).is_ok() && fs::write(cgroup.0.join(file), limit.to_string()).is_ok() {
                return Some(cgroup);
            }
        }
        skip::skip("no cgroup with a limit on memory can be made", "run it as root, with cgroups mounted");
        None
    }

    /// The command, in the cgroup from its first instruction on.
    fn run(&self, command: &Command) -> Command {
        let mut inside = Command::new("sh");
        inside.arg("-c").arg("echo $$ > \"$0/cgroup.procs\" && exec \"$@\"").arg(&self.0);
        inside.arg(command.get_program()).args(command.get_args());
        inside.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
        inside
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The last process may not have left it yet.
        let began = Instant::now();
        while fs::remove_dir(&self.0).is_err() && began.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn is_running(traced: &mut Traced) -> bool {
    traced.0.try_wait().is_ok_and(|status| status.is_none())
}

#[test]
fn a_process_under_a_limit_on_memory_is_recorded_and_lives_on() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let Some(cgroup) = Cgroup::new("limited", 16 << 20) else { return Ok(()) };
    let place = Place::new();
    let mut command = program("memory::a_process_under_a_limit_on_memory_is_recorded_and_lives_on", 0);
    command.env(BALLAST, "5");
    let mut traced = place.start_as(cgroup.run(&command));
    let pid = traced.0.id().to_string();
    let report = place.well(&["record", "-e", "shop:*", "-p", &pid, "--duration", "1s", "-o", "out", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&report)?;
    assert!(report["counters"]["recorded"].as_u64() > Some(100), "{report}");
    assert_eq!(report["counters"]["lost"], serde_json::json!({}), "{report}");
    assert!(is_running(&mut traced), "it was killed");
    Ok(())
}

/// Rings of a size that is set are not made smaller: what does not fit is lost, and the reason is reported.
#[test]
fn memory_that_cannot_be_had_is_a_loss_with_a_reason() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let Some(cgroup) = Cgroup::new("scarce", 32 << 20) else { return Ok(()) };
    let place = Place::new();
    let mut command = program("memory::memory_that_cannot_be_had_is_a_loss_with_a_reason", 0);
    command.env(BALLAST, "5").env(BUSY, "8");
    let mut traced = place.start_as(cgroup.run(&command));
    let pid = traced.0.id().to_string();
    let arguments = ["record", "-e", "shop:paid", "-p", &pid, "--duration", "2s", "-o", "out", "--json"];
    let (code, out, err) = place.tracectl(&[&arguments[..], &["--ring-size", "4M", "--fail-on-loss"]].concat());
    let report: serde_json::Value = serde_json::from_str(&out)?;
    assert!(report["counters"]["recorded"].as_u64() > Some(100), "{report}");
    assert!(report["counters"]["lost"]["no_ring"].as_u64() > Some(100), "{report}");
    assert_ne!(code, Some(0), "{err}");
    assert!(is_running(&mut traced), "it was killed");
    Ok(())
}
