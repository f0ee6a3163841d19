//! Recording takes only memory that a process can spare: a process with a memory limit is not killed.

use super::{BALLAST, BUSY, Outcome, Place, Traced, is_traced, kill, program, skip, until};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A cgroup with a limit on memory.
struct Cgroup(PathBuf);

impl Cgroup {
    /// Creates one for this test; `None` if neither version of cgroups allows it.
    fn new(test: &str, limit: u64) -> Option<Self> {
        let name = format!("tracepoint-{}-{test}", std::process::id());
        let own = |version: &str| {
            let cgroups = fs::read_to_string("/proc/self/cgroup").ok()?;
            let line = cgroups.lines().find(|line| line.contains(version))?;
            Some(line.rsplit(':').next()?.trim_start_matches('/').to_owned())
        };
        let v1 = || Some((Path::new("/sys/fs/cgroup/memory").join(own(":memory:")?), "memory.limit_in_bytes"));
        // In cgroup version 2, a cgroup with processes cannot have children with a limit; the root can.
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

/// Rings with a configured size are not made smaller: events that do not fit are lost, and the reason is reported.
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

/// Memory of a process.
struct Taken {
    /// Private memory and rings, in KiB: `RssAnon` and `RssShmem`. The pages of its code belong to the kernel's page cache.
    kib: u64,
    files: BTreeSet<String>,
}

impl Taken {
    fn by(pid: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let number = |name| -> Option<u64> {
            status.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB")?.parse().ok())
        };
        let kib = number("RssAnon:").ok_or("no RssAnon")? + number("RssShmem:").ok_or("no RssShmem")?;
        let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
        let files = maps.lines().filter_map(|line| Some(line[line.find('/')?..].to_owned())).collect();
        Ok(Self { kib, files })
    }
}

/// The memory cost of attaching to a process that records nothing, after the rings of its threads were released: two rings, and little else.
#[test]
fn a_process_that_is_attached_and_idle_takes_little_more_than_two_rings() -> Outcome {
    const MAX_KIB: u64 = 2_450;
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    for is_named in [false, true] {
        let mut command = program("memory::a_process_that_is_attached_and_idle_takes_little_more_than_two_rings", 0);
        command.env(BUSY, "0");
        let traced = place.start_as(command);
        let pid = traced.0.id().to_string();
        let before = Taken::by(&pid)?;
        let mut record = None;
        if is_named {
            place.well(&["create", "idle", "-e", "shop:paid", "-o", "named", "--start"]);
        } else {
            record = Some(place.command(&["record", "-e", "shop:paid", "-p", &pid, "-o", "out"]).spawn()?);
        }
        until(|| !place.on().is_empty());
        // The threads of the drain have started, and unused rings are released.
        std::thread::sleep(Duration::from_secs(1));
        let began = Instant::now();
        let mut attached = Taken::by(&pid)?;
        while attached.kib - before.kib > MAX_KIB && began.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(100));
            attached = Taken::by(&pid)?;
        }
        let more = attached.kib - before.kib;
        println!("{more} KiB, named: {is_named}");
        assert!(more <= MAX_KIB, "{more} KiB more than {}", before.kib);
        // Code pages are shared by all processes of the program. No files are mapped except those of the session.
        let run = place.path("run");
        let others = attached.files.difference(&before.files).filter(|file| !Path::new(file).starts_with(&run));
        assert_eq!(others.collect::<Vec<_>>(), [""; 0]);
        if let Some(mut record) = record {
            kill(&record, "INT")?;
            assert!(record.wait()?.success());
        }
    }
    Ok(())
}
