//! Names for what a target has, so that the code asks for a property and not for a list of systems.
//!
//! * `cfg(posix)`: POSIX threads, clocks and fork, by libc.
//! * `cfg(linux_kernel)`: Linux's own system calls.
//! * `cfg(tsc)`: a counter that can be the clock: the time stamp counter of x86-64, the system counter of aarch64.
//!
//! `--cfg tp_portable` hides all of them, so that what other targets compile can be built and tested here. Crates that depend on this one
//! read `linux_kernel` from `DEP_TRACEPOINT_RING_LINUX_KERNEL`.

use std::env::{var, var_os};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let have = |name: &str| var_os(format!("CARGO_{name}")).is_some();
    let target = |name: &str, value: &str| var(format!("CARGO_CFG_TARGET_{name}")).is_ok_and(|is| is == value);
    let posix = have("CFG_UNIX") && !have("CFG_TP_PORTABLE");
    let linux_kernel = posix && target("OS", "linux");
    let has_counter =
        ["x86_64", "aarch64"].into_iter().any(|arch| target("ARCH", arch)) && target("POINTER_WIDTH", "64");
    let tsc = linux_kernel && has_counter && !have("CFG_MIRI");
    for (name, is) in [("posix", posix), ("linux_kernel", linux_kernel), ("tsc", tsc)] {
        println!("cargo::rustc-check-cfg=cfg({name})");
        if is {
            println!("cargo::rustc-cfg={name}");
        }
    }
    println!("cargo::metadata=linux_kernel={linux_kernel}");
}
