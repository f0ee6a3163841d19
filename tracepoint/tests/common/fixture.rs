//! Builds and runs the crates in `tests/fixtures`, a separate workspace with one target directory.
#![allow(dead_code)] // each test is a crate of its own and uses a part

use std::path::{Path, PathBuf};
use std::process::Command;

/// The workspace of the fixtures.
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures");

/// The configuration of a fixture's build.
#[derive(Debug)]
pub(crate) struct Build {
    profile: &'static str,
    gnu_ld: bool,
    frame_pointers: bool,
    feature: Option<&'static str>,
    folded: bool,
}

impl Build {
    pub(crate) fn dev() -> Self {
        Self::profile("dev")
    }

    pub(crate) fn profile(profile: &'static str) -> Self {
        Self { profile, gnu_ld: false, frame_pointers: false, feature: None, folded: false }
    }

    /// With the system's `ld` instead of the linker that is shipped with rustc.
    pub(crate) fn gnu_ld(self) -> Self {
        Self { gnu_ld: true, ..self }
    }

    /// By a linker that folds identical functions.
    pub(crate) fn folded(self) -> Self {
        Self { folded: true, ..self }
    }

    /// With a frame pointer in every function.
    pub(crate) fn frame_pointers(self) -> Self {
        Self { frame_pointers: true, ..self }
    }

    /// With a feature of the package.
    pub(crate) fn feature(self, feature: &'static str) -> Self {
        Self { feature: Some(feature), ..self }
    }

    pub(crate) fn is_gnu_ld(&self) -> bool {
        self.gnu_ld
    }

    /// Builds a program.
    pub(crate) fn binary(&self, package: &str) -> PathBuf {
        self.build(package, &["build", "--bin", package, "-p", package])
    }

    /// Builds a test of a package.
    pub(crate) fn test_binary(&self, package: &str, test: &str) -> PathBuf {
        self.build(test, &["test", "--no-run", "--test", test, "-p", package])
    }

    /// Builds a library as a shared object of this kind: `cdylib` or `dylib`.
    pub(crate) fn shared_library(&self, package: &str, kind: &str) -> PathBuf {
        let name = format!("/lib{}.so", package.replace('-', "_"));
        let messages = self.messages(&["rustc", "--lib", "-p", package, "--crate-type", kind]);
        let path = messages.split('"').find(|text| text.ends_with(&name));
        PathBuf::from(path.expect("cargo names the library"))
    }

    /// Returns the executable that cargo reports for a target. Cargo also reports others: a test is built with the programs of its package.
    fn build(&self, target_name: &str, arguments: &[&str]) -> PathBuf {
        let messages = self.messages(arguments);
        let named = format!("\"name\":\"{target_name}\"");
        let mut executables = messages
            .lines()
            .filter(|message| message.contains(&named))
            .filter_map(|message| message.split_once("\"executable\":\"")?.1.split_once('"'));
        PathBuf::from(executables.next().expect("cargo names the executable").0)
    }

    /// Returns the JSON messages of cargo.
    fn messages(&self, arguments: &[&str]) -> String {
        let mut command = command();
        command.args(arguments).args(["--profile", self.profile, "--message-format", "json-render-diagnostics"]);
        let flagged = [
            (self.gnu_ld, "gnu-ld", "-Clinker-features=-lld"),
            (self.frame_pointers, "frame-pointers", "-Cforce-frame-pointers=yes"),
            (self.folded, "folded", "-Clink-arg=-Wl,--icf=all"),
        ];
        for (_, directory, flag) in flagged.into_iter().filter(|(is_wanted, ..)| *is_wanted) {
            // With a target, flags are the program's alone: what runs while compiling is built once for all, in a common directory.
            let target_name = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
            command.args(["--target", &target_name, "--config", &format!("build.rustflags=[\"{flag}\"]")]);
            command.env("CARGO_BUILD_BUILD_DIR", target());
            // A separate directory of programs: tests run in parallel, and two builds would write a program of the same name.
            command.env("CARGO_TARGET_DIR", target().join(directory));
        }
        if let Some(feature) = self.feature {
            command.args(["--features", feature]);
        }
        finish(&mut command)
    }
}

/// Runs cargo on the fixtures.
pub(crate) fn cargo(verb: &str, arguments: &[&str]) {
    finish(command().arg(verb).args(arguments));
}

/// Runs a program; returns its standard output.
pub(crate) fn run(program: &Path, arguments: &[&str]) -> String {
    finish(Command::new(program).args(arguments))
}

/// Returns the lines that a fixture listed, sorted.
pub(crate) fn listed(output: &str) -> Vec<&str> {
    let mut listed = Vec::new();
    for kind in ["marker ", "tracepoint "] {
        listed.extend(output.lines().filter(|line| line.starts_with(kind)));
    }
    listed.sort_unstable();
    listed
}

/// Returns the output of a fixture without its list.
pub(crate) fn said(output: &str) -> Vec<&str> {
    let listed = listed(output);
    output.lines().filter(|line| !listed.contains(line)).collect()
}

fn target() -> PathBuf {
    // Inside the target directory of the workspace, so that `cargo clean` removes it.
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("fixtures")
}

fn command() -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(FIXTURES).env("CARGO_TARGET_DIR", target()).env("RUSTDOCFLAGS", "-D warnings");
    command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    command
}

fn finish(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed\n{stdout}\n{stderr}");
    stdout
}
