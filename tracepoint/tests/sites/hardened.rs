//! Switching in hardened processes: the calls that are refused, and the core's reaction.
//!
//! A process cannot lift its restrictions again, so each environment is a separate process: this program, run again for one test, with
//! the environment's name in a variable.

use crate::site::{
    OFF, ON, Site, assert_all, assert_all_off, assert_code_is_not_writable, code_maps, page_size, site_in,
    sites_of_key_in,
};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::process::Command;
use std::ptr::{null_mut, with_exposed_provenance, with_exposed_provenance_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use tracepoint::marker::{Aggregate, FieldView, Subscriber};
use tracepoint::{Probe, probe::RegisterError};

tracepoint::define_trace! {
    provider = "site_hardened";
    fired(n: u64) { n: u64 = n }
    spread(n: usize);
    crowd(n: usize);
}

#[inline(never)]
fn fire() {
    tracepoint::trace!(fired(1));
    trace_fired(1);
}

/// Sites of one key over more than a page of code.
#[inline(never)]
fn fire_spread<const N: usize>() {
    tracepoint::trace!(spread(N));
    #[cfg(target_arch = "x86_64")]
    // SAFETY: runs no instruction but the jump, which skips half a page of padding.
    unsafe {
        std::arch::asm!("jmp 881f", ".skip 2048, 0x90", "881:", options(nomem, nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the same, for larger pages; some branches do not reach further than 32 KiB.
    unsafe {
        std::arch::asm!("b 881f", ".skip 16384", "881:", options(nomem, nostack, preserves_flags));
    }
}

const SPREAD: [fn(); 6] =
    [fire_spread::<0>, fire_spread::<1>, fire_spread::<2>, fire_spread::<3>, fire_spread::<4>, fire_spread::<5>];

/// Sites of one key in functions that are padded apart.
#[inline(never)]
fn fire_crowd<const N: usize>() {
    tracepoint::trace!(crowd(N));
}

macro_rules! crowd {
    ($($n:literal)*) => { [$(fire_crowd::<$n> as fn()),*] };
}

static CROWD: [fn(); 40] = crowd!(
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39
);

static HITS: AtomicU64 = AtomicU64::new(0);

fn register() -> Result<Probe<fired>, RegisterError> {
    register_trace_fired(|n| {
        HITS.fetch_add(n, Ordering::Relaxed);
    })
}

fn fired_hits() -> u64 {
    fire();
    HITS.swap(0, Ordering::Relaxed)
}

/// Asserts that the sites are switched on and off as probes are registered and unregistered.
fn assert_switches() {
    for _ in 0..3 {
        let probe = register().expect("switches");
        assert_all(&sites_of_key_in(fire as *const ()), ON);
        assert_eq!(fired_hits(), 2);
        probe.unregister();
        assert_eq!(fired_hits(), 0);
        assert_all_off();
    }
}

/// The same for so many sites that the core does not write them one by one.
fn assert_crowd_switches() {
    let sites = sites_of_key_in(CROWD[0] as *const ());
    for _ in 0..3 {
        let probe = register_trace_crowd(|_| {
            HITS.fetch_add(1, Ordering::Relaxed);
        })
        .expect("switches");
        assert_all(&sites, ON);
        for fire in CROWD {
            fire();
        }
        assert_eq!(HITS.swap(0, Ordering::Relaxed), CROWD.len() as u64);
        drop(probe);
        assert_all_off();
    }
    let platform = tracepoint::runtime::platform();
    assert_eq!((platform.stuck_sites, platform.foreign_sites, platform.stayed_writable), (0, 0, 0));
}

// -- restrictions -------------------------------------------------------------------------------------------------------

#[track_caller]
fn checked(what: &str, result: libc::c_int) {
    assert!(result == 0, "{what}: {}", io::Error::last_os_error());
}

/// The result of making code writable by `mprotect`. On success the protection is restored.
fn try_mprotect(address: usize) -> Result<(), i32> {
    let page = with_exposed_provenance_mut(address / page_size() * page_size());
    // SAFETY: a page of this program's code, which stays readable and executable.
    if unsafe { libc::mprotect(page, page_size(), libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC) } != 0 {
        return Err(io::Error::last_os_error().raw_os_error().expect("an error of the system"));
    }
    // SAFETY: as above.
    checked("mprotect", unsafe { libc::mprotect(page, page_size(), libc::PROT_READ | libc::PROT_EXEC) });
    Ok(())
}

fn try_proc_mem() -> Result<(), i32> {
    match OpenOptions::new().write(true).open("/proc/self/mem") {
        Ok(_) => Ok(()),
        Err(error) => Err(error.raw_os_error().expect("an error of the system")),
    }
}

fn try_membarrier() -> Result<(), i32> {
    // SAFETY: a query; takes plain numbers.
    let commands = unsafe { libc::syscall(libc::SYS_membarrier, 0, 0, 0) };
    if commands >= 0 { Ok(()) } else { Err(io::Error::last_os_error().raw_os_error().expect("an error")) }
}

/// Memory-deny-write-execute, as `systemd` sets it with `MemoryDenyWriteExecute=`.
fn deny_write_execute() {
    const PR_SET_MDWE: libc::c_int = 65;
    const REFUSE_EXEC_GAIN: libc::c_ulong = 1;
    // SAFETY: takes plain numbers.
    checked("PR_SET_MDWE (Linux 6.3 has it)", unsafe { libc::prctl(PR_SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0) });
    assert_eq!(try_mprotect(site_in(fire as *const ()).address), Err(libc::EACCES), "the restriction holds");
}

/// Becomes an unprivileged user in a process that is not dumpable: `/proc/self/mem` cannot be opened.
fn become_a_daemon() {
    const NOBODY: libc::uid_t = 65534;
    // SAFETY: takes plain numbers; the process has already opened the files that it needs.
    unsafe {
        if libc::geteuid() == 0 {
            checked("setgroups", libc::setgroups(0, null_mut()));
            checked("setresgid", libc::setresgid(NOBODY, NOBODY, NOBODY));
            checked("setresuid", libc::setresuid(NOBODY, NOBODY, NOBODY));
        }
        checked("PR_SET_DUMPABLE", libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0));
    }
    assert_eq!(try_proc_mem(), Err(libc::EACCES), "the restriction holds");
}

/// A system call that is refused.
enum Refused {
    Membarrier,
    /// `mprotect` that makes anything executable.
    MakingExecutable,
    /// `mprotect` to exactly the usual protection of code.
    MakingUnwritable,
    /// As `MakingExecutable`, but the call kills the process.
    MakingExecutableKills,
}

/// Installs a filter for this thread and those that it starts.
fn refuse(refused: &[Refused]) {
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const IF_SET: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
    /// Where `struct seccomp_data` has the number of the call, and the third argument.
    const NUMBER: u32 = 0;
    const PROTECTION: u32 = 32;

    let step = |code: u32, k: u32, skip_unless: u8| libc::sock_filter { code: code as u16, jt: 0, jf: skip_unless, k };
    let mut program = Vec::new();
    for refused in refused {
        match refused {
            Refused::Membarrier => program.extend([
                step(LOAD, NUMBER, 0),
                step(IF_EQUAL, libc::SYS_membarrier.cast_unsigned() as u32, 1),
                step(RETURN, REFUSE, 0),
            ]),
            Refused::MakingExecutable => program.extend([
                step(LOAD, NUMBER, 0),
                step(IF_EQUAL, libc::SYS_mprotect.cast_unsigned() as u32, 3),
                step(LOAD, PROTECTION, 0),
                step(IF_SET, libc::PROT_EXEC.cast_unsigned(), 1),
                step(RETURN, REFUSE, 0),
            ]),
            Refused::MakingUnwritable => program.extend([
                step(LOAD, NUMBER, 0),
                step(IF_EQUAL, libc::SYS_mprotect.cast_unsigned() as u32, 3),
                step(LOAD, PROTECTION, 0),
                step(IF_EQUAL, (libc::PROT_READ | libc::PROT_EXEC).cast_unsigned(), 1),
                step(RETURN, REFUSE, 0),
            ]),
            Refused::MakingExecutableKills => program.extend([
                step(LOAD, NUMBER, 0),
                step(IF_EQUAL, libc::SYS_mprotect.cast_unsigned() as u32, 3),
                step(LOAD, PROTECTION, 0),
                step(IF_SET, libc::PROT_EXEC.cast_unsigned(), 1),
                step(RETURN, libc::SECCOMP_RET_KILL_PROCESS, 0),
            ]),
        }
    }
    program.push(step(RETURN, libc::SECCOMP_RET_ALLOW, 0));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the program and its description are alive during the calls, which copy them.
    unsafe {
        checked("PR_SET_NO_NEW_PRIVS", libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
        checked("PR_SET_SECCOMP", libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter));
    }
}

/// Replaces a page of code by a mapping of a read-only file with the same bytes, which cannot be written.
fn seal_page(page: usize) {
    // SAFETY: a page of this program's code, which is readable. The new mapping has the same bytes and protection, so that threads
    // which execute it are not affected.
    unsafe {
        let file = libc::memfd_create(c"code".as_ptr(), libc::MFD_CLOEXEC);
        assert!(file >= 0, "memfd_create: {}", io::Error::last_os_error());
        let mut writable = File::from_raw_fd(file);
        writable.write_all(std::slice::from_raw_parts(with_exposed_provenance(page), page_size())).expect("memory");
        let readable = File::open(format!("/proc/self/fd/{file}")).expect("open by its other name");
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        let place = with_exposed_provenance_mut(page);
        let mapped = libc::mmap(place, page_size(), protection, flags, readable.as_raw_fd(), 0);
        assert!(mapped == place, "mmap: {}", io::Error::last_os_error());
    }
    assert_eq!(try_mprotect(page), Err(libc::EACCES), "the restriction holds");
}

/// A namespace of mounts without `/proc`.
fn hide_proc() {
    // SAFETY: takes flags and strings that end in zero; only this process sees the change.
    unsafe {
        checked("a namespace of mounts (root may make one)", libc::unshare(libc::CLONE_NEWNS));
        let private = libc::MS_REC | libc::MS_PRIVATE;
        checked("mount", libc::mount(c"none".as_ptr(), c"/".as_ptr(), null_mut(), private, null_mut()));
        checked("umount /proc", libc::umount2(c"/proc".as_ptr(), libc::MNT_DETACH));
    }
    assert_eq!(try_proc_mem(), Err(libc::ENOENT), "the restriction holds");
}

// -- environments -------------------------------------------------------------------------------------------------------

const VARIABLE: &str = "TRACEPOINT_TEST_ENVIRONMENT";

/// Runs `body` in a separate process: this program, for the test called `name` alone.
fn in_a_process(name: &str, body: fn()) {
    if std::env::var_os(VARIABLE).is_some_and(|value| value == name) {
        return body();
    }
    let program = std::env::current_exe().expect("the path of this program");
    let output = Command::new(program)
        .args(["--exact", name, "--nocapture"])
        .env(VARIABLE, name)
        .output()
        .expect("this program can be run");
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{said}\n{errors}", output.status);
    assert!(said.contains("1 passed"), "the test of that name was run: {said}");
}

#[test]
fn memory_may_not_become_writable_and_executable() {
    own_process!();
    in_a_process("hardened::memory_may_not_become_writable_and_executable", || {
        deny_write_execute();
        assert_switches();
        assert_crowd_switches();
        assert_eq!(tracepoint::runtime::platform().stuck_sites, 0);
    });
}

#[test]
fn a_seccomp_filter_from_the_start() {
    own_process!();
    in_a_process("hardened::a_seccomp_filter_from_the_start", || {
        refuse(&[Refused::Membarrier, Refused::MakingExecutable]);
        assert_eq!(try_mprotect((fire as *const ()).expose_provenance()), Err(libc::EPERM), "the restriction holds");
        assert_eq!(try_membarrier(), Err(libc::EPERM), "the restriction holds");
        with_a_busy_thread(assert_switches);
        assert_crowd_switches();
        let platform = tracepoint::runtime::platform();
        assert_eq!((platform.grace_periods, platform.never_freed, platform.stuck_sites), ("fences", 0, 0));
    });
}

#[test]
fn a_seccomp_filter_that_kills() {
    own_process!();
    in_a_process("hardened::a_seccomp_filter_that_kills", || {
        refuse(&[Refused::MakingExecutableKills]);
        assert_switches();
        assert_crowd_switches();
    });
}

#[test]
fn membarrier_is_refused_later() {
    own_process!();
    in_a_process("hardened::membarrier_is_refused_later", || {
        assert_switches();
        assert_eq!(tracepoint::runtime::platform().grace_periods, "membarrier", "allowed at first");
        assert_eq!(tracepoint::runtime::platform().never_freed, 0);
        // A thread that was started before the filter continues without fences, because the process began with `membarrier`.
        with_a_busy_thread(|| {
            refuse(&[Refused::Membarrier]);
            assert_eq!(try_membarrier(), Err(libc::EPERM), "the restriction holds");
            let owned = Arc::new(());
            let mut kept = 0;
            for round in 1..=100 {
                let in_probe = Arc::clone(&owned);
                let probe = register_trace_fired(move |n| {
                    drop(Arc::clone(&in_probe));
                    HITS.fetch_add(n, Ordering::Relaxed);
                })
                .expect("switches");
                fire();
                assert_all(&sites_of_key_in(fire as *const ()), ON);
                probe.unregister();
                assert_all_off();
                // The busy thread may be inside a probe and hold one more reference.
                assert!(Arc::strong_count(&owned) > round, "a probe is not freed without a grace period");
                let now = tracepoint::runtime::platform().never_freed;
                assert!(now > kept, "and it is counted");
                kept = now;
            }
            assert!(HITS.load(Ordering::Relaxed) >= 200);
        });
        HITS.store(0, Ordering::Relaxed);
        assert_switches();
        tracepoint::probe::synchronize();
        let platform = tracepoint::runtime::platform();
        assert!(platform.to_string().contains("replaced lists and probes never freed"), "{platform}");
    });
}

/// Runs `body` while another thread runs the sites, with short pauses.
fn with_a_busy_thread(body: impl FnOnce()) {
    struct StopOnDrop<'a>(&'a AtomicBool);
    impl Drop for StopOnDrop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // The probes do not count it.
                trace_fired(0);
            }
        });
        let _stop = StopOnDrop(&stop);
        body();
    });
}

