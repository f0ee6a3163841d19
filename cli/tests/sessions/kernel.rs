//! `record --kernel`: kernel events in the trace. These tests need root, and a kernel with perf and tracefs.

mod samples;
mod states;
mod waits;

use super::{Outcome, PAUSE, Place, is_traced, kill, program, until};
use crate::skip::skip;
use serde_json::Value;
use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// True if this process may record the kernel; otherwise prints what is missing.
fn can_record() -> bool {
    if !rustix::process::geteuid().is_root() {
        skip("not root, and only root may record the kernel", "run the tests as root");
        return false;
    }
    let events = Path::new("/sys/kernel/tracing/available_events");
    if !events.exists() {
        let _ = Command::new("mount").args(["-t", "tracefs", "nodev", "/sys/kernel/tracing"]).status();
    }
    if !events.exists() {
        skip("this kernel has no tracefs, or does not let it be mounted", "use a kernel with CONFIG_TRACING");
        return false;
    }
    true
}

/// A command of a user without rights in a place: a copy of this program, which the user may read.
fn as_nobody(place: &Place, program: &Path) -> std::io::Result<Command> {
    fs::set_permissions(place.path("."), Permissions::from_mode(0o777))?;
    let copy = place.path(&program.file_name().unwrap_or_default().to_string_lossy());
    fs::copy(program, &copy)?;
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]).arg(copy);
    command.current_dir(place.path(".")).env("TRACEPOINT_RUN_DIR", place.path("run"));
    Ok(command)
}

/// The output of `view --json`.
fn events(place: &Place, traces: &[&str]) -> Vec<Value> {
    let out = place.well(&[&["view", "--json"], traces].concat());
    let events = out.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    events.filter(|event| event["type"] == "event").collect()
}

/// Runs `during` while all processors are busy: on an idle one, some kernels count events, but do not store them (docs/kernel.md).
fn busy<T>(during: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let result = catch_unwind(AssertUnwindSafe(during));
        // Relaxed: the flag publishes no other memory.
        is_over.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|panic| resume_unwind(panic))
    })
}

fn is(event: &Value, name: &str) -> bool {
    event["name"] == name
}

/// One view shows why a thread was not running: it is switched away between two of its events.
#[test]
fn one_view_has_the_kernel_between_the_events_of_a_process() -> Outcome {
    if is_traced() || !can_record() {
        return Ok(());
    }
    let place = Place::new();
    let mut command = program("kernel::one_view_has_the_kernel_between_the_events_of_a_process", 0);
    command.env(PAUSE, "5");
    let traced = place.start_as(command);
    let pid = traced.0.id().to_string();
    let arguments =
        ["record", "-e", "shop:*", "-p", &pid, "--kernel", "sched:sched_switch,sched:sched_wak*,!*_new,!*_ipi"];
    let report = busy(|| place.well(&[&arguments[..], &["--duration", "2s", "-o", "out", "--json"]].concat()));
    let report: Value = serde_json::from_str(&report)?;
    let counts: HashMap<_, _> =
        report["kernel"]["events"].as_array().ok_or("no events")?.iter().map(|e| (e["name"].as_str(), e)).collect();
    assert_eq!(counts.len(), 3, "switch, wakeup and waking: {report}");
    let recorded = report["kernel"]["counters"]["recorded"].as_u64().ok_or("no number")?;
    let all = recorded + report["processes"][0]["counters"]["recorded"].as_u64().ok_or("no number")?;
    assert_eq!(report["recorded"].as_u64(), Some(all), "{report}");
    place.verifies("out");

    let events = events(&place, &["out"]);
    assert_eq!(events.len() as u64, all);
    let thread = events.iter().find(|e| is(e, "shop:paid")).ok_or("no event of the process")?["tid"].as_i64();
    let (mut sleeps, mut whole) = (0, 0);
    let ours: Vec<_> =
        events.iter().enumerate().filter(|(_, e)| e["name"].as_str().is_some_and(|n| n.starts_with("shop:"))).collect();
    // The kernel recording starts when the process is already recorded.
    let began = events.iter().position(|e| is(e, "sched:sched_switch")).ok_or("no event of the kernel")?;
    for pair in
        ours.windows(2).filter(|pair| pair[0].0 > began && is(pair[0].1, "shop:looked") && is(pair[1].1, "shop:paid"))
    {
        let between = &events[pair[0].0..pair[1].0];
        let of = |field: &str| {
            let is_ours = |e: &&Value| is(e, "sched:sched_switch") && e["fields"][field].as_i64() == thread;
            between.iter().position(|e| is_ours(&e))
        };
        sleeps += 1;
        // The kernel drops an event that fires while another one is being stored.
        if let (Some(away), Some(back)) = (of("prev_pid"), of("next_pid")) {
            assert!(away < back, "the thread slept 5 ms between two events: {between:#?}");
            whole += 1;
        }
    }
    assert!(whole > 10 && whole * 10 >= sleeps * 9, "{whole} of {sleeps} sleeps, {} events", ours.len());
    let switches = counts[&Some("sched:sched_switch")]["recorded"].as_u64();
    // It warns of events that the kernel has counted but not stored.
    let theirs = Command::new("babeltrace2").arg(place.path("out")).output()?;
    assert!(theirs.status.success(), "{}", String::from_utf8_lossy(&theirs.stderr));
    let theirs = String::from_utf8(theirs.stdout)?.matches(" sched:sched_switch: ").count();
    assert_eq!(Some(theirs as u64), switches, "babeltrace2 reads them all");
    Ok(())
}

