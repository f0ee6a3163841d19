//! Indirect sites: what the environment asks for, code that switching leaves unchanged, and objects that were not converted.
//!
//! The environment is read before `main`, so each test runs this program once more, with the variable.

use crate::site::{LENGTH, Site, assert_code_is_not_writable, byte, sites, sites_of_key_in};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

tracepoint::define_trace! {
    provider = "site_indirect";
    fired(n: u64);
}

#[inline(never)]
fn fire() {
    tracepoint::trace!(fired(argument()));
    trace_fired(1);
}

static HITS: AtomicU64 = AtomicU64::new(0);
static ARGUMENTS: AtomicU64 = AtomicU64::new(0);

fn argument() -> u64 {
    ARGUMENTS.fetch_add(1, Ordering::Relaxed)
}

/// Runs a test in a process whose environment asks for this form. Returns `None` in that process.
fn with_form(form: &str, test: &str) -> Option<()> {
    const CHILD: &str = "TEST_INDIRECT";
    if std::env::var_os(CHILD).is_some() {
        return None;
    }
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", test, "--nocapture"]).env(CHILD, "1").env("TRACEPOINT_SITES", form);
    let output = command.output().expect("starts");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}\n{stderr}");
    Some(())
}

fn code(sites: &[Site]) -> Vec<[u8; LENGTH]> {
    sites.iter().map(|site| std::array::from_fn(|offset| byte(site.address + offset))).collect()
}

#[test]
fn code_is_not_written_after_the_start() {
    if with_form("indirect", "indirect::code_is_not_written_after_the_start").is_some() {
        return;
    }
    let platform = tracepoint::runtime::platform();
    assert_eq!((platform.sites, platform.site_count), ("indirect", Some(sites().len())));
    let all = sites();
    let linked = code(&all);
    assert!(linked.iter().all(|bytes| bytes.starts_with(&[0xFF, 0x25])), "{linked:x?}");
    assert!(sites_of_key_in(fire as *const ()).len() >= 2);
    for _ in 0..3 {
        fire();
        assert_eq!(
            (HITS.load(Ordering::Relaxed), ARGUMENTS.load(Ordering::Relaxed)),
            (0, 0),
            "off: nothing is evaluated"
        );
        let probe = register_trace_fired(|_| {
            HITS.fetch_add(1, Ordering::Relaxed);
        })
        .expect("switches");
        fire();
        assert_eq!((HITS.swap(0, Ordering::Relaxed), ARGUMENTS.swap(0, Ordering::Relaxed)), (2, 1));
        drop(probe);
        assert_eq!(code(&all), linked);
    }
    let platform = tracepoint::runtime::platform();
    assert_eq!((platform.foreign_sites, platform.stuck_sites, platform.stayed_writable), (0, 0, 0));
    assert_code_is_not_writable();
}

#[test]
fn another_word_has_no_effect() {
    if with_form("direct", "indirect::another_word_has_no_effect").is_none() {
        assert_eq!(tracepoint::runtime::platform().sites, "patched");
    }
}
