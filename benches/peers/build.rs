//! Notes which compiler builds the benches, and builds the C object of LTTng-UST.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let rustc = env::var("RUSTC").expect("cargo says which rustc");
    let version = Command::new(rustc).arg("--version").output().expect("rustc knows its version");
    println!("cargo:rustc-env=PEERS_RUSTC={}", String::from_utf8_lossy(&version.stdout).trim());
    #[cfg(feature = "lttng")]
    lttng();
}

#[cfg(feature = "lttng")]
fn lttng() {
    println!("cargo:rerun-if-changed=c");
    cc::Build::new().file("c/lttng.c").include("c").warnings(false).compile("peers_lttng");
    println!("cargo:rustc-link-lib=dylib=lttng-ust-tracepoint");
    println!("cargo:rustc-link-lib=dylib=dl");
    // LTTng finds its tracepoints between two symbols that the linker defines, which rust-lld does not take as a use of them.
    println!("cargo:rustc-link-arg=-Wl,-z,nostart-stop-gc");
}