/// The number of a program's system calls equals that of `perf stat`.
#[test]
fn counts_are_those_of_perf() -> Outcome {
    if is_traced() || !can_record() {
        return Ok(());
    }
    let place = Place::new();
    let arguments = ["record", "--kernel", "syscalls:sys_enter_write,sched:sched_process_exec", "-o", "out", "--"];
    let perf = ["perf", "stat", "-x,", "-o", "stat", "-e", "syscalls:sys_enter_write", "--"];
    // Under a name that no other process of this machine has.
    let counted_dd = place.path("counted-dd");
    std::os::unix::fs::symlink("/usr/bin/dd", &counted_dd)?;
    let name = counted_dd.to_str().ok_or("not UTF-8")?;
    let dd = [name, "if=/dev/zero", "of=/dev/null", "bs=1", "count=1000", "status=none"];
    place.well(&[&arguments[..], &perf, &dd].concat());
    let stat = fs::read_to_string(place.path("stat"))?;
    let line = stat.lines().find(|line| line.contains("sys_enter_write")).ok_or("no count")?;
    let counted: usize = line.split(',').next().ok_or("no number")?.parse()?;
    assert!(counted >= 1000, "{stat}");
    place.verifies("out");

    let events = events(&place, &["out"]);
    let is_dd = |e: &&Value| e["fields"]["filename"] == name;
    let exec =
        events.iter().position(|e| is(e, "sched:sched_process_exec") && is_dd(&e)).ok_or("dd was not started")?;
    let dd = &events[exec]["fields"]["pid"];
    let writes = events[exec..].iter().filter(|e| is(e, "syscalls:sys_enter_write") && e["tid"] == *dd);
    assert_eq!(writes.count(), counted);
    Ok(())
}

