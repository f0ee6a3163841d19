//! Passes the compiler's version to the benches, and builds the C objects of LTTng-UST.

use std::env;
#[cfg(feature = "lttng")]
use std::path::Path;
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
    let mut sites = cc::Build::new();
    sites.files(["c/lttng.c", "c/lttng_session.c"]).include("c").warnings(false).compile("peers_lttng");
    println!("cargo:rustc-link-lib=dylib=lttng-ust-tracepoint");
    println!("cargo:rustc-link-lib=dylib=dl");
    // LTTng finds its tracepoints between two linker-defined symbols, which rust-lld does not count as references to them.
    println!("cargo:rustc-link-arg=-Wl,-z,nostart-stop-gc");

    let provider = Path::new(&env::var_os("OUT_DIR").expect("cargo says where")).join("peers_lttng_provider.so");
    let built = cc::Build::new()
        .get_compiler()
        .to_command()
        .args(["-O2", "-fPIC", "-shared", "-Ic", "c/lttng_provider.c", "-llttng-ust", "-o"])
        .arg(&provider)
        .status()
        .expect("the C compiler runs");
    assert!(built.success(), "the provider is built");
    println!("cargo:rustc-env=PEERS_LTTNG_PROVIDER={}", provider.display());
}
