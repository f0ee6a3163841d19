//! Names, in one place, what a target has: the code asks for the name, not for a list of systems.
//!
//! * `cfg(posix)`: POSIX threads, clocks and fork, by libc.
//! * `cfg(linux_kernel)`: Linux's own system calls.
//! * `cfg(patched_sites)`: sites are patched.
//!
//! `--cfg tp_portable` hides all three, to build and test here what other targets compile.

use std::env::{var, var_os};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let have = |name: &str| var_os(format!("CARGO_{name}")).is_some();
    let target = |name: &str, value: &str| var(format!("CARGO_CFG_TARGET_{name}")).is_ok_and(|is| is == value);
    let posix = have("CFG_UNIX") && !have("CFG_TP_PORTABLE");
    let linux_kernel = posix && target("OS", "linux");
    // Not by feature, nor where whoever runs the program would not see the patches: an interpreter, a checker of the flag form.
    let flag_sites = ["FEATURE_FLAG_SITES", "CFG_MIRI", "CFG_TP_HELGRIND"].into_iter().any(have);
    let patched_sites = linux_kernel && target("ARCH", "x86_64") && target("POINTER_WIDTH", "64") && !flag_sites;
    for (name, is) in [("posix", posix), ("linux_kernel", linux_kernel), ("patched_sites", patched_sites)] {
        println!("cargo::rustc-check-cfg=cfg({name})");
        if is {
            println!("cargo::rustc-cfg={name}");
        }
    }
}