/// The kernel's own counts balance with the recorded and lost events.
#[test]
fn losses_are_counted_by_cpu() -> Outcome {
    if is_traced() || !can_record() {
        return Ok(());
    }
    let place = Place::new();
    let record = ["record", "--kernel", "syscalls:sys_*_write", "--kernel-ring-size", "4K", "--fail-on-loss"];
    let dd = ["--", "dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=200000", "status=none"];
    let (code, out, err) = place.tracectl(&[&record[..], &["-o", "out", "--json"], &dd].concat());
    assert_eq!(code, Some(4), "{out}{err}");
    let report: Value = serde_json::from_str(&out)?;
    let counters = &report["kernel"]["counters"];
    let lost_by = &counters["lost"];
    let [fired, recorded, lost, not_stored] =
        [&counters["fired"], &counters["recorded"], &lost_by["ring_full"], &lost_by["not_stored"]]
            .map(|count| count.as_u64().unwrap_or_default());
    assert!(lost > 0 && recorded > 0 && fired >= 400_000, "{report}");
    assert_eq!(fired, recorded + lost + not_stored);
    let by_cpu = report["kernel"]["lost_by_cpu"].as_array().ok_or("no CPUs")?;
    assert_eq!(by_cpu.iter().filter_map(|cpu| cpu["lost"].as_u64()).sum::<u64>(), lost);
    place.verifies("out");
    assert_eq!(events(&place, &["out"]).len() as u64, recorded);

    let (code, out, err) = place.tracectl(&[&record[..5], &["-o", "text"], &dd].concat());
    assert!(code == Some(0) && out.contains(" lost ") && out.contains("; see `--kernel-ring-size`"), "{out}{err}");
    Ok(())
}

#[test]
fn the_kernel_alone_is_recorded_until_it_is_interrupted_into_a_circular_file_and_text() -> Outcome {
    if is_traced() || !can_record() {
        return Ok(());
    }
    let place = Place::new();
    let record = ["record", "--kernel", "sched:sched_switch", "--dt", "file.dt", "--text", "lines", "--json"];
    let record = place.command(&record).stdout(std::process::Stdio::piped()).spawn()?;
    until(|| fs::metadata(place.path("lines")).is_ok_and(|file| file.len() >= 1000));
    kill(&record, "INT")?;
    let output = record.wait_with_output()?;
    let report: Value = serde_json::from_slice(&output.stdout)?;
    assert!(output.status.success() && report["recorded"].as_u64() >= Some(10), "{report}");
    place.verifies("file.dt");
    assert_eq!(
        fs::read_dir(place.path("."))?.count(),
        3,
        "no directory is made: the file, the text, the run directory"
    );
    Ok(())
}

#[test]
fn without_rights_nothing_begins_and_the_message_says_how_to_get_them() -> Outcome {
    if is_traced() || !can_record() {
        return Ok(());
    }
    let place = Place::new();
    fs::set_permissions(place.path("."), Permissions::from_mode(0o777))?;
    let program = place.path("tracectl");
    fs::copy(env!("CARGO_BIN_EXE_tracectl"), &program)?;
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]).arg(&program);
    command.args(["record", "--kernel", "sched:*", "-o", "out", "--", "touch", "started"]);
    let output = command.current_dir(place.path(".")).env("TRACEPOINT_RUN_DIR", place.path("run")).output()?;
    let message = String::from_utf8(output.stderr)?;
    assert_eq!(output.status.code(), Some(3), "{message}");
    let mends = ["/sys/kernel/tracing", "`sudo`", "`sudo setcap cap_perfmon,"];
    assert!(mends.iter().all(|mend| message.contains(mend)), "{message}");
    assert!(!place.path("out").exists() && !place.path("started").exists());

    // tracefs may be readable while perf still refuses.
    let rights = ["--reuid=65534", "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"];
    let mut command = Command::new("setpriv");
    command.args(rights).arg(&program).args(["record", "--kernel", "sched:sched_switch", "-o", "out"]);
    let output = command.current_dir(place.path(".")).env("TRACEPOINT_RUN_DIR", place.path("run")).output()?;
    let message = String::from_utf8(output.stderr)?;
    assert!(
        output.status.code() == Some(3) && message.contains("does not let sched:sched_switch be recorded"),
        "{message}"
    );
    assert!(message.contains("`sudo setcap cap_perfmon,"), "{message}");
    Ok(())
}

