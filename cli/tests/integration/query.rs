//! `tracectl query` and `export --parquet` run another program, whose output is tested in `query/`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A directory with `tracectl` and an empty trace. From here, a `tracectl-query` next to the built program is not found.
struct Place {
    directory: TempDir,
    trace: String,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::hard_link(env!("CARGO_BIN_EXE_tracectl"), directory.path().join("tracectl")).unwrap();
        let trace = empty_trace(directory.path());
        Self { directory, trace }
    }

    /// Runs `tracectl` with this directory as `PATH`.
    fn run(&self, arguments: &[&str]) -> Output {
        let path = self.directory.path();
        Command::new(path.join("tracectl")).args(arguments).env("PATH", path).output().unwrap()
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The smallest valid trace.
fn empty_trace(directory: &Path) -> String {
    let trace = directory.join("trace");
    fs::create_dir(&trace).unwrap();
    fs::write(
        trace.join("metadata"),
        "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; }; stream { id = 0; };",
    )
    .unwrap();
    trace.to_str().unwrap().to_owned()
}

#[test]
fn a_program_that_is_not_installed_is_named_with_the_command_that_installs_it() {
    let place = Place::new();
    for arguments in [&["query", "compact", "/store"][..], &["export", "--parquet", "/store", &place.trace]] {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(3));
        let told = text(&output.stderr);
        assert!(told.contains("tracectl-query") && told.contains("cargo install --path query/program"), "{told}");
    }
}

#[test]
fn arguments_and_the_exit_code_are_passed_on() {
    let place = Place::new();
    let program = place.directory.path().join("tracectl-query");
    fs::write(&program, "#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 1\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let exported = format!("<export><--json><--></a store><{}>", place.trace);
    for (arguments, expected) in [
        (&["query", "retain", "/srv/t", "--days", "3"][..], "<retain></srv/t><--days><3>"),
        (&["query", "compact", "--help"], "<compact><--help>"),
        (&["export", "--json", "--parquet", "/a store", &place.trace], &exported),
    ] {
        let output = place.run(arguments);
        assert_eq!((text(&output.stdout), output.status.code()), (expected, Some(1)));
    }
}

#[test]
fn a_store_has_all_events() {
    let place = Place::new();
    for option in [&["-e", "a:b"][..], &["--since", "-5s"], &["--fields", "x"]] {
        let all = [&["export", "--parquet", "/store"], option, &[place.trace.as_str()]].concat();
        assert_eq!(place.run(&all).status.code(), Some(2), "{option:?}");
    }
    assert_eq!(place.run(&["export", "--parquet", "-", &place.trace]).status.code(), Some(2));
}
