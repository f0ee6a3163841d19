//! Names, in one place, what a target has: the code asks for the name, not for a list of systems.
//!
//! * `cfg(posix)`: POSIX threads, clocks and fork, by libc.
//! * `cfg(linux_kernel)`: Linux's own system calls.
//! * `cfg(patched_sites)`: sites are patched.
//! * `cfg(tsc)`: there is a time stamp counter that may be the clock.
//!
//! `--cfg tp_portable` hides all four, to build and test here what other targets compile.

use std::env::{var, var_os};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let have = |name: &str| var_os(format!("CARGO_{name}")).is_some();
    let target = |name: &str, value: &str| var(format!("CARGO_CFG_TARGET_{name}")).is_ok_and(|is| is == value);
    let posix = have("CFG_UNIX") && !have("CFG_TP_PORTABLE");
    let linux_kernel = posix && target("OS", "linux");
    // Not by feature, nor where whoever runs the program would not see the patches: an interpreter, a checker of the flag form.
    let flag_sites = ["FEATURE_FLAG_SITES", "CFG_MIRI", "CFG_TP_HELGRIND"].into_iter().any(have);
    let x86_64_linux = linux_kernel && target("ARCH", "x86_64") && target("POINTER_WIDTH", "64");
    let patched_sites = x86_64_linux && !flag_sites;
    let tsc = x86_64_linux && !have("CFG_MIRI");
    let names = [("posix", posix), ("linux_kernel", linux_kernel), ("patched_sites", patched_sites), ("tsc", tsc)];
    for (name, is) in names {
        println!("cargo::rustc-check-cfg=cfg({name})");
        if is {
            println!("cargo::rustc-cfg={name}");
        }
    }
}