#[test]
fn what_cannot_be_recorded_is_refused_with_the_mend() -> Outcome {
    if is_traced() || !can_record() {
        return Ok(());
    }
    let place = Place::new();
    let refused = |arguments: &[&str]| place.refused(&[&["record"], arguments].concat());
    let message = refused(&["--kernel", "sched:sched_swich"]);
    assert!(
        message.contains("no event of the kernel matches `sched:sched_swich`; did you mean sched:sched_switch"),
        "{message}"
    );
    let message = refused(&["--kernel", "sched:[", "-e", "*"]);
    assert!(message.contains("`sched:[` is no pattern"), "{message}");
    let message = refused(&["--kernel", "irq_vectors:irq_work_exit"]);
    assert!(
        message
            .contains("it allows that to no user, not even root: exclude the event with `!irq_vectors:irq_work_exit`"),
        "{message}"
    );
    let message = refused(&["--kernel", "sched:sched_switch,!sched:*"]);
    assert!(message.contains("no event is chosen"), "{message}");
    let message = refused(&["--kernel", "sched:sched_switch", "--udp", "127.0.0.1:0"]);
    assert!(message.contains("`-o DIR`"), "{message}");
    let message = refused(&["--waits", "--udp", "127.0.0.1:0", "-e", "*", "--wait"]);
    assert!(message.contains("`--waits` writes files only") && message.contains("`-o DIR`"), "{message}");
    let (code, _, message) = place.tracectl(&["record", "--waits", "--on", "host"]);
    assert!(code == Some(2) && message.contains("`--waits`"), "{message}");
    for arguments in [["--on", "host"], ["--filter", "prev_pid == 1"]] {
        let (code, _, message) =
            place.tracectl(&[&["record", "--kernel", "sched:sched_switch"], &arguments[..]].concat());
        assert!(code == Some(2) && message.contains("`--kernel`"), "{message}");
    }
    let unmounted = format!(
        "umount /sys/kernel/tracing; umount /sys/kernel/debug; {} record --kernel 'sched:*'",
        env!("CARGO_BIN_EXE_tracectl")
    );
    let output = Command::new("unshare").args(["-m", "sh", "-c", &unmounted]).output()?;
    let message = String::from_utf8(output.stderr)?;
    assert!(message.contains("`sudo mount -t tracefs nodev /sys/kernel/tracing`"), "{message}");
    Ok(())
}

/// The metadata of a trace as lttng-modules lay it out: one stream for each CPU, `cpu_id` in the context of packets, no thread.
const LTTNG: &str = r#"/* CTF 1.8 */
typealias integer { size = 5; align = 1; signed = false; } := u5;
typealias integer { size = 8; align = 8; signed = false; } := u8;
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 64; align = 8; signed = false; } := u64;
typealias integer { size = 32; align = 8; signed = true; } := i32;
typealias integer { size = 64; align = 8; signed = true; } := i64;
trace { major = 1; minor = 8; uuid = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"; byte_order = le;
  packet.header := struct { u32 magic; u8 uuid[16]; u32 stream_id; u64 stream_instance_id; }; };
env { hostname = "box"; domain = "kernel"; sysname = "Linux"; kernel_release = "6.1.0"; tracer_name = "lttng-modules";
  tracer_major = 2; tracer_minor = 13; };
clock { name = "monotonic"; uuid = "BOOT"; description = "Monotonic Clock"; freq = 1000000000; offset = OFFSET; };
typealias integer { size = 27; align = 1; signed = false; map = clock.monotonic.value; } := ts27;
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := ts64;
stream { id = 0;
  packet.context := struct { ts64 timestamp_begin; ts64 timestamp_end; u64 content_size; u64 packet_size;
    u64 packet_seq_num; u64 events_discarded; u32 cpu_id; };
  event.header := struct { enum : u5 { compact = 0 ... 30, extended = 31 } id;
    variant <id> { struct { ts27 timestamp; } compact; struct { u32 id; ts64 timestamp; } extended; } v; } align(8); };
event { name = "sched_switch"; id = 7; stream_id = 0; fields := struct {
  integer { size = 8; align = 8; signed = 0; encoding = UTF8; base = 10; } _prev_comm[16]; i32 _prev_tid; i32 _prev_prio;
  i64 _prev_state; integer { size = 8; align = 8; signed = 0; encoding = UTF8; base = 10; } _next_comm[16];
  i32 _next_tid; i32 _next_prio; }; };