#[test]
fn a_process_that_is_not_dumpable() {
    own_process!();
    in_a_process("hardened::a_process_that_is_not_dumpable", || {
        become_a_daemon();
        with_a_busy_thread(assert_switches);
        assert_eq!(tracepoint::runtime::platform().stuck_sites, 0);
        assert_crowd_switches();
        assert_code_is_not_writable();
    });
}

#[test]
fn proc_is_not_mounted() {
    own_process!();
    in_a_process("hardened::proc_is_not_mounted", || {
        // Before it goes.
        assert_code_is_not_writable();
        hide_proc();
        with_a_busy_thread(assert_switches);
        assert_eq!(tracepoint::runtime::platform().stuck_sites, 0);
    });
}

struct Ignore;

impl Aggregate for Ignore {
    fn observe(&self, _: u64, _: FieldView<'_>) {}
}

/// Asserts that all sites of `fired` are off.
#[track_caller]
fn assert_nothing_is_on() {
    assert_all_off();
    let tracepoint = tracepoint::find("site_hardened:fired").expect("listed");
    let marker = tracepoint.marker().expect("has fields");
    assert_eq!((tracepoint.is_on(), tracepoint.probe_count()), (false, 0));
    assert_eq!((marker.is_on(), marker.subscriber_count()), (false, 0));
    assert!(!trace_fired_enabled());
    assert_eq!(fired_hits(), 0);
}

#[test]
fn no_way_to_patch_is_allowed() {
    own_process!();
    in_a_process("hardened::no_way_to_patch_is_allowed", || {
        become_a_daemon();
        refuse(&[Refused::MakingExecutable]);
        assert_eq!(try_mprotect(site_in(fire as *const ()).address), Err(libc::EPERM), "the restriction holds");
        for _ in 0..2 {
            let owned = Arc::new(());
            let in_probe = Arc::clone(&owned);
            let refused = register_trace_fired(move |_| drop(Arc::clone(&in_probe))).expect_err("cannot switch");
            assert_eq!(Arc::strong_count(&owned), 1, "the probe was dropped");
            assert_nothing_is_on();

            assert!(matches!(refused, RegisterError::Switch(_)));
            let message = refused.to_string();
            for part in ["/proc/self/mem", "Permission denied", "mprotect", "Operation not permitted", "flag-sites"] {
                assert!(message.contains(part), "`{part}` is in: {message}");
            }
            let marker = tracepoint::find("site_hardened:fired").expect("listed").marker().expect("has fields");
            let refused = marker.subscribe(Subscriber::aggregate(Arc::new(Ignore))).expect_err("cannot switch");
            assert_eq!(refused.to_string(), message);
            assert_nothing_is_on();
        }
        let platform = tracepoint::runtime::platform();
        assert_eq!((platform.stuck_sites, platform.stayed_writable), (0, 0));
    });
}

#[test]
fn code_that_stays_writable() {
    own_process!();
    in_a_process("hardened::code_that_stays_writable", || {
        become_a_daemon();
        // The filter applies to one thread only.
        let probe = thread::spawn(|| {
            refuse(&[Refused::MakingUnwritable]);
            register().expect("switches")
        })
        .join()
        .expect("no panic");
        assert_all(&sites_of_key_in(fire as *const ()), ON);
        let platform = tracepoint::runtime::platform();
        assert!(platform.stayed_writable > 0 && platform.stuck_sites == 0, "{platform}");
        assert!(platform.to_string().contains("times code stayed writable"), "{platform}");
        assert!(code_maps().iter().any(|line| line.contains("rwx")), "the restriction holds");

        // The next batch, of any sites, restores the protection.
        drop(register_trace_spread(|_| ()).expect("switches"));
        assert_code_is_not_writable();
        assert_eq!(tracepoint::runtime::platform().stayed_writable, platform.stayed_writable);
        drop(probe);
        assert_all_off();
        assert_code_is_not_writable();
    });
}

#[test]
fn refused_while_on() {
    own_process!();
    in_a_process("hardened::refused_while_on", || {
        let first = register().expect("switches");
        become_a_daemon();
        refuse(&[Refused::MakingExecutable]);
        let sites = sites_of_key_in(fire as *const ());
        let stuck = || tracepoint::runtime::platform().stuck_sites;
        // Without sites to write, switching succeeds.
        let second = register().expect("nothing to write");
        assert_eq!(fired_hits(), 4);
        drop(second);
        assert_eq!((fired_hits(), stuck()), (2, 0));

        // Off: the sites stay on, and the cold path finds no probe. They are counted; the caller gets no error, because it could not
        // act on one.
        drop(first);
        assert_all(&sites, ON);
        assert_eq!((fired_hits(), stuck()), (0, sites.len() as u64));
        let tracepoint = tracepoint::find("site_hardened:fired").expect("listed");
        assert_eq!((tracepoint.is_on(), tracepoint.probe_count()), (false, 0));

        // The sites already have the form that the next user needs.
        let third = register().expect("nothing to write");
        assert_eq!(fired_hits(), 2);
        drop(third);
        assert_eq!((fired_hits(), stuck()), (0, 2 * sites.len() as u64));
        let platform = tracepoint::runtime::platform();
        assert!(platform.to_string().contains("times a site could not be written"), "{platform}");
    });
}

#[test]
fn one_page_is_refused() {
    own_process!();
    in_a_process("hardened::one_page_is_refused", || {
        let sites = sites_of_key_in(SPREAD[0] as *const ());
        let page_of = |site: &Site| site.address / page_size() * page_size();
        let (first, last) = (page_of(&sites[0]), page_of(sites.last().expect("there are some")));
        assert!(first < last, "the sites lie on several pages");
        seal_page(last);
        assert_eq!(try_mprotect(first), Ok(()));

        // The pages before it had been written when the write was refused, with either method: they are switched off again.
        for _ in 0..2 {
            let refused = register_trace_spread(|_| ()).expect_err("one page cannot be written");
            assert!(refused.to_string().contains("mprotect: Permission denied"), "{refused}");
            assert_all(&sites, OFF);
            assert!(!trace_spread_enabled());
            for fire in SPREAD {
                fire();
            }
        }
        let platform = tracepoint::runtime::platform();
        assert_eq!((platform.stuck_sites, platform.foreign_sites), (0, 0));
        assert_code_is_not_writable();
        assert_all_off();
    });
}

#[test]
fn one_page_is_refused_while_on() {
    own_process!();
    in_a_process("hardened::one_page_is_refused_while_on", || {
        let sites = sites_of_key_in(SPREAD[0] as *const ());
        let page_of = |site: &Site| site.address / page_size() * page_size();
        let first = page_of(&sites[0]);
        let (refused, others): (Vec<Site>, Vec<Site>) = sites.iter().partition(|site| page_of(site) == first);
        assert!(!others.is_empty(), "the sites lie on several pages");
        for by_mprotect in [false, true] {
            let probe = register_trace_spread(|_| ()).expect("switches");
            assert_all(&sites, ON);
            if by_mprotect {
                become_a_daemon();
            } else {
                seal_page(first);
            }
            // The other pages are switched off, although the first page cannot be.
            drop(probe);
            assert_all(&refused, ON);
            assert_all(&others, OFF);
        }
        assert_eq!(tracepoint::runtime::platform().stuck_sites, 2 * refused.len() as u64);
        // The sites that stay on find no probe.
        for fire in SPREAD {
            fire();
        }
    });
}
