//! `cfg(patched_sites)`: a site is an instruction that is patched, not a load of a flag. 64-bit Linux on x86-64 and aarch64.
//! `cfg(noted_markers)`: markers have notes for other tools, if the feature `usdt` asks for them. 64-bit Linux on x86-64 and aarch64.

use std::env::{var, var_os};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(patched_sites)");
    // Not where an interpreter or a race checker would not see the patches.
    let flag_sites = ["CARGO_FEATURE_FLAG_SITES", "CARGO_CFG_MIRI", "CARGO_CFG_TP_HELGRIND"];
    let target = |name| var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    let is_known = target("POINTER_WIDTH") == "64"
        && target("ENDIAN") == "little"
        && ["x86_64", "aarch64"].contains(&target("ARCH").as_str());
    let can_patch = is_known && var("DEP_TRACEPOINT_RING_LINUX_KERNEL").is_ok_and(|is| is == "true");
    if can_patch && !flag_sites.into_iter().any(|name| var_os(name).is_some()) {
        println!("cargo::rustc-cfg=patched_sites");
    }
    println!("cargo::rustc-check-cfg=cfg(noted_markers)");
    let has_notes = target("OS") == "linux" && is_known && var_os("CARGO_CFG_MIRI").is_none();
    if has_notes && var_os("CARGO_FEATURE_USDT").is_some() {
        println!("cargo::rustc-cfg=noted_markers");
    }
}