"#;

/// A packet of CPU `cpu` with a switch at each of these times, in extended headers.
fn lttng_packet(cpu: u32, times: &[u64]) -> Vec<u8> {
    let mut records = Vec::new();
    for time in times {
        records.extend([31, 7, 0, 0, 0]);
        records.extend(time.to_le_bytes());
        for (name, tid) in [(b"shop\0\0\0\0\0\0\0\0\0\0\0\0", 7_u32), (b"swapper/0\0\0\0\0\0\0\0", 0)] {
            records.extend(name);
            records.extend([tid.to_le_bytes(), 20_u32.to_le_bytes()].concat());
            if tid > 0 {
                records.extend(1_u64.to_le_bytes());
            }
        }
    }
    let mut packet = 0xC1FC_1FC1_u32.to_le_bytes().to_vec();
    packet.extend([0x0f, 0x1e, 0x2d, 0x3c, 0x4b, 0x5a, 0x69, 0x78, 0x87, 0x96, 0xa5, 0xb4, 0xc3, 0xd2, 0xe1, 0xf0]);
    packet.extend(0_u32.to_le_bytes());
    let bits = (84 + records.len() as u64) * 8;
    let (first, last) = (times[0], times[times.len() - 1]);
    for number in [cpu.into(), first, last, bits, bits, 0, 0] {
        packet.extend(u64::to_le_bytes(number));
    }
    packet.extend(cpu.to_le_bytes());
    packet.extend(records);
    packet
}

/// A trace of lttng-modules, whose clock offset differs, merges with ours by time.
#[test]
fn a_trace_of_lttng_modules_merges_by_time() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let traced = place.start("kernel::a_trace_of_lttng_modules_merges_by_time");
    let pid = traced.0.id().to_string();
    place.well(&["record", "-e", "shop:paid", "-p", &pid, "--duration", "200ms", "-o", "ours"]);
    let times: Vec<_> = events(&place, &["ours"]).iter().filter_map(|e| e["time_ns"].as_u64()).take(100).collect();
    assert_eq!(times.len(), 100);
    // 1 ns after each of our events, on alternating CPUs.
    let offset = 1_600_000_000_000_000_000;
    let of_cpu = |cpu: usize| times.iter().skip(cpu).step_by(2).map(|time| time + 1 - offset).collect::<Vec<_>>();
    fs::create_dir(place.path("lttng"))?;
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let metadata = LTTNG.replace("BOOT", boot.trim()).replace("OFFSET", &offset.to_string());
    fs::write(place.path("lttng/metadata"), metadata)?;
    for cpu in 0..2 {
        fs::write(place.path(&format!("lttng/kernel_{cpu}")), lttng_packet(cpu as u32, &of_cpu(cpu)))?;
    }
    let merged = events(&place, &["ours", "lttng"]);
    for (index, pair) in merged[..200].chunks(2).enumerate() {
        assert!(is(&pair[0], "shop:paid") && is(&pair[1], "sched_switch"), "{index}: {pair:#?}");
        assert_eq!(pair[1]["fields"]["prev_comm"], "shop", "{index}");
    }
    let lines = |output: String| -> Vec<String> {
        let name =
            |line: &str| line.split(' ').find(|word| word.ends_with(':') && !word.contains("::")).map(str::to_owned);
        output.lines().filter_map(name).take(200).collect()
    };
    let theirs = Command::new("babeltrace2").args([place.path("ours"), place.path("lttng")]).output()?;
    assert!(theirs.status.success(), "{}", String::from_utf8_lossy(&theirs.stderr));
    let theirs = lines(String::from_utf8(theirs.stdout)?);
    assert_eq!(theirs.chunks(2).filter(|pair| pair == &["shop:paid:", "sched_switch:"]).count(), 100, "{theirs:?}");
    Ok(())
}
