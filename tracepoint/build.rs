//! Exists because `links` in `Cargo.toml` asks for a build script; it has nothing to build.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
